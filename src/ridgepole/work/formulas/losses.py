"""Losses that compare two tensors element by element, and those that walk rows of scores."""

from __future__ import annotations

from dataclasses import replace

from ridgepole import dtypes
from ridgepole.work.cost import broadcast, formula, need, promote, written
from ridgepole.work.formulas.elementwise import TRANSCENDENTAL, pointwise
from ridgepole.work.op import Call, Cost, Rows, Tensor

_LOSSES = {
    "mse_loss": (2, 2, 1), "l1_loss": (2, 2, 1), "smooth_l1_loss": (4, 2, 1), "huber_loss": (4, 2, 1),
    "soft_margin_loss": (10, 2, 1), "kl_div": (10, 2, 2), "binary_cross_entropy": (18, 3, 1),
    "binary_cross_entropy_with_logits": (20, 4, 4),
}  # fmt: skip
"""FLOP an element, where `reduction` is among the arguments, and kernels before the sum.

binary_cross_entropy_with_logits is no kernel of its own: 1 - t, times x, log-sigmoid, difference (native/Loss.cpp).
"""


@formula(*(f"aten::{name}" for name in _LOSSES))
def loss(call: Call) -> Cost:
    """A loss an element, then its mean or sum unless `reduction` is none (0)."""
    flops, at, kernels = _LOSSES[call.operator.split("::")[1]]
    x, target = need(call, 0), need(call, 1)
    weights = [t for i in range(2, at) if (t := call.tensor(i)) is not None]
    tensors = (x, target, *weights)
    shape = broadcast(t.shape for t in tensors)
    each = pointwise(Call(call.operator, (), (Tensor(shape, promote(tensors)),)), tensors, flops)
    each = replace(each, kernels=kernels)
    if call.value(at, 1) == 0:
        return each
    wrote = written(call, (), each.dtype)
    count = each.flops // flops
    return replace(
        each, flops=each.flops + count, written=wrote, family="reduction", kernels=kernels + 1, detail=Rows(1, count)
    )


_BACKWARDS = {
    "mse_loss_backward": 3, "l1_loss_backward": 3, "huber_loss_backward": 4, "smooth_l1_loss_backward": 4,
    "binary_cross_entropy_backward": 6, "soft_margin_loss_backward": 12,
}  # fmt: skip


@formula(*(f"aten::{name}" for name in _BACKWARDS))
def loss_backward(call: Call) -> Cost:
    """(gradient, input, target, ...)"""
    tensors = (need(call, 0), need(call, 1), need(call, 2))
    return pointwise(call, tensors, _BACKWARDS[call.operator.split("::")[1]], need(call, 1).dtype)


@formula(
    "aten::nll_loss", "aten::nll_loss_forward", "aten::nll_loss2d_forward", "aten::nll_loss2d", "aten::nll_loss_nd"
)
def nll_loss(call: Call) -> Cost:
    """One element of each row of log-probabilities is read (a 32-byte sector of it moves)."""
    x, target = need(call, 0), need(call, 1)
    rows = max(target.numel, 1)
    touched = min(x.nbytes, rows * 32)
    size = dtypes.itemsize(x.dtype)
    return Cost(2 * rows, touched + target.nbytes, 2 * size, x.dtype, "vector", "reduction", 1, Rows(1, rows))


@formula("aten::nll_loss_backward", "aten::nll_loss2d_backward")
def nll_loss_backward(call: Call) -> Cost:
    """A gradient of zeros with one element a row."""
    x, target = need(call, 1), need(call, 2)
    return Cost(target.numel, target.nbytes, x.logical_nbytes, x.dtype, "vector", "fill", 2, None)


@formula(
    "aten::multi_margin_loss", "aten::multilabel_margin_loss_forward", "aten::multi_margin_loss_backward",
    "aten::multilabel_margin_loss_backward",
)  # fmt: skip
def margin(call: Call) -> Cost:
    """Every score of a row against the row's target: (x, target, ...), or (gradient, x, target, ...)."""
    back = call.operator.endswith("_backward")
    x, target = need(call, 1 if back else 0), need(call, 2 if back else 1)
    length = x.shape[-1] if x.shape else 1
    rows = Rows(x.numel // max(length, 1), length)
    read = x.nbytes + target.nbytes + (need(call, 0).nbytes if back else 0)
    wrote = written(call, x.shape if back else (), x.dtype)
    return Cost(3 * x.numel, read, wrote, x.dtype, "vector", "reduction", 1 if back else 2, rows)


@formula("aten::_ctc_loss", "aten::_ctc_loss_backward")
def ctc(call: Call) -> Cost:
    """(log-probabilities (t, n, classes), targets (n, s), ...): 2 s + 1 states a step, each the log of three
    exponentials (Graves et al. 2006), forward; backward the same again, and every class's gradient."""
    back = call.operator.endswith("_backward")
    probabilities, targets = need(call, 1 if back else 0), need(call, 2 if back else 1)
    steps = probabilities.shape[0]
    batch = probabilities.shape[1] if len(probabilities.shape) == 3 else 1
    longest = targets.shape[-1] if len(targets.shape) == 2 else -(-targets.numel // max(batch, 1))
    states = batch * steps * (2 * longest + 1)
    size = dtypes.itemsize(probabilities.dtype)
    flops = 4 * TRANSCENDENTAL * states
    table = states * size
    if back:
        read = probabilities.nbytes + targets.nbytes + 2 * table
        wrote = table + probabilities.logical_nbytes
        flops = 2 * flops + 2 * TRANSCENDENTAL * probabilities.numel
    else:
        read = min(probabilities.nbytes, table) + targets.nbytes
        wrote = table + batch * size
    rows = Rows(max(batch, 1), steps * (2 * longest + 1))
    return Cost(flops, read, wrote, probabilities.dtype, "vector", "scan", 3 if back else 1, rows)

"""Norms: statistics of each row, then its scale and shift. Input read once, result written once."""

from __future__ import annotations

from ridgepole import dtypes
from ridgepole.work.cost import formula, ints, need, written
from ridgepole.work.formulas.rows import along, rowwise
from ridgepole.work.op import Call, Cost, Rows, Tensor


@formula("aten::native_layer_norm", "aten::layer_norm", "aten::_fused_rms_norm", "aten::rms_norm")
def layer_norm(call: Call) -> Cost:
    """Mean and variance, then scale and shift: about 8 FLOP an element; rows as long as the normalised shape."""
    x = need(call, 0)
    shape = ints(call, 1) or x.shape[-1:]
    rows = along(x, tuple(range(-len(shape), 0)))
    read = x.nbytes + sum(t.nbytes for t in call.tensors[1:3])
    stats = rows.rows * 8 if "layer" in call.operator else rows.rows * 4
    wrote = sum(t.nbytes for t in call.outputs) if call.outputs else x.logical_nbytes + stats
    return rowwise(call, "norm", x, rows, 8 if "layer" in call.operator else 4, read, wrote)


@formula("aten::native_layer_norm_backward", "aten::_fused_rms_norm_backward")
def layer_norm_backward(call: Call) -> Cost:
    """Gradient of the input, then of scale and shift by columns."""
    grad, x = need(call, 0), need(call, 1)
    shape = ints(call, 2) or x.shape[-1:]
    rows = along(x, tuple(range(-len(shape), 0)))
    read = grad.nbytes + x.nbytes + rows.rows * 8 + rows.length * 4
    wrote = x.logical_nbytes + 2 * rows.length * dtypes.itemsize(x.dtype)
    return rowwise(call, "norm", x, rows, 14, read, wrote, 2)


def _channels(x: Tensor) -> Rows:
    channels = x.shape[1] if len(x.shape) > 1 else 1
    return Rows(channels, x.numel // max(channels, 1))


@formula(
    "aten::native_batch_norm",
    "aten::cudnn_batch_norm",
    "aten::miopen_batch_norm",
    "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit_functional",
    "aten::_native_batch_norm_legit_no_training",
    "aten::_batch_norm_with_update",
    "aten::_batch_norm_no_update",
    "aten::batch_norm",
)
def batch_norm(call: Call) -> Cost:
    """Statistics of a channel over batch and space, then scale and shift."""
    x = need(call, 0)
    rows = _channels(x)
    wrote = x.logical_nbytes
    parameters = sum(t.nbytes for t in call.tensors[1:5])
    return rowwise(call, "norm", x, rows, 8, x.nbytes + parameters, wrote)


@formula(
    "aten::native_batch_norm_backward",
    "aten::cudnn_batch_norm_backward",
    "aten::miopen_batch_norm_backward",
    "aten::batch_norm_backward",
)
def batch_norm_backward(call: Call) -> Cost:
    first, second = need(call, 0), need(call, 1)
    return rowwise(call, "norm", first, _channels(first), 10, first.nbytes + second.nbytes, first.logical_nbytes, 2)


@formula("aten::native_group_norm", "aten::group_norm", "aten::instance_norm")
def group_norm(call: Call) -> Cost:
    """(x, weight, bias, N, C, HxW, group, eps): a row is one group of one image."""
    x = need(call, 0)
    groups = call.value(6, 1) if "native" in call.operator else call.value(1, 1)
    count = x.shape[0] * (groups if isinstance(groups, int) and not isinstance(groups, bool) else x.shape[1])
    rows = Rows(count, x.numel // max(count, 1))
    read = x.nbytes + sum(t.nbytes for t in call.tensors[1:3])
    return rowwise(call, "norm", x, rows, 8, read, x.logical_nbytes + count * 8, 2)


@formula("aten::native_group_norm_backward")
def group_norm_backward(call: Call) -> Cost:
    grad, x = need(call, 0), need(call, 1)
    return rowwise(call, "norm", x, _channels(x), 14, grad.nbytes + x.nbytes, x.logical_nbytes, 3)


@formula("aten::_weight_norm_interface", "aten::_weight_norm")
def weight_norm(call: Call) -> Cost:
    """(v, g, dim): v scaled so that the norm of each slice along `dim` is g's."""
    v, g = need(call, 0), need(call, 1)
    rows = Rows(g.numel, v.numel // max(g.numel, 1))
    wrote = written(call, (v.numel + g.numel,), v.dtype)
    return rowwise(call, "norm", v, rows, 3, v.nbytes + g.nbytes, wrote)


@formula("aten::_weight_norm_interface_backward")
def weight_norm_backward(call: Call) -> Cost:
    """(gradient, v, g, norms, dim)"""
    grad, v, g, norms = (need(call, i) for i in range(4))
    rows = Rows(g.numel, v.numel // max(g.numel, 1))
    read = grad.nbytes + v.nbytes + g.nbytes + norms.nbytes
    return rowwise(call, "norm", v, rows, 6, read, written(call, (v.numel + g.numel,), v.dtype))

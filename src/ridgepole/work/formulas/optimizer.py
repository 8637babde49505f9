"""Fused optimizer steps: parameters and state read and written once, gradients read once."""

from __future__ import annotations

from ridgepole.work.cost import NotRecorded, formula, listed
from ridgepole.work.formulas.foreach import launches
from ridgepole.work.op import Call, Cost, Tensor

_KINDS = {"adam": (12, 5), "adamw": (13, 5), "sgd": (4, 3), "adagrad": (6, 3)}
"""FLOP an element, and lists of tensors (parameter, gradient, states; Adam's fifth is AMSGrad's, else empty)."""


@formula(*(f"aten::_fused_{kind}" for kind in _KINDS))
def fused(call: Call) -> Cost:
    flops, lists = _KINDS[call.operator.split("_fused_")[1].rstrip("_").split(".")[0]]
    groups = [listed(call, i) for i in range(lists) if isinstance(call.value(i), tuple)]
    groups = [g for g in groups if g]
    if len(groups) < 2:
        raise NotRecorded("tensor lists not recorded")
    parameters = groups[0]
    read = sum(t.nbytes for g in groups for t in g)
    wrote = read - sum(t.nbytes for t in groups[1])
    count = sum(t.numel for t in parameters)
    kernels = launches(parameters, len(groups))
    return Cost(flops * count, read, wrote, parameters[0].dtype, "vector", "optimizer", kernels)


@formula("aten::_amp_foreach_non_finite_check_and_unscale")
def unscale(call: Call) -> Cost:
    grads = listed(call, 0)
    if not grads:
        raise NotRecorded("tensor lists not recorded")
    size = sum(t.nbytes for t in grads)
    return Cost(
        2 * sum(t.numel for t in grads), size, size, grads[0].dtype, "vector", "elementwise", launches(grads, 1)
    )


@formula("aten::_amp_update_scale")
def update_scale(call: Call) -> Cost:
    return Cost(4, 12, 8, "float32", "vector", "elementwise")


@formula("apex::fused_adam", "apex::multi_tensor_adam")
def apex(call: Call) -> Cost:
    tensors: tuple[Tensor, ...] = call.tensors
    if not tensors:
        raise NotRecorded("tensor lists not recorded")
    size = sum(t.nbytes for t in tensors)
    return Cost(4 * sum(t.numel for t in tensors), size, size, tensors[0].dtype, "vector", "optimizer")

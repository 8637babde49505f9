"""Random numbers: Philox makes four 32-bit numbers in about 100 integer operations (Salmon et al. 2011)."""

from __future__ import annotations

from math import prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, formula, in_place, need, written
from ridgepole.work.formulas.rows import sort_cost
from ridgepole.work.op import Call, Cost, Rows, Tensor

FLOPS = 25

_MADE = "rand randn randint rand_like randn_like randint_like bernoulli normal uniform exponential random cauchy "
_MADE += "log_normal geometric poisson normal_functional rrelu_noise"


@formula(*(f"aten::{name}" for name in _MADE.split()))
def made(call: Call) -> Cost:
    if call.outputs:
        out = call.outputs[0]
    elif in_place(call) or call.tensors:
        out = need(call, 0)
    else:
        raise NotRecorded("filled by an op of its own inside")
    reads = call.tensors[0].nbytes if call.operator == "aten::bernoulli" and call.tensors else 0
    return Cost(FLOPS * out.numel, reads, out.logical_nbytes, out.dtype, "vector", "random")


@formula(
    "aten::native_dropout", "aten::dropout", "aten::_fused_dropout", "aten::feature_dropout", "aten::alpha_dropout"
)
def dropout(call: Call) -> Cost:
    """Writes the result and a mask of one byte an element."""
    x = need(call, 0)
    wrote = written(call, x.shape, x.dtype) + (0 if call.outputs else x.numel)
    return Cost((FLOPS + 2) * x.numel, x.nbytes, wrote, x.dtype, "vector", "random")


@formula("aten::native_dropout_backward", "aten::_masked_scale")
def dropout_backward(call: Call) -> Cost:
    grad, mask = need(call, 0), need(call, 1)
    return Cost(
        2 * grad.numel,
        grad.nbytes + mask.nbytes,
        written(call, grad.shape, grad.dtype),
        grad.dtype,
        "vector",
        "elementwise",
    )


@formula("aten::multinomial")
def multinomial(call: Call) -> Cost:
    x = need(call, 0)
    count = call.value(1, 1)
    rows = x.numel // max(x.shape[-1] if x.shape else 1, 1)
    wrote = rows * (count if isinstance(count, int) else 1) * 8
    return Cost((FLOPS + 4) * x.numel, 3 * x.nbytes, x.nbytes + wrote, x.dtype, "vector", "scan", 5)


@formula("aten::randperm")
def randperm(call: Call) -> Cost:
    count = call.value(0)
    if not isinstance(count, int):
        raise NotRecorded("length not recorded")
    x = Tensor((count,), "int64")
    cost = sort_cost(call, x, Rows(1, count), prod(x.shape) * dtypes.itemsize("int64"))
    return Cost(
        cost.flops + FLOPS * count, cost.read, cost.written, "int64", "vector", "sort", cost.kernels + 1, cost.detail
    )

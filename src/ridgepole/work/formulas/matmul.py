"""Matrix products: 2 m n k FLOP each, every operand read once, the result written once."""

from __future__ import annotations

from math import prod

from ridgepole import dtypes
from ridgepole.work.cost import (
    NotRecorded,
    broadcast,
    formula,
    listed,
    matrix_unit,
    need,
    real_dtype,
    stated_dtype,
    written,
)
from ridgepole.work.op import Call, Cost, Gemm, Tensor

COMPLEX = 4
"""Real multiply-adds in a complex one."""
WIDEST = 16
"""Bytes of the widest load a thread makes."""


def alignment(*operands: Tensor) -> int:
    """Largest power of two, up to 16, that divides every operand's row pitch in bytes."""
    least = WIDEST
    for t in operands:
        pitch = _pitch(t) * dtypes.itemsize(t.dtype)
        while least > 1 and pitch % least:
            least //= 2
    return least


def _pitch(t: Tensor) -> int:
    if t.strides is not None and len(t.strides) == len(t.shape) >= 2:
        rows, columns = t.strides[-2:]
        live = [s for s, n in ((rows, t.shape[-2]), (columns, t.shape[-1])) if n > 1 and s > 1]
        return max(live, default=t.shape[-1])
    return t.shape[-1] if t.shape else 1


def product(call: Call, a: Tensor, b: Tensor, *added: Tensor | None, out_dtype: str = "") -> Cost:
    """a (..., m, k) x b (..., k, n), plus what is added to it."""
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    if b.shape[-2] != k:
        raise NotRecorded(f"{a.shape} x {b.shape} is no product")
    batch = prod(broadcast((a.shape[:-2], b.shape[:-2])))
    dtype = out_dtype or a.dtype
    out = Tensor((batch, m, n), dtype)
    read = a.nbytes + b.nbytes + sum(t.nbytes for t in added if t is not None)
    gemm = Gemm(batch, m, n, k, alignment(a, b, out))
    wrote = written(call, out.shape, dtype)
    parts = COMPLEX if a.dtype.startswith("complex") else 1
    working = real_dtype(a.dtype)
    return Cost(2 * parts * batch * m * n * k, read, wrote, working, matrix_unit(working), "matmul", 1, gemm)


@formula("aten::mm", "aten::bmm", "aten::_int_mm")
def mm(call: Call) -> Cost:
    integer = call.operator == "aten::_int_mm"
    return product(call, need(call, 0), need(call, 1), out_dtype="int32" if integer else "")


@formula("aten::addmm", "aten::baddbmm", "aten::_addmm_activation")
def addmm(call: Call) -> Cost:
    return product(call, need(call, 1), need(call, 2), need(call, 0))


@formula("aten::addbmm")
def addbmm(call: Call) -> Cost:
    """The products of a batch, summed: one product over all their inner dimensions."""
    a, b = need(call, 1), need(call, 2)
    long = a.shape[0] * a.shape[-1]
    left, right = Tensor((a.shape[-2], long), a.dtype), Tensor((long, b.shape[-1]), b.dtype)
    return product(call, left, right, need(call, 0))


@formula("aten::linear")
def linear(call: Call) -> Cost:
    x, w = need(call, 0), need(call, 1)
    rows = Tensor((prod(x.shape[:-1]), x.shape[-1]), x.dtype)
    pitch = w.strides or (w.shape[-1], 1)
    weight = Tensor((w.shape[-1], w.shape[0]), w.dtype, (pitch[-1], pitch[0]))
    return product(call, rows, weight, call.tensor(2))


@formula("aten::matmul")
def matmul(call: Call) -> Cost:
    a, b = need(call, 0), need(call, 1)
    if len(a.shape) == 1:
        a = Tensor((1, a.shape[0]), a.dtype)
    if len(b.shape) == 1:
        b = Tensor((b.shape[0], 1), b.dtype)
    if len(b.shape) == 2 and len(a.shape) > 2:
        a = Tensor((prod(a.shape[:-1]), a.shape[-1]), a.dtype)
    return product(call, a, b)


@formula("aten::mv", "aten::addmv")
def mv(call: Call) -> Cost:
    first = 0 if call.operator.startswith("aten::mv") else 1
    a, x = need(call, first), need(call, first + 1)
    added = need(call, 0) if first else None
    return product(call, a, Tensor((x.shape[0], 1), x.dtype), added)


@formula("aten::dot", "aten::vdot", "aten::inner")
def dot(call: Call) -> Cost:
    a, b = need(call, 0), need(call, 1)
    return product(call, Tensor((1, a.numel), a.dtype), Tensor((b.numel, 1), b.dtype))


@formula("aten::outer", "aten::ger", "aten::addr")
def outer(call: Call) -> Cost:
    first = 1 if call.operator.startswith("aten::addr") else 0
    a, b = need(call, first), need(call, first + 1)
    added = need(call, 0) if first else None
    return product(call, Tensor((a.numel, 1), a.dtype), Tensor((1, b.numel), b.dtype), added)


@formula("aten::_scaled_mm", "aten::_scaled_mm_v2")
def scaled_mm(call: Call) -> Cost:
    """fp8 x fp8 with scales; the result is bf16 where its dtype was not recorded (torch's usual choice)."""
    scales = (call.tensor(2), call.tensor(3), call.tensor(4))
    stated = next((dtype for i in range(5, len(call.args)) if (dtype := stated_dtype(call, i))), "bfloat16")
    out = call.outputs[0].dtype if call.outputs else stated
    return product(call, need(call, 0), need(call, 1), *scales, out_dtype=out)


@formula("aten::_weight_int8pack_mm", "aten::_weight_int4pack_mm", "aten::_weight_int4pack_mm_for_cpu")
def packed(call: Call) -> Cost:
    """Activations x integer weights, unpacked in registers: arithmetic in the activations' dtype."""
    x, w = need(call, 0), need(call, 1)
    scales = next((t for t in call.tensors[2:]), None)
    k = x.shape[-1]
    n = call.outputs[0].shape[-1] if call.outputs else w.shape[0] * (8 if "int4" in call.operator else 1)
    m = prod(x.shape[:-1])
    read = x.nbytes + w.nbytes + (scales.nbytes if scales else 0)
    wrote = written(call, (m, n), x.dtype)
    return Cost(2 * m * n * k, read, wrote, x.dtype, matrix_unit(x.dtype), "matmul", 1, Gemm(1, m, n, k))


@formula("aten::_grouped_mm", "aten::_scaled_grouped_mm")
def grouped(call: Call) -> Cost:
    """One product a group. Of a dimension that only one operand shares with the groups, each group has a part.

    Rows a (t, k) each through its group's b (g, k, n); its mirror image; inner dimensions split a (m, t) x b (t, n)
    into g results (the gradient of the weights); or plainly a batch. Every group's weights are read once.
    """
    a, b = need(call, 0), need(call, 1)
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    bounds = call.tensor(4 if "scaled" in call.operator else 2)
    groups = next((t.shape[0] for t in (a, b) if len(t.shape) == 3), bounds.numel if bounds is not None else 1)
    part = [m, n, k]
    kind = (len(a.shape), len(b.shape))
    if kind != (3, 3):
        split = {(2, 3): 0, (3, 2): 1, (2, 2): 2}[kind]
        part[split] = max(1, part[split] // groups)
    gemm = Gemm(groups, part[0], part[1], part[2], alignment(a, b))
    shape = (groups, m, n) if kind in ((3, 3), (2, 2)) else (m, n)
    flops = 2 * m * n * k * (groups if kind == (3, 3) else 1)
    dtype = call.outputs[0].dtype if call.outputs else "bfloat16" if "float8" in a.dtype else a.dtype
    wrote = written(call, shape, dtype)
    return Cost(flops, a.nbytes + b.nbytes, wrote, a.dtype, matrix_unit(a.dtype), "matmul", 1, gemm)


@formula("aten::chain_matmul", "aten::linalg_multi_dot")
def chain(call: Call) -> Cost:
    """Left to right, every intermediate written and read."""
    tensors = listed(call, 0)
    total = None
    left = tensors[0]
    for right in tensors[1:]:
        one = product(Call("aten::mm", ()), left, right)
        left = Tensor((left.shape[0], right.shape[-1]), left.dtype)
        total = one if total is None else _sum(total, one)
    if total is None:
        raise NotRecorded("one matrix is no product")
    return total


def _sum(a: Cost, b: Cost) -> Cost:
    return Cost(
        a.flops + b.flops, a.read + b.read, a.written + b.written, a.dtype, a.unit, "matmul", a.kernels + 1, a.detail
    )

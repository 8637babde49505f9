"""Operators on lists of tensors: a few launches over chunks of all of them (ATen's MultiTensorApply.cuh)."""

from __future__ import annotations

from collections.abc import Iterable

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, formula, in_place, listed
from ridgepole.work.formulas.elementwise import TRANSCENDENTAL
from ridgepole.work.op import Call, Cost, Tensor

CHUNK = 65536
"""Elements that one block walks."""
BLOCKS = 320
"""Blocks of one launch at most."""
_TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}
"""Tensors whose addresses fit the arguments of one launch, by lists of tensors."""


def launches(tensors: Iterable[Tensor], lists: int) -> int:
    """Kernels of one operator over `lists` lists that match `tensors`: a launch is full of blocks or of tensors."""
    room = _TENSORS.get(lists, 24)
    kernels, blocks, held = 0, 0, 0
    for tensor in tensors:
        chunks = -(-tensor.numel // CHUNK)
        if not chunks:
            continue
        held += 1
        while chunks:
            taken = min(chunks, BLOCKS - blocks)
            blocks += taken
            chunks -= taken
            if blocks == BLOCKS or (held == room and not chunks):
                kernels += 1
                blocks, held = 0, 1 if chunks else 0
    return max(1, kernels + (blocks > 0))


_FOREACH = {
    0: "copy zero",
    1: "add sub mul maximum minimum clamp_max clamp_min abs neg sign round floor ceil trunc frac reciprocal",
    2: "div addcmul addcdiv lerp",
    4: "sqrt rsqrt",
    TRANSCENDENTAL: "exp log sin cos tan tanh sigmoid pow erf erfc expm1 log1p log2 log10 sinh cosh asin acos atan "
    "lgamma",
}
_FLOPS = {f"aten::_foreach_{name}": flops for flops, names in _FOREACH.items() for name in names.split()}


def _name(call: Call) -> str:
    return call.operator.split(".")[0].removesuffix("_")


@formula(*_FLOPS)
def foreach(call: Call) -> Cost:
    """A list of tensors at once; in place the first list is written back."""
    lists = [
        listed(call, i) for i, a in enumerate(call.args) if isinstance(a, tuple) and a and isinstance(a[0], Tensor)
    ]
    if not lists:
        raise NotRecorded("tensor lists not recorded")
    first = lists[0]
    name = _name(call)
    flops = _FLOPS[name] * sum(t.numel for t in first)
    overwritten = name.endswith(("_copy", "_zero")) and in_place(call)
    read = sum(t.nbytes for one in (lists[1:] if overwritten else lists) for t in one)
    wrote = sum(t.nbytes for t in call.outputs) if call.outputs else sum(t.logical_nbytes for t in first)
    depth = len(lists) + (not in_place(call))
    return Cost(flops, read, wrote, first[0].dtype, "vector", "elementwise", launches(first, depth))


@formula("aten::_foreach_norm", "aten::_foreach_max")
def foreach_norm(call: Call) -> Cost:
    """One norm a tensor, in two stages."""
    first = listed(call, 0)
    if not first:
        raise NotRecorded("tensor lists not recorded")
    count = sum(t.numel for t in first)
    wrote = len(first) * dtypes.itemsize(first[0].dtype)
    flops = 2 * count if "norm" in call.operator else count
    kernels = launches(first, 1) + 1
    return Cost(flops, sum(t.nbytes for t in first), wrote, first[0].dtype, "vector", "reduction", kernels)

"""Kernels that Inductor wrote, as traces record their calls: the pointers with their shapes, then the loops' lengths.

Which pointers are read, written or both is not recorded, so each is taken to pass once: at least that moves.
"""

from __future__ import annotations

from math import prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, formula, promote
from ridgepole.work.op import Call, Cost, Family, Rows

ASSUMED = "each tensor of a compiled kernel is taken to pass once: which it reads and which it writes is not recorded"


def _lengths(call: Call) -> tuple[int, ...]:
    """The integers behind the last tensor: other scalars, then the loops' lengths, the innermost last."""
    tail: list[int] = []
    for arg in reversed(call.args):
        if not isinstance(arg, int) or isinstance(arg, bool):
            break
        tail.append(arg)
    return tuple(reversed(tail))


def _moved(call: Call, reach: int) -> tuple[int, int, str]:
    """Bytes and dtype: of each tensor no more than `reach` elements, which is what the loops can touch of a table."""
    tensors = call.tensors
    if not tensors:
        raise NotRecorded("tensors not recorded")
    moved = [min(t.nbytes, reach * dtypes.itemsize(t.dtype)) for t in tensors]
    # The last pointer of a kernel is one it writes: Inductor passes inputs before outputs.
    return sum(moved[:-1]), moved[-1], promote(tensors)


@formula("triton_poi")
def pointwise(call: Call) -> Cost:
    """FLOP are not in the record: one an element, which no ridge point of a GPU is below."""
    lengths = _lengths(call)
    if not lengths or lengths[-1] <= 0:
        raise NotRecorded("loop lengths not recorded")
    reach = max(lengths[-1], prod(lengths[-2:]))
    read, wrote, dtype = _moved(call, reach)
    return Cost(lengths[-1], read, wrote, dtype, "vector", "elementwise", assumed=ASSUMED)


@formula("triton_red", "triton_per")
def reduction(call: Call) -> Cost:
    lengths = _lengths(call)
    if len(lengths) < 2 or min(lengths[-2:]) <= 0:
        raise NotRecorded("loop lengths not recorded")
    rows, length = lengths[-2:]
    family: Family = "softmax" if "softmax" in call.operator else "norm" if "rsqrt" in call.operator else "reduction"
    read, wrote, dtype = _moved(call, rows * length)
    return Cost(rows * length, read, wrote, dtype, "vector", family, 1, Rows(rows, length), ASSUMED)

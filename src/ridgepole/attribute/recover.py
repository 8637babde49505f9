"""Costs of ops whose arguments the trace records in part: the rest is read from their kernels' names and grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from ridgepole import dtypes
from ridgepole.attribute.names import dtype_of
from ridgepole.work.cost import assess
from ridgepole.work.op import Arg, Call, Cost, Op, Tensor

Grid = tuple[int, int, int] | None
Kernel = tuple[str, Grid]
"""A kernel's name and grid."""

INDEX = 8
"""Bytes of one index: torch's are int64."""


def recover(op: Op, kernels: Sequence[Kernel]) -> Cost | None:
    """The cost of an unpriced op, as far as its kernels make up for what was not recorded; else None."""
    call = op.call
    special = _SPECIAL.get(call.operator)
    if special is not None:
        found = special(call, kernels)
        if found is not None:
            return found
    if not call.tensors or all(t.dtype for t in call.tensors):
        return None
    dtype = next((d for name, _ in kernels if (d := dtype_of(name))), "")
    if not dtype:
        return None
    cost = assess(replace(call, args=tuple(_typed(arg, dtype) for arg in call.args)))
    return cost if isinstance(cost, Cost) and cost.family != "view" else None


def _typed(arg: Arg, dtype: str) -> Arg:
    """`arg` with its tensors of unknown dtype taken to be `dtype`."""
    if isinstance(arg, Tensor):
        return arg if arg.dtype else replace(arg, dtype=dtype)
    return tuple(_typed(one, dtype) for one in arg) if isinstance(arg, tuple) else arg


def _index_put(call: Call, kernels: Sequence[Kernel]) -> Cost | None:
    """The values are read and written once, each with its index; the indices themselves are not recorded."""
    values = call.tensor(2)
    if values is None or not values.shape or not values.dtype:
        return None
    rows = values.shape[0]
    return Cost(0, values.nbytes + rows * INDEX, values.nbytes, values.dtype, "vector", "scatter")


def _index(call: Call, kernels: Sequence[Kernel]) -> Cost | None:
    """Rows of the first tensor, as many as the gather kernel has blocks along its first axis."""
    source = call.tensor(0)
    if source is None or not source.dtype or not source.shape:
        return None
    for name, grid in kernels:
        if grid is not None and "vectorized_gather_kernel" in name:
            row = prod(source.shape[1:]) * dtypes.itemsize(source.dtype)
            return Cost(0, grid[0] * (row + INDEX), grid[0] * row, source.dtype, "vector", "gather")
    return None


_SPECIAL: dict[str, Callable[[Call, Sequence[Kernel]], Cost | None]] = {
    "aten::index_put_": _index_put,
    "aten::_index_put_impl_": _index_put,
    "aten::index_put": _index_put,
    "aten::index": _index,
}

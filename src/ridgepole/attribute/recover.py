"""Costs of ops whose arguments the trace records in part: the rest is read from their kernels' names and grids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ridgepole import dtypes
from ridgepole.attribute.lookups import Lookups, lookups, update
from ridgepole.attribute.names import dtype_of
from ridgepole.work.cost import assess, retyped
from ridgepole.work.op import Call, Cost, Op, Tensor

Grid = tuple[int, int, int] | None
Kernel = tuple[str, Grid]
"""A kernel's name and grid."""

INDEX = 8
"""Bytes of one index: torch's are int64."""


Sizes = Mapping[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]]
"""Output sizes of convolutions by the shapes of input and weight, as their backward passes record them."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a timeline's ops record of each other."""

    sizes: Sizes
    lookups: Lookups


NOTHING = Elsewhere({}, {})


def elsewhere(ops: Sequence[Op]) -> Elsewhere:
    """What `ops` record of each other."""
    return Elsewhere(convolution_sizes(ops), lookups(ops))


def recover(op: Op, kernels: Sequence[Kernel], known: Elsewhere = NOTHING) -> Cost | None:
    """The cost of an unpriced op, as far as its kernels and other ops make up for what was not recorded; else None."""
    call = _sized(op.call, known.sizes)
    if "SplitLookupFunction" in call.operator:
        return update(call, known.lookups)
    special = _SPECIAL.get(call.operator)
    if special is not None:
        found = special(call, kernels)
        if found is not None:
            return found
    if not call.tensors:
        return None
    if all(t.dtype for t in call.tensors):
        return _cost(call) if call is not op.call else None
    dtype = next((d for name, _ in kernels if (d := dtype_of(name))), "")
    if not dtype:
        return None
    typed = retyped(call, dtype)
    return _cost(replace(typed, outputs=tuple(replace(t, dtype=t.dtype or dtype) for t in typed.outputs)))


def _cost(call: Call) -> Cost | None:
    cost = assess(call)
    return cost if isinstance(cost, Cost) and cost.family != "view" else None


def convolution_sizes(ops: Iterable[Op]) -> Sizes:
    """What traces without strides and paddings (2021) still tell: a backward pass has its forward's output's shape.

    Two convolutions of the same input and weight shapes that differ in output are left out.
    """
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], set[tuple[int, ...]]] = {}
    for op in ops:
        if "convolution_backward" not in op.operator:
            continue
        x, grad, weight = _backward_shapes(op)
        if x and grad and weight:
            found.setdefault((x, weight), set()).add(grad)
    return {key: next(iter(shapes)) for key, shapes in found.items() if len(shapes) == 1}


def _backward_shapes(op: Op) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Shapes of input, output gradient and weight: aten's own order, or cuDNN's and MIOpen's."""
    first, second, weight = (t.shape if (t := op.call.tensor(i)) is not None else () for i in range(3))
    return (second, first, weight) if op.operator == "aten::convolution_backward" else (first, second, weight)


def _sized(call: Call, sizes: Sizes) -> Call:
    """A convolution with its output as another op records it, where it does not record its window."""
    x, weight = call.tensor(0), call.tensor(1)
    if not sizes or "convolution" not in call.operator or call.outputs or x is None or weight is None:
        return call
    shape = sizes.get((x.shape, weight.shape))
    return call if shape is None else replace(call, outputs=(Tensor(shape, x.dtype),))


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


def _topk(call: Call, kernels: Sequence[Kernel]) -> Cost | None:
    """Triton kernels' routing, (scores (t, e), k, ...): k values, int16 indices and one bit an expert come out."""
    scores, k = call.tensor(0), call.value(1)
    if scores is None or not scores.dtype or not isinstance(k, int) or len(scores.shape) != 2:
        return None
    tokens, choices = scores.shape
    wrote = tokens * k * (dtypes.itemsize(scores.dtype) + 2) + tokens * choices // 8
    return Cost(0, scores.nbytes, wrote, scores.dtype, "vector", "sort")


def _sort_tokens(call: Call, kernels: Sequence[Kernel]) -> Cost | None:
    """Triton kernels' routing, (weights (t, k), experts (t, k), ...): int32 orders both ways, and sorted weights."""
    weights, chosen = call.tensor(0), call.tensor(1)
    if weights is None or chosen is None or not weights.dtype or not chosen.dtype:
        return None
    wrote = chosen.numel * 8 + weights.nbytes
    return Cost(0, weights.nbytes + chosen.nbytes, wrote, weights.dtype, "vector", "gather", 3)


_SPECIAL: dict[str, Callable[[Call, Sequence[Kernel]], Cost | None]] = {
    "aten::index_put_": _index_put,
    "aten::_index_put_impl_": _index_put,
    "aten::index_put": _index_put,
    "aten::index": _index,
    "TopK": _topk,
    "SortTokens": _sort_tokens,
}

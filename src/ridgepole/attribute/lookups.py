"""Embedding tables of recommendation models: what a backward pass updates, by the lookups that it follows.

FBGEMM's backward node records the gradient only, (bags, all tables' width); which rows it updates its forward call
recorded. A trace has many calls of one lookup, whose number of indices varies a little from step to step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ridgepole import dtypes
from ridgepole.work.op import Call, Cost, Op, Rows, Tensor

INDEX = 8
"""Bytes of an index as it is sorted."""
STATE = 4
"""Bytes of the optimizer's state of a row (rowwise AdaGrad)."""

_FORWARD = re.compile(r"^fbgemm::split_embedding_codegen_lookup_(rowwise_\w+?)_function$")
_BACKWARD = re.compile(r"^torch::autograd::CppNode<SplitLookupFunction_(rowwise_\w+?)_Op>$")
_SORT = re.compile(r"RadixSortOnesweep\w*<\w+::\w+::DeviceRadixSortPolicy<(\w+), (\w+),|"
                   r"RadixSortOnesweep\w*<cub::DeviceRadixSortPolicy<(\w+), (\w+),")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lookup:
    """A lookup's size: indices of one call (the median of its calls), rows in its tables, a row's width and bytes."""

    indices: int
    rows: int
    width: float
    row_bytes: float


Lookups = Mapping[tuple[str, int, int], tuple[Lookup, ...]]
"""By optimizer, bags and number of tables: the lookups, each of its own tables."""


def lookups(ops: Iterable[Op]) -> Lookups:
    """The lookups of a timeline's ops."""
    counts: dict[tuple[str, int, int, Tensor, int], list[int]] = {}
    for op in ops:
        kind = _FORWARD.match(op.operator)
        if kind is None:
            continue
        tables, places, index, bounds, state = (op.call.tensor(i) for i in (1, 5, 11, 12, 20))
        if tables is None or places is None or index is None or bounds is None or state is None:
            continue
        if not (tables.numel and tables.dtype and places.numel and state.numel):
            continue
        key = (kind[1], (bounds.numel - 1) // places.numel, places.numel, tables, state.numel)
        counts.setdefault(key, []).append(index.numel)
    found: dict[tuple[str, int, int], tuple[Lookup, ...]] = {}
    for (kind_name, bags, number, tables, rows), indices in counts.items():
        width = tables.numel / rows
        typical = sorted(indices)[len(indices) // 2]
        one = Lookup(typical, rows, width, width * dtypes.itemsize(tables.dtype))
        at = (kind_name, bags, number)
        found[at] = (*found.get(at, ()), one)
    return found


def update(call: Call, known: Lookups) -> Cost | None:
    """The cost of a lookup's backward pass; None where no forward call, or several, can be its own.

    The gradient's width is the tables' number times a row's width, if all tables are alike; else the lookup must be
    the only one left of its number of bags.
    """
    kind = _BACKWARD.match(call.operator)
    grad = call.tensor(0)
    if kind is None or grad is None or len(grad.shape) != 2 or not grad.dtype:
        return None
    bags, width = grad.shape
    fitting = [(n, one) for (k, b, n), some in known.items() if (k, b) == (kind[1], bags) for one in some]
    exact = [one for n, one in fitting if round(n * one.width) == width]
    uneven = [one for n, one in fitting if n > 1 and one.width * n != width]
    chosen = exact if exact else uneven
    if len(chosen) != 1:
        return None
    one = chosen[0]
    touched = min(one.indices, one.rows)
    read = grad.nbytes + one.indices * INDEX + round(touched * (one.row_bytes + STATE))
    wrote = round(touched * (one.row_bytes + STATE))
    said = (
        f"the {one.indices:,} indices are those of a forward lookup of the same bags; each row is taken to be updated "
        "once, and as many rows as indices where the tables have them"
    )
    flops = round(one.indices * one.width + 4 * touched * one.width)
    return Cost(flops, read, wrote, grad.dtype, "vector", "optimizer", 1, Rows(1, one.indices), said)


def sort_pass(name: str, cost: Cost) -> int | None:
    """Bytes of one pass of a radix sort of an update's indices: keys and values read and written once."""
    found = _SORT.search(name)
    if found is None or cost.family != "optimizer" or not isinstance(cost.detail, Rows):
        return None
    key, value = (dtypes.find(text or "") for text in (found[1] or found[3], found[2] or found[4]))
    if key is None or value is None:
        return None
    return 2 * cost.detail.length * (dtypes.itemsize(key) + dtypes.itemsize(value))

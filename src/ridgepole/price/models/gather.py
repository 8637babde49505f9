"""Gathers and scatters: rows picked by an index. Short rows cost a block's start each, not their bytes."""

from __future__ import annotations

from ridgepole.price.kernel import Ask, Estimate, model
from ridgepole.price.models.elementwise import stream
from ridgepole.work.op import Rows


@model("gather")
def gather(ask: Ask) -> Estimate:
    return _indexed(ask, ask.constant("gather.fraction"))


@model("scatter")
def scatter(ask: Ask) -> Estimate:
    """As a gather, with atomic adds at the far end."""
    return _indexed(ask, ask.constant("scatter.fraction"))


def _indexed(ask: Ask, fraction: float) -> Estimate:
    base = stream(ask, ask.constant("issue.index"), fraction=fraction, elements=ask.written_elements)
    rows = _rows(ask)
    starts = ask.floor + rows * ask.constant("gather.row") / ask.sms
    if starts <= base.seconds:
        return base
    return Estimate(starts, "rows", f"{rows:,} short rows, a block's start each", base.grid, base.block)


def _rows(ask: Ask) -> int:
    """Index entries: the formula's rows, else the elements of the integer tensor among the arguments."""
    if isinstance(ask.cost.detail, Rows):
        return ask.cost.detail.rows
    counts = [t.numel for t in ask.op.call.tensors if t.dtype in ("int64", "int32")]
    count = max(counts, default=0)
    # An index as large as the output picks elements, not rows: many of them share a block.
    return count if count < ask.written_elements else count // 256

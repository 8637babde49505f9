"""Reductions, norms and softmax: independent rows, each worked by one block or several."""

from __future__ import annotations

from ridgepole.price import batch_norm
from ridgepole.price.kernel import Ask, Estimate, model
from ridgepole.price.models.elementwise import stream
from ridgepole.price.spread import THREADS
from ridgepole.work.op import Rows

WARP_ROW = 1024
"""Rows up to this long are kept in one warp's registers by PyTorch's softmax, longer ones take a block."""


def shape(ask: Ask) -> Rows:
    """Rows and length, from the formula or, where it gave none, all elements over the outputs."""
    if isinstance(ask.cost.detail, Rows):
        return ask.cost.detail
    rows = max(1, min((t.numel for t in ask.op.call.outputs), default=1))
    return Rows(rows, max(1, ask.elements // rows))


@model("reduction")
def reduction(ask: Ask) -> Estimate:
    """One pass; few rows are split over the whole GPU, and the last block of each adds up the parts."""
    rows = shape(ask)
    base = stream(ask, ask.constant("issue.reduce"))
    split = rows.rows <= ask.sms and rows.rows * rows.length > WARP_ROW
    stage = ask.constant("reduce.stage") if split else ask.constant("reduce.combine")
    if split and stage > base.seconds - ask.floor:
        return Estimate(base.seconds + stage, "two stages", "partial sums meet in memory", base.grid, base.block)
    return Estimate(base.seconds + stage, base.limit, base.why, base.grid, base.block)


@model("norm")
def norm(ask: Ask) -> Estimate:
    """A block a row walks it twice; few rows leave SMs idle, long rows do not stay in the L2 for the second walk."""
    rows = shape(ask)
    if batch_norm.stored(ask.op):
        return stream(ask, ask.constant("issue.plain"))
    if batch_norm.among(ask.op):
        return _batch_norm(ask)
    resident = ask.sms * ask.constant("norm.blocks")
    pace = ask.constant("norm.pace_rms" if "rms" in ask.op.operator else "norm.pace")
    waves = max(1.0, rows.rows / resident)
    serial = waves * (ask.constant("row.start") + rows.length / pace)
    again = _second_walk(ask, rows, resident)
    travel = ask.travel(ask.cost.bytes + again)
    return _rowwise(ask, rows, serial, travel, again)


def _batch_norm(ask: Ask) -> Estimate:
    """Channels are few and long: many blocks share each, in one pass for the sums and one to apply them."""
    apply = stream(ask, ask.constant("issue.plain"))
    sums = ask.floor + ask.travel(ask.cost.read) + ask.constant("reduce.combine")
    why = "one pass for each channel's sums, one to apply them"
    return Estimate(apply.seconds + sums, apply.limit, why, apply.grid, apply.block)


@model("softmax")
def softmax(ask: Ask) -> Estimate:
    rows = shape(ask)
    if rows.length <= WARP_ROW:
        return stream(ask, ask.constant("issue.softmax"), elements=rows.rows * rows.length)
    resident = ask.sms * ask.constant("softmax.blocks")
    waves = max(1.0, rows.rows / resident)
    serial = waves * (ask.constant("row.start") + rows.length / ask.constant("softmax.pace"))
    again = _second_walk(ask, rows, resident)
    return _rowwise(ask, rows, serial, ask.travel(ask.cost.bytes + again), again)


def _second_walk(ask: Ask, rows: Rows, resident: float) -> float:
    """Bytes read again from memory because the rows in flight do not fit the L2."""
    level = ask.machine.level("l2")
    if level is None or level.capacity is None:
        return 0.0
    share = min(rows.rows, resident) / rows.rows
    flying = ask.cost.read * share
    return float(ask.cost.read) if flying > level.capacity.value else 0.0


def _rowwise(ask: Ask, rows: Rows, serial: float, travel: float, again: float) -> Estimate:
    seconds = ask.floor + max(serial, travel)
    if serial > travel:
        why = f"{rows.rows:,} rows of {rows.length:,}: each block walks its row alone"
        return Estimate(seconds, "rows", why, rows.rows, THREADS)
    why = "rows in flight overflow the L2 and are read twice" if again else "bytes at achieved bandwidth"
    return Estimate(seconds, "dram", why, rows.rows, THREADS)

"""Sorts, top-k and scans."""

from __future__ import annotations

from dataclasses import replace

from ridgepole import dtypes
from ridgepole.price.kernel import Ask, Estimate, model
from ridgepole.price.models.rows import shape
from ridgepole.price.spread import THREADS, blocks_of

RADIX_BITS = 8
"""Bits of the key that one pass of a radix sort orders (CUB's onesweep)."""
INDEX_BYTES = 8


@model("sort")
def sort(ask: Ask) -> Estimate:
    """Radix sort: a pass for every 8 bits of the key reads and writes keys and indices; top-k only reads."""
    return replace(_radix(ask), whole=True)


def _radix(ask: Ask) -> Estimate:
    rows = shape(ask)
    source = next(iter(ask.op.call.tensors), None)
    size = dtypes.itemsize(source.dtype if source else ask.cost.dtype)
    passes = max(1, 8 * size // RADIX_BITS)
    elements = rows.rows * rows.length
    grid = blocks_of(elements)
    name = ask.op.operator.rpartition("::")[2]
    if name in ("topk", "kthvalue", "median", "mode"):
        waves = max(1.0, rows.rows / (2 * ask.sms))
        serial = waves * (passes + 1) * rows.length / ask.constant("sort.pace")
        travel = ask.travel(ask.cost.bytes)
        limit = "rows" if serial > travel else "dram"
        return Estimate(ask.floor + max(serial, travel), limit, f"{passes + 1} walks of each row", rows.rows, 1024)
    moved = passes * 2.0 * elements * (size + INDEX_BYTES)
    seconds = ask.floor * (1 + passes) + ask.travel(moved, ask.constant("sort.fraction"))
    return Estimate(seconds, "dram", f"{passes} passes over keys and indices", grid, THREADS)


@model("scan")
def scan(ask: Ask) -> Estimate:
    """Each step waits for the one before: a row's pace, not its bytes."""
    rows = shape(ask)
    elements = rows.rows * rows.length
    travel = ask.travel(ask.cost.bytes)
    if rows.rows == 1:
        return Estimate(
            2 * ask.floor + 2 * travel, "dram", "two passes over one long row", blocks_of(elements), THREADS
        )
    serial = elements / (ask.constant("scan.pace") * min(rows.rows, ask.sms))
    limit = "rows" if serial > travel else "dram"
    return Estimate(ask.floor + max(serial, travel), limit, f"{rows.rows:,} rows scanned side by side", rows.rows, 512)

"""Strided copies: neighbouring threads touch different sectors on one side, so each element moves a whole one."""

from __future__ import annotations

from ridgepole.price.kernel import Ask, Estimate, model
from ridgepole.price.models.elementwise import stream
from ridgepole.price.spread import THREADS, blocks_of

SECTOR = 32
"""Bytes the caches move at least: a quarter of a 128-byte line on every NVIDIA GPU since Maxwell."""


@model("transpose")
def transpose(ask: Ask) -> Estimate:
    """floor + elements x 32 B through the L2, or the bytes through memory where that is slower."""
    plain = stream(ask, ask.constant("issue.plain"))
    level = ask.machine.level("l2")
    known = level is not None and level.bandwidth is not None
    l2 = level.bandwidth.value if known else ask.machine.bandwidth  # type: ignore[union-attr]
    count = ask.written_elements
    sectors = ask.floor + ask.ramp(ask.cost.bytes) + count * SECTOR / (l2 * ask.constant("transpose.l2"))
    if sectors <= plain.seconds:
        return plain
    why = f"{count:,} elements x {SECTOR} B a sector through the {'L2' if known else 'memory'}"
    return Estimate(sectors, "l2 sectors", why, blocks_of(count), THREADS)

"""How a kernel spreads over the SMs: blocks, how many fit at once, and how many waves that makes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from ridgepole.machine.model import Machine

THREADS = 256
"""Threads of a block where the kernel's own choice is not known: what most elementwise kernels take, about."""


@dataclass(frozen=True, slots=True)
class Spread:
    """`elements` over `grid` blocks of `block` threads; `blocks_per_sm` resident, `wave` = that x SMs.

    `waves` is grid / wave, a fraction; the last wave is not full unless it is whole. Zero: not known.
    """

    elements: int
    grid: int
    block: int
    blocks_per_sm: int
    wave: int
    waves: float

    @property
    def launches(self) -> int:
        """Waves begun."""
        return ceil(self.waves)


def spread(machine: Machine, elements: int, grid: int, block: int = THREADS, per_sm: int = 0) -> Spread:
    """The spread of `grid` blocks of `block` threads; residency by threads and blocks unless `per_sm` says."""
    limits = machine.limits
    resident = per_sm
    if not resident and limits.threads_per_sm is not None:
        resident = int(limits.threads_per_sm.value) // max(1, block)
        if limits.blocks_per_sm is not None:
            resident = min(resident, int(limits.blocks_per_sm.value))
    resident = max(1, resident)
    wave = resident * max(1, int(limits.sms.value))
    return Spread(elements, grid, block, resident, wave, grid / wave)


def blocks_of(elements: int, block: int = THREADS) -> int:
    """Blocks for one element a thread."""
    return max(1, ceil(elements / block))

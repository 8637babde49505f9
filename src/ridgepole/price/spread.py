"""How a kernel spreads over the SMs: blocks, how many fit at once, and how many waves that makes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from ridgepole.machine.geometry import grid_geometry
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
    """The spread of `grid` blocks of `block` threads: `per_sm` resident where a model says, else as many as fit."""
    if per_sm:
        wave = per_sm * max(1, int(machine.limits.sms.value))
        return Spread(elements, grid, block, per_sm, wave, grid / wave)
    if machine.limits.threads_per_sm is None:
        return Spread(elements, grid, block, 0, 0, 0.0)
    fits = grid_geometry(grid, block, machine)
    return Spread(elements, grid, block, fits.blocks_per_sm, fits.wave, fits.waves)


def blocks_of(elements: int, block: int = THREADS) -> int:
    """Blocks for one element a thread."""
    return max(1, ceil(elements / block))

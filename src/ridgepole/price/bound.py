"""The physical bound: nothing runs faster than its arithmetic at peak, or its bytes at full bandwidth.

Roofline, Williams et al. 2009. The one place that holds it; `kernel_time` clamps every model to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ridgepole.machine.model import Machine
from ridgepole.price.flags import MATRIX_FAMILIES, Flags, compute_dtype
from ridgepole.work.op import Cost


@dataclass(frozen=True, slots=True)
class Bound:
    """Seconds at peak rate, and at the bandwidth of the fastest level that holds all the bytes (`level`).

    `compute` is 0 where the machine's rate is not known.
    """

    compute: float
    memory: float
    level: str

    @property
    def seconds(self) -> float:
        return max(self.compute, self.memory)


def physical(cost: Cost, machine: Machine, flags: Flags) -> Bound:
    """The least time in which `machine` could do `cost`, caches warm."""
    bandwidth, level = machine.bandwidth, "dram"
    for name in ("l2", "llc"):
        cache = machine.level(name)
        if cache is None or cache.capacity is None or cache.bandwidth is None:
            continue
        if cost.bytes <= cache.capacity.value and cache.bandwidth.value > bandwidth:
            bandwidth, level = cache.bandwidth.value, name
    return Bound(compute_seconds(cost, machine, flags), cost.bytes / bandwidth, level)


def rate(cost: Cost, machine: Machine, flags: Flags) -> float | None:
    """Peak FLOP/s of the unit that does the arithmetic of `cost`; None where it is not known."""
    dtype = compute_dtype(cost, machine, flags)
    unit = "tensor" if cost.family in MATRIX_FAMILIES else cost.unit
    figure = machine.rate(unit, dtype)
    return None if figure is None else figure.value


def compute_seconds(cost: Cost, machine: Machine, flags: Flags) -> float:
    """FLOPs / peak rate; 0 where the rate is not known."""
    peak = rate(cost, machine, flags)
    return cost.flops / peak if peak else 0.0

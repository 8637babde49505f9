"""The roof over an operation, and which of three times is its longest (Roofline, Williams et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Limit = Literal["compute", "memory", "overhead"]


@dataclass(frozen=True, slots=True)
class Roof:
    """FLOP/s and bytes a second at most, and the seconds of a call that does nothing."""

    peak: float
    bandwidth: float
    overhead: float

    @property
    def ridge(self) -> float:
        """The intensity, FLOP/B, from which arithmetic is the limit."""
        return self.peak / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """FLOP/s that work of `intensity` can reach: min(peak, intensity x bandwidth)."""
        return min(self.peak, intensity * self.bandwidth)


def bucket(flops: float, nbytes: float, roof: Roof) -> Limit:
    """The longest of FLOPs / peak, bytes / bandwidth and the overhead of a call."""
    compute, memory = flops / roof.peak, nbytes / roof.bandwidth
    if roof.overhead > max(compute, memory):
        return "overhead"
    return "compute" if compute > memory else "memory"

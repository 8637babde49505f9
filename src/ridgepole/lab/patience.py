"""How long a call will take, from how fast the last one went, so that nobody waits for what is too long."""

from __future__ import annotations

from dataclasses import dataclass, field

from ridgepole import units
from ridgepole.lab.bench import Bench

CPU, GPU = 0.3, 1.0
"""Seconds that one call may take on a CPU and on a GPU: it is made half a dozen times."""
QUICK = 0.5
"""Share of them in a quick run."""


@dataclass
class Patience:
    """`most`: seconds a call may take. `rates`: FLOP/s of each kind of call when it last ran."""

    most: float
    rates: dict[str, float] = field(default_factory=dict)

    def predicted(self, kind: str, flops: float) -> float | None:
        """Seconds, were it as fast as the last one of its kind; None for the first."""
        rate = self.rates.get(kind)
        return flops / rate if rate else None

    def why_not(self, kind: str, flops: float) -> str:
        """Why a call is not made, "" where it may be."""
        seconds = self.predicted(kind, flops)
        if seconds is None or seconds <= self.most:
            return ""
        return f"not run: by its rate so far, a call takes more than {units.seconds(self.most)}"

    def learn(self, kind: str, flops: float, seconds: float) -> None:
        if seconds > 0:
            self.rates[kind] = flops / seconds


def patience(bench: Bench) -> Patience:
    """As long as an experiment on this device may take."""
    return Patience((CPU if bench.on_cpu else GPU) * (QUICK if bench.quick else 1.0))

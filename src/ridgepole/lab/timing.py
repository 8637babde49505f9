"""Both ways of timing, named: each call waited for, and many queued with one wait; and a third, replayed as a graph."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ridgepole.kernels.device import Device, Run

Method = Literal["waited", "queued", "graph"]

SAMPLES = 9
LEAST_SAMPLES = 3
PATIENCE = 1.0
"""Seconds that all samples of one timing may take together, but for the least number of them."""
BATCH = 5e-3
"""Seconds of device work in one sample of queued calls: launch and clock-reading costs vanish in it."""
QUICK = 0.25
"""Share of the time and samples that a quick run takes."""
MOST_QUEUED = 1000
"""Calls queued at once: below the depth of any launch queue, so that queueing itself never waits."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call: the median of `samples`, with the quartiles, and how they were taken.

    "waited": from before a call until the device was done with it, by the host's clock; launch and wait are in it.
    "queued": calls queued back to back with one wait, per call. "graph": the same, replayed as one graph.
    """

    seconds: float
    low: float
    high: float
    samples: int
    method: Method

    @property
    def spread(self) -> float:
        """Distance of the quartiles as a share of the median."""
        return (self.high - self.low) / self.seconds if self.seconds else 0.0


def waited(device: Device, run: Run, *, quick: bool = False) -> Timing:
    """Each call waited for."""
    once = _warm(device, run)
    times = []
    for i in range(_samples(quick, once) * 3):
        start = time.perf_counter()
        run(i)
        device.synchronize()
        times.append(time.perf_counter() - start)
    return _timing(times, "waited")


def queued(device: Device, run: Run, *, quick: bool = False, count: int | None = None) -> Timing:
    """Many queued, one wait. The count fills a few milliseconds of device time, where it is not given."""
    once = _warm(device, run)
    count = count or _count(once, quick)
    return _timing([device.elapsed(run, count) / count for _ in range(_samples(quick, once * count))], "queued")


def graphed(device: Device, run: Run, *, count: int = 100, quick: bool = False) -> Timing | None:
    """`count` calls replayed as one graph, per call; None where the device has no graphs."""
    _warm(device, run)
    replay = device.graph(run, count)
    if replay is None:
        return None
    again: Callable[[int], object] = lambda i: replay()  # noqa: E731
    once = _warm(device, again)
    replays = _count(once, quick)
    times = [device.elapsed(again, replays) / replays / count for _ in range(_samples(quick, once * replays))]
    return _timing(times, "graph")


def _samples(quick: bool, seconds: float) -> int:
    """How many samples of `seconds` each: fewer where they are long."""
    share = QUICK if quick else 1.0
    return max(LEAST_SAMPLES, min(round(SAMPLES * share), int(PATIENCE * share / max(seconds, 1e-9))))


def _warm(device: Device, run: Run) -> float:
    """Seconds of one call after the first, which compiles, loads and allocates."""
    run(0)
    device.synchronize()
    return device.elapsed(run, 1)


def _count(once: float, quick: bool) -> int:
    wanted = BATCH * (QUICK if quick else 1.0)
    return min(MOST_QUEUED, max(1, round(wanted / max(once, 1e-9))))


def _timing(times: Sequence[float], method: Method) -> Timing:
    ordered = sorted(times)
    quarter = len(ordered) // 4
    return Timing(statistics.median(ordered), ordered[quarter], ordered[-1 - quarter], len(ordered), method)

"""How far a CPU runs ahead of its device: kernels of a chosen length, queued, and the launches a queue holds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from ridgepole.errors import BadInput
from ridgepole.kernels.device import Device, Run
from ridgepole.lab import timing
from ridgepole.lab.bench import Bench

TRIAL = (50_000, 150_000)
"""Rounds of `spin` whose difference is the time of a round: 50 µs and more each, long against any launch."""
LONG = 0.15
"""Seconds of the kernel behind which launches are queued: MOST_LAUNCHES take less even at 7 µs each."""
MOST_LAUNCHES = 20_000
STILL_RUNNING = 0.8
"""Until this share of LONG has passed, the long kernel cannot have made room in the queue."""
BLOCKED = 50.0
"""A launch that takes so many times the median one waited, for room or for the system."""
LEAST_BLOCKED = 1e-3


@dataclass(frozen=True, slots=True)
class Spinning:
    """Seconds of a round of one thread of `spin`, and of a kernel around it, in a graph (0 where there are none)."""

    a_round: float
    around: float
    by_graph: bool

    def rounds(self, seconds: float) -> int:
        """Rounds of a kernel that takes `seconds` on the device; at least one."""
        return max(1, round((seconds - self.around) / self.a_round))


@dataclass(frozen=True, slots=True)
class Queued:
    """A kernel queued back to back: seconds on the device and of wall clock a call.

    `device` is from a graph, start and gap included, or without graphs the kernel's rounds alone.
    """

    rounds: int
    device: float
    wall: float
    spread: float

    @property
    def idle(self) -> float:
        """Share of the wall clock at which no kernel ran."""
        return max(0.0, 1.0 - self.device / self.wall) if self.wall > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Depth:
    """Launches made before one waited for room. `blocked`: that one's seconds; None: none waited, so there is more."""

    launches: int
    blocked: float | None


def calibrate(bench: Bench) -> Spinning:
    """How long `spin` takes here, by graph where there are any. Raises BadInput where time does not grow with work."""
    few, many = (_graphed(bench, rounds) for rounds in TRIAL)
    by_graph = few is not None and many is not None
    if few is None or many is None:
        few, many = (bench.time(bench.kernel("spin", 1, rounds).run).low for rounds in TRIAL)
    a_round = (many - few) / (TRIAL[1] - TRIAL[0])
    if a_round <= 0:
        raise BadInput("three times the rounds took no more time: this machine is too disturbed to measure launches")
    around = (_graphed(bench, 1) or 0.0) if by_graph else 0.0
    return Spinning(a_round, around, by_graph)


def _graphed(bench: Bench, rounds: int) -> float | None:
    found = timing.graphed(bench.device, bench.kernel("spin", 1, rounds).run, quick=bench.quick)
    return None if found is None else found.low


def queued(bench: Bench, spinning: Spinning, seconds: float) -> Queued:
    """`spin` of about `seconds` on the device, queued back to back."""
    rounds = spinning.rounds(seconds)
    ready = bench.kernel("spin", 1, rounds)
    by_graph = timing.graphed(bench.device, ready.run, quick=bench.quick) if spinning.by_graph else None
    device = by_graph.seconds if by_graph is not None else rounds * spinning.a_round
    wall = bench.time(ready.run)
    return Queued(rounds, device, wall.seconds, wall.spread)


def depth(bench: Bench, spinning: Spinning) -> Depth:
    """Launches of the empty kernel behind a long one until a launch call waits for room."""
    long = bench.kernel("spin", 1, spinning.rounds(LONG))
    empty = bench.kernel("empty")
    start = time.perf_counter()
    long.run()
    bench.device.synchronize()
    lasts = time.perf_counter() - start
    return launches(bench.device, long.run, empty.run, lasts)


def launches(
    device: Device, long: Run, short: Run, lasts: float, now: Callable[[], float] = time.perf_counter
) -> Depth:
    """As `depth`, with a kernel that `lasts` so many seconds.

    A call that waits for room can only return once the long kernel is done; a call that is late before that was held
    up by the system, and is no sign of a full queue.
    """
    device.synchronize()
    taken: list[float] = []
    begun = now()
    long(0)
    for count in range(MOST_LAUNCHES):
        before = now()
        short(count)
        after = now()
        took = after - before
        done = after - begun >= STILL_RUNNING * lasts
        if done and taken and took >= max(LEAST_BLOCKED, BLOCKED * statistics.median(taken)):
            device.synchronize()
            return Depth(count, took)
        if done:
            break
        taken.append(took)
    device.synchronize()
    return Depth(len(taken), None)

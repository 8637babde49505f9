"""What it costs to run at all on a CUDA machine: dispatch, launch, floor, gap in a graph, round trip, queue depth.

The kernel is a multiply of 1,024 floats: 8 KiB and 1,024 FLOP take under 3 ns at the roofs of any GPU, so what is left
is overhead.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ridgepole.errors import Missing
from ridgepole.kernels.device import Device, Run

ELEMENTS = 1024
BATCHES = 15
CALLS = 300
"""Calls of a batch: fewer than any queue is deep, so that the CPU never waits in one."""
WARM = 200
GRAPH_CALLS = 1000
LONG_ROUNDS = 250_000_000
"""Of `spin`: half a second at 4 cycles each, behind which launches queue up. It is never waited for twice."""
BLOCKED = 2e-3
"""Seconds from which a launch call must have waited for room."""
MOST_QUEUED = 20_000


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Seconds, medians; `queue_depth` counts launches. See `machine.model.Overheads` for what each is."""

    dispatch: float
    launch: float
    floor: float
    graph_gap: float
    round_trip: float
    queue_depth: int


def per_call(device: Device, run: Run, calls: int = CALLS, batches: int = BATCHES) -> float:
    """Median seconds of the CPU's side of one call, the device's work going on behind it."""
    times = []
    for _ in range(batches):
        device.synchronize()
        start = time.perf_counter()
        for i in range(calls):
            run(i)
        times.append((time.perf_counter() - start) / calls)
    device.synchronize()
    return statistics.median(times)


def measure(device: Device, torch: Any) -> HostCosts:
    """All of them, through torch's own operators. Raises Missing where the device has no graphs."""
    x = torch.randn(ELEMENTS, device=device.torch)
    y = torch.empty_like(x)

    def tiny(i: int) -> object:
        return torch.mul(x, 2.0, out=y)

    def trip(i: int) -> None:
        tiny(i)
        device.synchronize()

    for i in range(WARM):
        tiny(i)
    single, chain = device.graph(tiny, 1), device.graph(tiny, GRAPH_CALLS)
    if single is None or chain is None:
        raise Missing(f"{device.name} has no graphs, so what it costs to run at all is not measured")
    once, many = single, chain
    op = per_call(device, tiny)
    launch = per_call(device, lambda i: once(), CALLS // 3)
    floor, gap = kernels_of(torch, many)
    return HostCosts(
        dispatch=max(op - launch, 1e-8),
        launch=launch,
        floor=floor,
        graph_gap=gap,
        round_trip=per_call(device, trip, CALLS // 3),
        queue_depth=depth(device, tiny),
    )


def kernels_of(torch: Any, replay: Callable[[], None]) -> tuple[float, float]:
    """Median seconds of a graph's kernels, and of the idle time between two, as the profiler records them."""
    from torch.profiler import ProfilerActivity, profile

    replay()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as recording:
        replay()
        torch.cuda.synchronize()
    found = recording.profiler.kineto_results.events()
    spans = sorted((e.start_ns(), e.duration_ns()) for e in found if "Memcpy" not in e.name() and e.duration_ns() > 0)
    spans = [span for span in spans if span[1] < BLOCKED * 1e9]
    if len(spans) < GRAPH_CALLS // 2:
        raise Missing(
            "the profiler recorded no kernels of a graph (CUPTI needs permission): floor and gap not measured"
        )
    return floor_and_gap(spans)


def floor_and_gap(spans: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Of (start, duration) in nanoseconds, in order: median duration, and median idle between two (at least 10 ns)."""
    gaps = [b[0] - (a[0] + a[1]) for a, b in pairwise(spans)]
    floor = statistics.median(duration for _, duration in spans)
    return floor * 1e-9, max(10.0, statistics.median(gaps)) * 1e-9


def depth(device: Device, tiny: Run) -> int:
    """Launches issued behind a long kernel until a launch call waits for room."""
    from ridgepole.kernels.prepare import prepare

    long = prepare(device, "spin", 32, LONG_ROUNDS)
    long.run()
    for count in range(MOST_QUEUED):
        start = time.perf_counter()
        tiny(count)
        if time.perf_counter() - start > BLOCKED:
            device.synchronize()
            return count + 1
    device.synchronize()
    return MOST_QUEUED

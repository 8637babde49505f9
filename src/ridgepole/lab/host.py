"""What it costs to run at all on a CUDA machine: dispatch, launch, floor, gap in a graph, round trip, queue depth.

The kernel is a multiply of 1,024 floats: 8 KiB and 1,024 FLOP take under 3 ns at the roofs of any GPU, so what is left
is overhead.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ridgepole.errors import Missing
from ridgepole.lab import launch_costs, running_ahead
from ridgepole.lab.bench import Bench

ELEMENTS = 1024
GRAPH_CALLS = 1000
LEAST = 1e-8
"""Seconds of dispatch and of a gap at least: what a machine file takes."""
LONGEST = 2e-3
"""Seconds past which a recorded kernel is none of the small ones."""


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Seconds, medians; `queue_depth` counts launches. See `machine.model.Overheads` for what each is."""

    dispatch: float
    launch: float
    floor: float
    graph_gap: float
    round_trip: float
    queue_depth: int


def measure(bench: Bench) -> HostCosts:
    """All of them, through torch's own operators. Raises Missing where the device has no graphs."""
    device, torch = bench.device, bench.torch
    x = torch.randn(ELEMENTS, device=device.torch)
    y = torch.empty_like(x)

    def tiny(i: int) -> object:
        return torch.mul(x, 2.0, out=y)

    def trip(i: int) -> None:
        tiny(i)
        device.synchronize()

    single, chain = device.graph(tiny, 1), device.graph(tiny, GRAPH_CALLS)
    if single is None or chain is None:
        raise Missing(f"{device.name} has no graphs, so what it costs to run at all is not measured")
    replay = single
    op = launch_costs.of_cpu(device, tiny).seconds
    launch = launch_costs.of_cpu(device, lambda i: replay()).seconds
    behind = running_ahead.depth(bench, running_ahead.calibrate(bench))
    # Last: what the profiler leaves behind slows launches.
    floor, gap = kernels_of(torch, chain)
    return HostCosts(
        dispatch=max(op - launch, LEAST),
        launch=launch,
        floor=floor,
        graph_gap=gap,
        round_trip=launch_costs.of_cpu(device, trip).seconds,
        queue_depth=behind.launches,
    )


def kernels_of(torch: Any, replay: Callable[[], None]) -> tuple[float, float]:
    """Median seconds of a graph's kernels, and of the idle time between two, as the profiler records them."""
    from torch.profiler import ProfilerActivity, profile

    replay()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as recording:
        replay()
        torch.cuda.synchronize()
    found = recording.profiler.kineto_results.events()
    spans = sorted((e.start_ns(), e.duration_ns()) for e in found if "Memcpy" not in e.name() and e.duration_ns() > 0)
    spans = [span for span in spans if span[1] < LONGEST * 1e9]
    if len(spans) < GRAPH_CALLS // 2:
        raise Missing(
            "the profiler recorded no kernels of a graph (CUPTI needs permission): floor and gap not measured"
        )
    return floor_and_gap(spans)


def floor_and_gap(spans: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Of (start, duration) in nanoseconds, in order: median duration, and median idle between two (at least 10 ns)."""
    gaps = [b[0] - (a[0] + a[1]) for a, b in pairwise(spans)]
    floor = statistics.median(duration for _, duration in spans)
    return floor * 1e-9, max(LEAST, statistics.median(gaps) * 1e-9)

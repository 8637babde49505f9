"""What it costs to run at all on the CUDA machine at hand: dispatch, launch, floor, gap, round trip, queue depth.

    python bench/host_costs.py [--json FILE]

Each figure is the median of several batches, unprofiled, with its spread. A tiny multiply of 1,024 floats is the
kernel: 8 KiB moved and 1,024 FLOP need under 3 ns at the roofs of any GPU here, so what is left is overhead.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch


def per_call(run: Callable[[], object], calls: int, batches: int = 15) -> tuple[float, float, float]:
    """Median, least and greatest seconds a call of the CPU alone, over batches short enough not to fill the queue."""
    times = []
    for _ in range(batches):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - start) / calls)
        torch.cuda.synchronize()
    return statistics.median(times), min(times), max(times)


def on_device(run: Callable[[], object], batches: int = 9) -> tuple[float, float, float]:
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(batches):
        a.record()
        run()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b) * 1e-3)
    return statistics.median(times), min(times), max(times)


def graph_of(run: Callable[[], object], calls: int) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            run()
    return graph


def queue_depth(run: Callable[[], object]) -> int:
    """Launches issued behind a kernel that never ends (for the purpose) until one launch call blocks."""
    torch.cuda.synchronize()
    torch.cuda._sleep(2_000_000_000)
    for count in range(20_000):
        start = time.perf_counter()
        run()
        if time.perf_counter() - start > 5e-3:
            torch.cuda.synchronize()
            return count
    torch.cuda.synchronize()
    return -1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    options = parser.parse_args()
    x = torch.randn(1024, device="cuda")
    y = torch.empty_like(x)
    tiny = lambda: torch.mul(x, 2.0, out=y)  # noqa: E731
    for _ in range(200):
        tiny()
    rows: dict[str, object] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    rows["mul_out"] = per_call(tiny, 300)
    rows["mul"] = per_call(lambda: x * 2.0, 300)
    rows["view"] = per_call(lambda: x.view(32, 32), 3000)
    w = torch.randn(256, 256, device="cuda", dtype=torch.bfloat16)
    rows["mm"] = per_call(lambda: w @ w, 300)
    try:
        import cupy

        empty = cupy.RawKernel(r'extern "C" __global__ void empty() {}', "empty")
        empty.compile()
        rows["cupy_empty_launch"] = per_call(lambda: empty((1,), (32,), ()), 300)
    except Exception as error:
        rows["cupy_empty_launch"] = str(error)[:200]

    def round_trip() -> None:
        tiny()
        torch.cuda.synchronize()

    rows["round_trip"] = per_call(round_trip, 200)
    chained = graph_of(tiny, 1000)
    chained.replay()
    rows["graph_1000_tiny"] = on_device(chained.replay)
    single = graph_of(tiny, 1)
    single.replay()
    rows["graph_of_one_cpu"] = per_call(single.replay, 100)

    def loop() -> None:
        for _ in range(1000):
            tiny()

    rows["eager_1000_tiny_device"] = on_device(loop)
    rows["queue_depth"] = queue_depth(tiny)
    for name, value in rows.items():
        print(name, value)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows, out, indent=1)


if __name__ == "__main__":
    main()

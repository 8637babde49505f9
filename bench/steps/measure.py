"""Time whole steps on the CUDA GPU at hand: truth to hold prices of programs against.

    python bench/steps/measure.py OUT.jsonl [--seconds N] [--compiled]

A line a step: "wall", seconds a step eager, by a stopwatch around batches of steps, median of nine, with least and
most; "busy", device seconds a step of its kernels and copies, by the profiler, in runs apart from the stopwatch;
"kernels" a step; "graph", seconds a replay, back to back, of the inference steps; "compiled" with its own wall and
busy. Stops after N seconds.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from pathlib import Path

import torch
from models import COMPILED, STEPS, Step
from torch.profiler import ProfilerActivity, profile

BATCHES = 9
BATCH_SECONDS = 0.12
RECORDED = 3


def stopwatch(step: Step) -> dict[str, float]:
    """Seconds a step, over batches that take BATCH_SECONDS."""
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    many = max(2, round(BATCH_SECONDS / (time.perf_counter() - start)))
    times = []
    for _ in range(BATCHES):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(many):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / many)
    return {"median": statistics.median(times), "low": min(times), "high": max(times)}


def busy(step: Step) -> tuple[float, float, dict[str, float]]:
    """Device seconds and kernels a step, and the seconds of each kernel's name."""
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as recording:
        for _ in range(RECORDED):
            step()
        torch.cuda.synchronize()
    found = [e for e in recording.profiler.kineto_results.events() if e.duration_ns() > 0]
    found = [e for e in found if str(e.device_type()).endswith("CUDA")]
    names: dict[str, float] = {}
    for e in found:
        names[e.name()[:120]] = names.get(e.name()[:120], 0.0) + e.duration_ns() / RECORDED * 1e-9
    return sum(names.values()), len(found) / RECORDED, names


def as_graph(step: Step) -> Step:
    """The step recorded as one CUDA graph, warmed up on a side stream as torch asks."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def measure(name: str, *, compiled: bool) -> dict[str, object]:
    step = STEPS[name]("cuda")
    for _ in range(3):
        step()
    row: dict[str, object] = {"step": name, "wall": stopwatch(step)}
    if "training" not in name:
        row["graph"] = stopwatch(as_graph(step))
    row["busy"], row["kernels"], row["names"] = busy(step)
    if compiled and name in COMPILED:
        fast = torch.compile(step)
        for _ in range(3):
            fast()
        row["compiled"] = stopwatch(fast)
        row["compiled_busy"], row["compiled_kernels"], _ = busy(fast)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--compiled", action="store_true")
    options = parser.parse_args()
    start = time.monotonic()
    with options.out.open("w") as out:
        for name in STEPS:
            if time.monotonic() - start > options.seconds:
                break
            try:
                row = measure(name, compiled=options.compiled)
            except Exception as error:
                row = {"step": name, "error": str(error).splitlines()[0][:200]}
            row.update(torch=torch.__version__, device=torch.cuda.get_device_name())
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(f"{time.monotonic() - start:6.1f} s", {k: v for k, v in row.items() if k != "names"}, flush=True)
            gc.collect()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

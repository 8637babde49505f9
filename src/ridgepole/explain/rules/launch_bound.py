"""The GPU waits for its CPU to launch the next small kernel: replay the step as one graph."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from ridgepole import units
from ridgepole.explain.case import Case
from ridgepole.explain.finding import Finding
from ridgepole.explain.findings import rule

LAUNCHING = ("launch", "dispatch", "python", "gap")
"""Idle that a graph removes: the CPU was on its way to the next launch."""
EDGES = ("before-first", "after-last")
LEAST_SHARE = 0.1
FEWEST_KERNELS = 10


@rule("launch-bound")
def launch_bound(case: Case) -> Finding | None:
    """Predicted window after: GPU busy time + one graph gap a kernel + idle of causes a graph leaves alone."""
    outside = [(span, work) for span, work in case.spans if not span.graph]
    idle = case.ns(*LAUNCHING)
    edges = case.ns(*EDGES)
    # The lead-in of a window cut at its first CPU op is launching too; a long one is something else's set-up.
    if case.share(edges) < 0.2:
        idle += edges
    if case.on_cpu or len(outside) < FEWEST_KERNELS or case.share(idle) < LEAST_SHARE:
        return None
    gaps = round(len(outside) * case.graph_gap_ns)
    gain = idle - gaps
    if gain <= 0:
        return None
    after = case.window - gain
    starts = sorted(span.start for span, _ in outside)
    apart = median(b - a for a, b in pairwise(starts))
    each = median(span.ns for span, _ in outside)
    per_step = f" ({case.steps} steps, {units.nanoseconds(round(after / case.steps))} each)" if case.steps > 1 else ""
    if case.ledger.kind == "priced":
        how = 'capture the step with torch.cuda.graph(...), or torch.compile(step, mode="reduce-overhead")'
    else:
        how = 'torch.compile(step, mode="reduce-overhead"), or capture the step with torch.cuda.graph(...)'
    return Finding(
        id="launch-bound",
        fix="cuda-graph",
        summary=(
            f"{units.percent(case.share(idle))} of this window the GPU waited for its CPU: {len(outside):,} kernels, "
            f"launched one by one, median {units.nanoseconds(round(apart))} apart, each running a median of "
            f"{units.nanoseconds(round(each))}."
        ),
        fix_summary=(
            f"one CUDA graph per step: {units.nanoseconds(case.window)} → {units.nanoseconds(after)}{per_step}"
        ),
        how=how,
        gain_ns=gain,
        after_ns=after,
        arithmetic=(
            f"{units.nanoseconds(idle)} of idle while launching - {len(outside):,} kernels x "
            f"{units.nanoseconds(round(case.graph_gap_ns))} graph gap = {units.nanoseconds(gain)}"
        ),
        upper_bound=case.from_trace_alone,
        evidence={
            "kernels": len(outside),
            "idle_ns": idle,
            "median_apart_ns": apart,
            "median_kernel_ns": each,
            "graph_gap_ns": case.graph_gap_ns,
            "steps": case.steps,
            "after_per_step_ns": round(after / case.steps),
        },
    )

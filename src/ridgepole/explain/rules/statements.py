"""What is true of the run but has no fix to name: time nobody could explain, work already at the roof."""

from __future__ import annotations

from ridgepole import units
from ridgepole.explain.case import Case
from ridgepole.explain.finding import Finding
from ridgepole.explain.findings import rule

MUCH = 0.25
"""Share of the window from which unexplained time is said."""
NEAR = 0.7
"""Share of the roof from which arithmetic is as fast as it gets in practice."""
FAR = 0.2
"""Share of the roof under which arithmetic cannot be what takes the time."""
EDGES = 0.2
"""Share of the window from which time outside the device's own work is said."""


@rule("unknown-time")
def unknown_time(case: Case) -> Finding | None:
    """More than a quarter of the window is in kernels nobody can account for."""
    ns = sum(e.ns for e in case.device.entries if e.bucket == "unknown")
    if case.share(ns) < MUCH:
        return None
    if case.machine is None:
        why, how = "the machine is not known", "name it with --on, for example --on a100"
    else:
        why = "their shapes were not recorded"
        how = "record with record_shapes=True, or name an eager trace of the same program with --beside"
    return _statement(
        case, "unknown-time", f"{units.percent(case.share(ns))} of this window cannot be explained: {why}.", how, ns
    )


@rule("idle-unexplained")
def idle_unexplained(case: Case) -> Finding | None:
    """The GPU idled and the trace holds no CPU events that would say why."""
    ns = case.ns("idle-unrecorded-cpu")
    if case.share(ns) < MUCH:
        return None
    return _statement(
        case,
        "idle-unexplained",
        f"{units.percent(case.share(ns))} of this window the GPU was idle and the trace has no CPU events to say why.",
        "record with ProfilerActivity.CPU as well",
        ns,
    )


@rule("outside-work")
def outside_work(case: Case) -> Finding | None:
    """A good part of the window lies before the first launch or after the last work."""
    ns = case.ns("before-first", "after-last")
    if case.share(ns) < EDGES:
        return None
    said = f"{units.percent(case.share(ns))} of this window lies before the GPU's first launch or after its last work."
    how = "prepare inputs ahead (a data loader's workers), or leave that stretch out with a step marker"
    return _statement(case, "outside-work", said, how, ns)


@rule("stalled")
def stalled(case: Case) -> Finding | None:
    """Launched work that did not start: another stream, rank or process held it up."""
    ns = case.ns("stall")
    if case.share(ns) < EDGES:
        return None
    said = f"{units.percent(case.share(ns))} of this window launched work waited for another stream, rank or process."
    return _statement(case, "stalled", said, "look at the same window of the other ranks; stragglers show there", ns)


@rule("compute-bound")
def compute_bound(case: Case) -> Finding | None:
    """Most of the window is arithmetic: only less work, or fewer bits, wins anything large."""
    ns = case.device.buckets["compute"]
    if case.share(ns) < 0.5:
        return None
    rows = [row for row in case.device.ops if row.bucket == "compute"]
    known = sum(row.known_ns for row in rows)
    roof = sum((row.efficiency or 0.0) * row.known_ns for row in rows)
    if known and roof / known < FAR:
        return None
    reached = f", at {units.percent(roof / known)} of the roof" if known else ""
    verdict = ": the hardware does what it was built for" if known and roof / known >= NEAR else ""
    top = ", ".join(dict.fromkeys(row.op for row in rows[:3]))
    return _statement(
        case,
        "compute-bound",
        f"{units.percent(case.share(ns))} of this window is arithmetic ({top}){reached}{verdict}.",
        "a lower precision (bf16, fp8), or less work",
        ns,
    )


def _statement(case: Case, name: str, summary: str, how: str, ns: int) -> Finding:
    return Finding(
        id=name,
        fix="none",
        summary=summary,
        fix_summary="",
        how=how,
        gain_ns=0,
        after_ns=case.window,
        arithmetic="",
        upper_bound=False,
        evidence={"ns": ns},
    )

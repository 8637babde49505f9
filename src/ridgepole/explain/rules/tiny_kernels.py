"""Kernels too small for the machine: each costs its floor, whatever it computes."""

from __future__ import annotations

from ridgepole import units
from ridgepole.attribute.short import short
from ridgepole.explain.case import Case
from ridgepole.explain.finding import Finding
from ridgepole.explain.findings import rule

LEAST_SHARE = 0.03
FLOORS = 10
"""Floors over which something other than its smallness slows a kernel: a core taken by another process, say."""
FUSED_INTO = 4
"""Assumed: fusion merges about four neighbouring small kernels into one."""


@rule("kernel-floor")
def kernel_floor(case: Case) -> Finding | None:
    """Time in kernels whose floor exceeds both roofs. Gain: three of four such kernels fused away.

    Small matrix products have a rule of their own: they are batched, not fused.
    """
    all_small = [(span, work) for span, work in case.spans if work.cause == "kernel-floor"]
    small = [
        (span, work)
        for span, work in all_small
        if (not work.floor or span.ns <= FLOORS * work.floor * 1e9) and case.small_product(span, work) is None
    ]
    whole = sum(span.ns for span, _ in all_small)
    booked = round(case.ns("kernel-floor") * sum(span.ns for span, _ in small) / whole) if whole else 0
    if len(small) < 2 or case.share(booked) < LEAST_SHARE:
        return None
    gain = round(booked * (1 - 1 / FUSED_INTO))
    names: dict[str, int] = {}
    for span, _ in small:
        op = case.op(span)
        name = op.operator if op is not None else short(span.name)
        names[name] = names.get(name, 0) + span.ns
    top = sorted(names, key=lambda n: -names[n])[:3]
    what = "ops" if case.on_cpu else "kernels"
    return Finding(
        id="kernel-floor",
        fix="fuse",
        summary=(
            f"{units.percent(case.share(booked))} of this window went to {len(small):,} {what} too small to reach "
            f"either roof: {', '.join(top)}."
        ),
        fix_summary=(f"fuse neighbours, four into one: {case.change(gain)}"),
        how="torch.compile(step); or fused/foreach optimizers",
        gain_ns=gain,
        after_ns=case.window - gain,
        arithmetic=f"{units.nanoseconds(booked)} at the floor x (1 - 1/{FUSED_INTO})",
        upper_bound=True,
        evidence={"kernels": len(small), "booked_ns": booked, "ops": top},
    )

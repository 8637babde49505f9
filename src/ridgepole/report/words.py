"""The words for buckets and causes, the same in every report."""

from __future__ import annotations

from collections.abc import Mapping

from ridgepole import units
from ridgepole.attribute.ledger import Bucket, DeviceLedger, Entry
from ridgepole.session import Run

NOISE = 0.95
"""Recorded over unrecorded step time under which something else must have slowed the unrecorded steps."""
ROOFS_KNOWN = 0.5
"""Share of busy time whose bytes must be known before a share of the roofs says anything."""

MEANING: Mapping[Bucket, str] = {
    "compute": "arithmetic was the limit",
    "memory": "moving bytes was the limit",
    "transfer": "only copies and fills ran",
    "communication": "only collectives ran",
    "overhead": "waiting, launching, or kernels too small to matter",
    "unknown": "kernels of unknown work",
}


def shown_buckets(device: DeviceLedger) -> list[tuple[Bucket, int]]:
    """The three buckets always, the others where present, the largest first."""
    always = ("compute", "memory", "overhead")
    return sorted(
        ((bucket, ns) for bucket, ns in device.buckets.items() if ns or bucket in always), key=lambda item: -item[1]
    )


def biggest(device: DeviceLedger, bucket: Bucket) -> Entry | None:
    """The largest cause of a bucket."""
    entries = [entry for entry in device.entries if entry.bucket == bucket and entry.ns]
    return max(entries, key=lambda entry: entry.ns, default=None)


def headline(run: Run) -> str:
    """Machine, devices, events and window in one line."""
    device = run.busiest
    count = len(run.devices)
    machine = run.machine.name or "machine not known"
    kind = "CPU ops" if device.device == "cpu" else "GPU events"
    events = f" · {device.events:,} {kind}" if device.events else ""
    return f"{machine} · {count} device{'s' if count > 1 else ''}{events} · window {units.nanoseconds(run.window_ns)}"


def verdict(run: Run) -> str:
    """The largest bucket in a few words: "overhead 77.3 % of 5.98 ms"."""
    bucket, ns = shown_buckets(run.busiest)[0]
    return f"{bucket} {units.percent(ns / (run.window_ns or 1))} of {units.nanoseconds(run.window_ns)}"


def utilization(run: Run) -> str:
    """What nvidia-smi would say beside what the roofs say."""
    device = run.busiest
    window = run.window_ns or 1
    ran = units.percent(device.resident_ns / window)
    if run.machine.name and device.coverage.bytes >= ROOFS_KNOWN:
        reached = f"the roofs need {units.percent(device.roof_ns / window)}"
    else:
        reached = "how near the roofs is not known"
    if device.device == "cpu":
        return f"some op ran {ran} of the time; {reached}"
    return f"nvidia-smi would say up to 100 %; some kernel ran {ran} of the time; {reached}"


def inflation(run: Run) -> str:
    """How much recording slowed each step, and what was done about it; "" where that was not timed."""
    if run.inflation is None:
        return ""
    if run.inflation < NOISE:
        return f"the recorded steps took {run.inflation:.2f}x the unrecorded ones: something else slowed those"
    if run.inflation < 1:
        return "recording did not slow the steps"
    scaled = "; idle is scaled to the unrecorded time" if run.scaled else ""
    return f"recording slowed each step {run.inflation:.2f}x{scaled}"


def known(device: DeviceLedger) -> str:
    """What share of the device's busy time is known, and how."""
    c = device.coverage
    graph = f", in graphs {units.percent(c.in_graph)}" if c.in_graph else ""
    if c.in_graph and c.bytes < ROOFS_KNOWN:
        graph += " (name an eager trace of the same program with --beside)"
    whose = "CPU" if device.device == "cpu" else "GPU"
    return (
        f"known of {whose} time: bucket {units.percent(c.bucket)}, bytes {units.percent(c.bytes)}, "
        f"FLOPs {units.percent(c.flops)}, inferred {units.percent(c.inferred)}{graph}"
    )


def summary(device: DeviceLedger, window_ns: int) -> str:
    """One device in one line."""
    parts = ", ".join(f"{bucket} {units.percent(ns / (window_ns or 1))}" for bucket, ns in shown_buckets(device))
    return f"device {device.device}: {parts}"


def intensity(value: float) -> str:
    """FLOP per byte, three significant digits, never in powers of ten.

    >>> intensity(0.125), intensity(1250.3)
    ('0.125', '1,250')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def waves(count: float) -> str:
    """62.06 → "62.1 waves"."""
    return f"{count:,.0f} waves" if count >= 1000 else f"{count:.3g} waves"


def bar(share: float, width: int) -> str:
    """A bar of `width` cells for 0 to 1, in eighths of a cell."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    if share > 0 and eighths == 0:
        eighths = 1
    full, part = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")

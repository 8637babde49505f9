"""Idle stretched to the wall clock measured without the profiler: recording slows the CPU, not the device."""

from __future__ import annotations

from collections.abc import Sequence

from ridgepole.attribute.ledger import Entry


def scale(busy: Sequence[Entry], idle: Sequence[Entry], window: int) -> tuple[list[Entry], bool]:
    """Entries that add up to `window` nanoseconds exactly, and whether busy time had to be cut for it.

    Busy time is kept as recorded and idle is scaled in proportion. Where busy time alone exceeds the window the
    two runs differ by more than the recording's cost: busy time is then cut in proportion and no idle is left.
    """
    running = sum(entry.ns for entry in busy)
    if running > window:
        return _share(busy, window), True
    spare = window - running
    if sum(entry.ns for entry in idle) == 0 and spare:
        return [*busy, Entry("overhead", "idle-unrecorded-cpu", spare)], False
    return [*busy, *_share(idle, spare)], False


def _share(entries: Sequence[Entry], total: int) -> list[Entry]:
    parts = apportion([entry.ns for entry in entries], total)
    return [Entry(e.bucket, e.cause, ns) for e, ns in zip(entries, parts, strict=True) if ns]


def apportion(amounts: Sequence[int], total: int) -> list[int]:
    """`total` divided in proportion to `amounts`, in whole units that add up to it (largest remainders).

    >>> apportion([1, 1, 1], 10)
    [4, 3, 3]
    """
    whole = sum(amounts)
    if whole == 0:
        return [0] * len(amounts)
    parts = [amount * total // whole for amount in amounts]
    remainders = sorted(range(len(amounts)), key=lambda i: (-(amounts[i] * total % whole), i))
    for i in remainders[: total - sum(parts)]:
        parts[i] += 1
    return parts

"""A trace without device events: the CPU is the machine, and each op that works itself is its kernel."""

from __future__ import annotations

from ridgepole.timeline.reading.rows import Row, Rows, Stream


def as_device(rows: Rows) -> None:
    """Adds, for each thread, a stream of device "cpu" on which its ops run as kernels.

    An op counts where most of its time is its own, not its callees': a composite only hands work on, and its own
    time is dispatch. It runs once, in the longest stretch that is its own, so that its work is counted once.
    """
    for (pid, tid), thread in rows.threads.items():
        device = [kernel for op, callees in _ops(thread) if (kernel := _own(op, callees)) is not None]
        if device:
            rows.streams[Stream("cpu", pid, tid)] = device


def _ops(thread: list[Row]) -> list[tuple[Row, list[Row]]]:
    callees: dict[Row, list[Row]] = {row: [] for row in thread if row.kind == "op"}
    for row in callees:
        if row.parent is not None:
            callees[row.parent].append(row)
    return list(callees.items())


def _own(op: Row, callees: list[Row]) -> Row | None:
    """The kernel row of an op, or None for one that only hands work on. Callees are in order of start."""
    best, own, at = (op.start, op.start), 0, op.start
    for start, end in [*((row.start, row.end) for row in callees), (op.end, op.end)]:
        stretch = min(start, op.end) - at
        if stretch > 0:
            own += stretch
            if stretch > best[1] - best[0]:
                best = (at, min(start, op.end))
        at = max(at, end)
    if 2 * own <= op.end - op.start and callees:
        return None
    op.launches = True
    return Row(0, best[0], best[1], "kernel", op.name, op=op)

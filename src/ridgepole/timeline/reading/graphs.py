"""Graph launches whose kernels the recorder missed: time that looks idle and is not."""

from __future__ import annotations

from bisect import bisect_right

from ridgepole.timeline.reading.kinds import is_graph_launch
from ridgepole.timeline.reading.rows import Row, Rows


def unrecorded(rows: Rows) -> tuple[int, list[tuple[int, int]]]:
    """How many graph launches have no device event, and the stretches, merged, in which such graphs may have run.

    A stretch goes from the launch's start to whatever first shows that the graph is over: a wait for the device
    that ends after the launch, or a device event launched after it. With neither, to the last event of the file.
    """
    lanes = list(rows.threads.values())
    missing = [
        row for lane in lanes for row in lane if row.kind == "launch" and not row.launches and is_graph_launch(row.name)
    ]
    if not missing:
        return 0, []
    device = [row for stream in rows.streams.values() for row in stream]
    last = max(row.end for lane in (*lanes, device) for row in lane)
    waits = sorted(row.end for lane in lanes for row in lane if row.kind == "sync")
    later = sorted((row for row in device if row.launch is not None), key=lambda row: row.start)
    starts = [row.start for row in later]
    stretches = [(row.start, _over(row, waits, later, starts, last)) for row in missing]
    return len(missing), merge(stretches)


def _over(launch: Row, waits: list[int], later: list[Row], starts: list[int], last: int) -> int:
    ends = [last]
    wait = bisect_right(waits, launch.end)
    if wait < len(waits):
        ends.append(waits[wait])
    for row in later[bisect_right(starts, launch.start) :]:
        if row.launch is not None and row.launch.start > launch.start:
            ends.append(row.start)
            break
    return max(min(ends), launch.end)


def merge(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same time without overlaps, in order."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged

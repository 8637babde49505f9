"""Durations that cannot be: a device event that runs on past the next on its stream, or past the recording's end.

Clipping touches attribution only. A stream runs its work in order, so an event that lasts past the start of the
next is a clock artefact, except where two may truly overlap: programmatic dependent launch lets a kernel start
before the one ahead of it ends (CUDA Programming Guide, asked for through the LaunchKernelEx calls), and kernels of
one graph launch may run side by side whatever stream they are booked on. Overlap that comes of rounding, where a
trace is in whole microseconds, is clipped but not worth a note.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from ridgepole.timeline.reading.kinds import may_overlap_next
from ridgepole.timeline.reading.rows import Row, Rows

_HOUR = 3_600_000_000_000
"""A last event longer than this and than ten times the rest of the file overflowed (2**32 us are 1.2 hours)."""


_ROUNDING = 2000
"""Nanoseconds by which rounding a start and a duration to whole microseconds can move an end."""


@dataclass(slots=True)
class Clipped:
    """How many events were clipped, and by how much in all (ns), leaving out rounding."""

    events: int = 0
    ns: int = 0


def clip(rows: Rows) -> Clipped:
    """Clips the rows of every stream and thread; sets `raw_end` of those that it shortens. Streams get sorted."""
    clipped = Clipped()
    grain = _ROUNDING if rows.whole_microseconds else 0
    for stream in rows.streams.values():
        stream.sort(key=lambda row: (row.start, -row.end))
        for row, after in _followed(stream):
            if row.end > after.start and not _may_overlap(row, after):
                _shorten(row, after.start, grain, clipped)
    limit = _limit(rows)
    if limit is not None:
        for lane in (*rows.streams.values(), *rows.threads.values()):
            for row in lane:
                if row.end > limit:
                    _shorten(row, max(limit, row.start), grain, clipped)
    return clipped


def _shorten(row: Row, end: int, grain: int, clipped: Clipped) -> None:
    lost = row.end - end
    if lost > grain:
        clipped.events += 1
        clipped.ns += lost
    if row.raw_end is None:
        row.raw_end = row.end
    row.end = end


def _followed(stream: list[Row]) -> list[tuple[Row, Row]]:
    """Each row with the next on its stream that starts later, lasts, and is not of the same graph launch."""
    lasting = [row for row in stream if row.end > row.start]
    starts = [row.start for row in lasting]
    beyond = list(range(1, len(lasting) + 1))
    for i in range(len(lasting) - 2, -1, -1):
        if _same_graph(lasting[i], lasting[i + 1]):
            beyond[i] = beyond[i + 1]
    pairs: list[tuple[Row, Row]] = []
    for row in lasting:
        i = bisect_right(starts, row.start)
        if i < len(lasting) and _same_graph(row, lasting[i]):
            i = beyond[i]
        if i < len(lasting):
            pairs.append((row, lasting[i]))
    return pairs


def _same_graph(row: Row, other: Row) -> bool:
    return row.graph and other.graph and row.launch is other.launch


def _may_overlap(row: Row, after: Row) -> bool:
    if after.end < row.end or after.launch is None:
        return False
    return may_overlap_next(after.launch.name)


def _limit(rows: Rows) -> int | None:
    """The moment past which nothing can have run: the recording's end, or that of all but one overflowing event."""
    lanes = [*rows.streams.values(), *rows.threads.values()]
    if rows.recording is not None:
        end = rows.recording[1]
        # what starts after the recording's end shows that the end is by another clock
        return None if any(row.start > end for lane in lanes for row in lane) else end
    ends = sorted(row.end for lane in lanes for row in lane)
    if len(ends) < 2:
        return None
    first = min(row.start for lane in lanes for row in lane)
    for earlier, later in pairwise(ends):
        if later - first > _HOUR and later - first > 10 * (earlier - first) > 0:
            return earlier
    return None

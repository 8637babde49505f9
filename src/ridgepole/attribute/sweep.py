"""One pass over a device's time: each nanosecond goes to one span, or to a gap between spans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from ridgepole.attribute.causes import cause_of_transfer
from ridgepole.attribute.ledger import Bucket, KernelWork
from ridgepole.timeline.model import Span

RANK: dict[Bucket, int] = {
    "compute": 0,
    "memory": 1,
    "transfer": 2,
    "unknown": 3,
    "overhead": 4,
    "communication": 5,
}
"""Who has a nanosecond in which several run. Communication comes last because it counts only where *only*
collectives run; "overhead" here is a kernel below its floor, idle being what no span has."""

Place = tuple[Bucket, str]
"""A bucket and the cause within it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of device time that one span asks for: `span` indexes the timeline's spans."""

    start: int
    end: int
    place: Place
    span: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Idle time of a device. `before` and `after` index the spans that ended and start next, None: there is none."""

    start: int
    end: int
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Swept:
    """What one pass found, in nanoseconds of the window.

    `owned`: by span, the time that is its own (overlapped time counts once). `places`: the same by bucket and
    cause. `gaps`: the rest, in order. Owned time and gaps add up to the window.
    """

    owned: dict[int, int]
    places: dict[Place, int]
    gaps: tuple[Gap, ...]

    @property
    def busy(self) -> int:
        return sum(self.owned.values())


def place(span: Span, work: KernelWork | None) -> Place:
    """The bucket and cause of time in which `span` alone runs."""
    if span.kind in ("copy", "set"):
        return "transfer", cause_of_transfer(span.kind, span.name)
    if span.kind == "collective":
        return "communication", "exposed-communication"
    if work is None:
        return "unknown", "unknown"
    if work.bucket == "communication":
        return "communication", "exposed-communication"
    return work.bucket, work.cause or work.bucket


def sweep(pieces: Iterable[Piece], start: int, end: int) -> Swept:
    """Give every nanosecond of [start, end) to the first-ranked piece running then, else to a gap.

    Pieces may overlap, be empty, or lie outside: those outside only say what came before and after. Streams are
    merged, so a gap is the device's. Among pieces of one rank the cause's name decides, then who started first:
    neither depends on the stream. Takes O(n log n).
    """
    owned: dict[int, int] = {}
    places: dict[Place, int] = {}
    gaps: list[Gap] = []
    running: list[tuple[int, str, int, int, int, Piece]] = []
    now, last, last_end = start, None, -1

    def advance(until: int) -> None:
        nonlocal now, last, last_end
        while running:
            piece = running[0][5]
            if piece.end <= now:
                heappop(running)
                continue
            if now >= until:
                return
            upto = min(piece.end, until)
            owned[piece.span] = owned.get(piece.span, 0) + upto - now
            places[piece.place] = places.get(piece.place, 0) + upto - now
            now = upto

    for order, piece in enumerate(sorted((p for p in pieces if p.end > p.start), key=lambda p: (p.start, p.span))):
        if piece.start >= end:
            advance(end)
            if now < end:
                gaps.append(Gap(now, end, last, piece.span))
            return Swept(owned, places, tuple(gaps))
        if piece.end > start:
            advance(max(piece.start, start))
            if now < piece.start:
                gaps.append(Gap(now, piece.start, last, piece.span))
                now = piece.start
            heappush(running, (RANK[piece.place[0]], piece.place[1], piece.start, piece.span, order, piece))
        if piece.end > last_end or last is None:
            last, last_end = piece.span, piece.end
    advance(end)
    if now < end:
        gaps.append(Gap(now, end, last, None))
    return Swept(owned, places, tuple(gaps))


def union(intervals: Iterable[tuple[int, int]], start: int, end: int) -> int:
    """Nanoseconds of [start, end) that at least one interval covers."""
    total, reach = 0, start
    for a, b in sorted(intervals):
        a, b = max(a, reach), min(b, end)
        if b > a:
            total += b - a
            reach = b
    return total

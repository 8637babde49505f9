"""Kernels recorded without an op, matched by name and grid to ones recorded with one.

The others are in the same trace, or in an eager or capture trace of the same program named beside it. Where kernels of
one name and grid did different work, the kernels launched around them tell which is which: the longest stretch of
neighbours that both recordings have in common decides (order of launch is the program's own in both).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from ridgepole.attribute.shares import Piece, Share
from ridgepole.timeline.model import Timeline
from ridgepole.units import count

REACHES = (16, 8, 4, 2, 1)
"""Neighbours on each side that must agree, tried from many to few."""
NEAR, FAR = 1.15, 1.5
"""A candidate whose time is within `NEAR` of a kernel's, with all others beyond `FAR`, is the one."""

UNALIKE, STEADY_NS = 2.0, 20_000
"""Kernels of at least `STEADY_NS` whose times are further apart than this did not do the same work; shorter ones vary
with the state of clocks and caches."""

Signature = Hashable


@dataclass(frozen=True, slots=True)
class Reference:
    """A recording to match against: its kernels in order of launch, and the work of those whose op has a cost."""

    label: str
    pieces: tuple[Piece, ...]
    shares: dict[int, Share]


@dataclass(frozen=True, slots=True)
class Matched:
    """What an unknown kernel was matched to: another kernel's work where it is known, and that kernel."""

    share: Share | None
    piece: Piece
    reason: str


@dataclass(slots=True)
class _Candidate:
    """One thing that kernels of a signature did: how often, in what time, and an example."""

    share: Share | None
    piece: Piece
    times: list[int]
    calls: int = 0

    @property
    def typical(self) -> float | None:
        ordered = sorted(self.times)
        return ordered[len(ordered) // 2] if ordered else None


def in_common(timeline: Timeline, beside: Timeline) -> float:
    """Share of the kernels' time in `timeline` that is in kernels whose names `beside` has too."""
    names = {span.name for span in beside.spans if span.kind == "kernel"}
    names |= {span.info.kernel for span in beside.spans if span.kind == "launch" and span.info is not None}
    kernels = [span for span in timeline.spans if span.kind == "kernel"]
    total = sum(span.end - span.start for span in kernels)
    return sum(span.end - span.start for span in kernels if span.name in names) / total if total else 1.0


def match(unknown: Sequence[Piece], everything: Sequence[Piece], references: Iterable[Reference]) -> dict[int, Matched]:
    """By span, what each of `unknown` was matched to, in the first reference that has it.

    `everything` is all kernels of the unknown ones' recording in order, themselves among them: their neighbours.
    """
    found: dict[int, Matched] = {}
    for reference in references:
        rest = [piece for piece in unknown if piece.span not in found or found[piece.span].share is None]
        if not rest:
            break
        # A trace without grids (ROCm's graph replays) can only be matched by name.
        gridless = any(piece.grid is None for piece in rest)
        for piece, matched in _match(rest, everything, reference, with_grid=not gridless):
            found.setdefault(piece.span, matched)
            if matched.share is not None:
                found[piece.span] = matched
    return found


def _match(
    unknown: Sequence[Piece], everything: Sequence[Piece], reference: Reference, *, with_grid: bool
) -> Iterable[tuple[Piece, Matched]]:
    known = _by_signature(reference, with_grid)
    order = [_signature(piece, with_grid) for piece in everything]
    place = {piece.span: i for i, piece in enumerate(everything)}
    pasts = _Neighbours(reference, with_grid)
    for piece in unknown:
        signature = _signature(piece, with_grid)
        candidates = known.get(signature)
        if not candidates:
            continue
        by = "name and grid" if with_grid else "name, as grids are not recorded,"
        if len(candidates) == 1:
            only = next(iter(candidates.values()))
            if not _alike(piece, only):
                continue
            yield piece, _found(only, f"matched by {by} to {_calls(only)} in {reference.label}")
            continue
        chosen = pasts.choose(order, place[piece.span])
        one = candidates.get(chosen) if chosen is not None else None
        if one is not None:
            yield piece, _found(one, f"matched by {by} and by its neighbours to {_calls(one)} in {reference.label}")
            continue
        near = _nearest(piece, list(candidates.values()))
        if near is not None:
            yield piece, _found(near, f"matched by {by} and by its time to {_calls(near)} in {reference.label}")


def _found(candidate: _Candidate, reason: str) -> Matched:
    share = candidate.share
    if share is None:
        return Matched(None, candidate.piece, reason)
    said = f"{reason} ({share.reason})" if share.reason else reason
    return Matched(replace(share, quality="inferred", reason=said), candidate.piece, reason)


def _calls(candidate: _Candidate) -> str:
    op = candidate.piece.op
    name = op.operator if op is not None else "a kernel without op"
    return f"{count(candidate.calls)} calls of {name}" if candidate.calls != 1 else f"a call of {name}"


def _signature(piece: Piece, with_grid: bool) -> Signature:
    return (piece.name, piece.grid, piece.block) if with_grid else piece.name


def _content(piece: Piece, share: Share | None) -> Hashable:
    """What tells candidates apart: the work, or the op and grid where the work is not known."""
    if share is None:
        return (None, piece.op.call if piece.op is not None else None, piece.grid)
    if share.quality == "inferred" and "in proportion to their time" in share.reason:
        # Shares by time differ from call to call: the same work for all that matters.
        return (share.family, share.dtype, share.unit, piece.op.call if piece.op is not None else None)
    return (share.flops, share.bytes, share.dtype, share.unit)


def _by_signature(reference: Reference, with_grid: bool) -> dict[Signature, dict[Hashable, _Candidate]]:
    known: dict[Signature, dict[Hashable, _Candidate]] = {}
    for piece in reference.pieces:
        share = reference.shares.get(piece.span)
        if share is None and piece.op is None:
            continue
        here = known.setdefault(_signature(piece, with_grid), {})
        content = _content(piece, share)
        candidate = here.get(content)
        if candidate is None:
            candidate = here[content] = _Candidate(share, piece, [])
        candidate.calls += 1
        if piece.ns is not None:
            candidate.times.append(piece.ns)
    for signature, here in known.items():
        priced = {content: c for content, c in here.items() if c.share is not None}
        if priced and len(priced) < len(here):
            known[signature] = priced
    return known


class _Neighbours:
    """Which work a kernel did in the reference, by the kernels launched around it."""

    def __init__(self, reference: Reference, with_grid: bool) -> None:
        self._reference = reference
        self._order = [_signature(piece, with_grid) for piece in reference.pieces]
        self._contents = [
            None if (share := reference.shares.get(piece.span)) is None and piece.op is None else _content(piece, share)
            for piece in reference.pieces
        ]
        self._tables: dict[tuple[int, int], dict[Hashable, Counter[Hashable]]] = {}

    def choose(self, order: Sequence[Signature], at: int) -> Hashable | None:
        """The one content that kernels with the neighbours of `order[at]` have; None where none or several have."""
        for reach in REACHES:
            for before, after in ((reach, reach), (reach, 0), (0, reach)):
                window = _window(order, at, before, after)
                if window is None:
                    continue
                seen = self._table(before, after).get(window)
                if seen is not None and len(seen) == 1:
                    return next(iter(seen))
        return None

    def _table(self, before: int, after: int) -> dict[Hashable, Counter[Hashable]]:
        table = self._tables.get((before, after))
        if table is None:
            table = self._tables[(before, after)] = {}
            for at, content in enumerate(self._contents):
                window = _window(self._order, at, before, after)
                if content is not None and window is not None:
                    table.setdefault(window, Counter())[content] += 1
        return table


def _window(order: Sequence[Signature], at: int, before: int, after: int) -> Hashable | None:
    if at < before or at + after >= len(order):
        return None
    return hash(tuple(order[at - before : at + after + 1]))


def _alike(piece: Piece, only: _Candidate) -> bool:
    """Whether the only candidate can be the one: grids of persistent kernels are one for all shapes, times are not."""
    typical = only.typical
    if not piece.ns or not typical or max(piece.ns, typical) < STEADY_NS:
        return True
    return max(typical / piece.ns, piece.ns / typical) <= UNALIKE


def _nearest(piece: Piece, candidates: Sequence[_Candidate]) -> _Candidate | None:
    """The only candidate that took about as long; None where several did, or times are not known."""
    if not piece.ns:
        return None
    ratios = []
    for candidate in candidates:
        typical = candidate.typical
        if not typical:
            return None
        ratios.append((max(typical / piece.ns, piece.ns / typical), candidate))
    ratios.sort(key=lambda pair: pair[0])
    if ratios[0][0] <= NEAR and ratios[1][0] >= FAR:
        return ratios[0][1]
    return None

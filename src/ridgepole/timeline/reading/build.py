"""Linked rows into a Timeline: times from 0, spans in order, each op's call and cost once."""

from __future__ import annotations

from ridgepole.printable import printable
from ridgepole.timeline.model import Lane, Span
from ridgepole.timeline.reading.calls import call as parse_call
from ridgepole.timeline.reading.rows import Row, Rows, Stream
from ridgepole.work.cost import assess
from ridgepole.work.op import Call, Cost, Op, Unpriced, Where


def lanes(rows: Rows, ids: dict[Stream, str]) -> tuple[Lane, ...]:
    """Threads, then streams, each in order of first appearance; sets every row's `lane`."""
    found: list[Lane] = []
    several = len({pid for pid, _ in rows.threads if pid not in ("", "-1")}) > 1
    for (pid, tid), thread in rows.threads.items():
        label = rows.names.get((pid, tid), "")
        pid, tid = printable(pid), printable(tid)
        name = f"thread {tid}" if not label or label.startswith("thread ") else f"thread {tid} ({label})"
        _put(thread, len(found))
        found.append(Lane("cpu", "", f"process {pid} {name}" if several else name))
    for stream, device in rows.streams.items():
        if device:
            _put(device, len(found))
            noun = "thread" if stream.device == "cpu" else "stream"
            found.append(Lane("gpu", ids[stream], f"{noun} {stream.name}"))
    return tuple(found)


def _put(rows: list[Row], lane: int) -> None:
    for row in rows:
        row.lane = lane


def build(rows: Rows, origin: int) -> tuple[tuple[Span, ...], tuple[Op, ...]]:
    """The spans, in order of start (ties: longer first), and the ops that their `op` indexes."""
    ordered = [row for lane in (*rows.threads.values(), *rows.streams.values()) for row in lane]
    ordered.sort(key=lambda row: (row.start, -row.end))
    for index, row in enumerate(ordered):
        row.index = index
    ops = _Ops(rows)
    spans: list[Span] = []
    for row in ordered:
        op = row if row.kind == "op" and row.launches else row.op
        spans.append(
            Span(
                row.lane,
                row.start - origin,
                row.end - origin,
                row.kind,
                row.name,
                None if op is None else ops.index(op),
                None if row.launch is None else row.launch.index,
                None if row.parent is None else row.parent.index,
                row.graph,
                row.info,
                None if row.raw_end is None else row.raw_end - origin,
            )
        )
    return tuple(spans), tuple(ops.found)


class _Ops:
    """The ops of one timeline being gathered: a call that is made again at the same place is the same Op."""

    def __init__(self, rows: Rows) -> None:
        self.found: list[Op] = []
        self._rows = rows
        self._calls: dict[int, tuple[Call, Cost | Unpriced]] = {}
        self._indexes: dict[tuple[int, str, str], int] = {}

    def index(self, row: Row) -> int:
        key = (row.call, row.module, row.phase)
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = len(self.found)
            known = self._calls.get(row.call)
            if known is None:
                made = parse_call(self._rows.calls[row.call])
                known = self._calls[row.call] = (made, assess(made))
            self.found.append(Op(known[0], known[1], Where(module=row.module, phase=row.phase)))
        return index

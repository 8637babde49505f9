"""Events into rows: what is kept of each, and on which thread or stream it lies."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ridgepole.printable import printable
from ridgepole.timeline.model import Kind, Launch
from ridgepole.timeline.reading.clock import nanoseconds
from ridgepole.timeline.reading.events import NO_ARGS, Args, Event
from ridgepole.timeline.reading.kinds import (
    Role,
    is_annotation,
    is_collective_range,
    kernel_kind,
    role,
    runtime_kind,
    task_role,
)
from ridgepole.timeline.reading.rows import CallKey, Module, Row, Rows, Stream

_FARTHEST = 1 << 62
"""Nanoseconds from 0 (146 years) past which a start is no time."""
_LONGEST_NAME = 20_000
"""Characters of a name that are kept: templates of real kernels have up to some 5,000."""
_FLOWS_WORTH_KEEPING = 4096
"""Device events after which, if every one had a correlation id, flows are needed no more."""
_MODULE = "nn.Module: "


class Collector:
    """One trace's rows being gathered."""

    def __init__(self) -> None:
        self.rows = Rows()
        self._roles: dict[object, Role] = {}
        self._kinds: dict[str, Kind] = {}
        self._kernel_kinds: dict[str, Kind] = {}
        self._calls: dict[CallKey, int] = {}
        self._infos: dict[Launch, Launch] = {}
        self._streams: dict[tuple[object, object, object, object], Stream] = {}
        self._on_device = 0
        self._uncorrelated = False

    def add(self, events: Iterable[Event]) -> None:
        """Takes in events, in any order."""
        roles = self._roles
        for event in events:
            if event.ph != "X":
                self._mark(event)
                continue
            category = event.cat
            try:
                what = roles[category]
            except (KeyError, TypeError):
                what = role(category)
                if isinstance(category, str):
                    roles[category] = what
            if what == "python":
                self._python(event)
            elif what != "ignored":
                self._complete(event, what)

    def _complete(self, event: Event, what: Role) -> None:
        if what == "unknown":
            what = self._uncategorised(event)
            if what in ("unknown", "ignored"):
                return
        start = self._time(event.ts)
        if start is None or not -_FARTHEST < start < _FARTHEST:
            self.rows.untimed += 1
            return
        length = self._time(event.dur) or 0
        if length < 0:
            self.rows.negative += 1
            length = 0
        name = printable((event.name if isinstance(event.name, str) else str(event.name))[:_LONGEST_NAME])
        args = event.args or NO_ARGS
        end = start + length
        if what == "op" and is_annotation(name):
            what = "annotation"
        elif what == "annotation" and is_collective_range(name) and (bytes(args.dims) or bytes(args.dims_2021)):
            # The op around it often has a list of tensors, whose shapes are not recorded: here they are.
            what = "op"
        if what == "op":
            self._op(event, args, name, start, end)
        elif what == "runtime":
            self._runtime(event, args, name, start, end)
        elif what in ("kernel", "copy", "set"):
            self._device(event, args, what, name, start, end)
        elif what == "annotation":
            self._thread(event).append(Row(0, start, end, "annotation", name))
        elif what == "overhead":
            self._thread(event).append(Row(0, start, end, "overhead", name))
        elif what == "mark":
            self.rows.marks.append(Row(0, start, end, "sync", name, _number(args.correlation)))
        elif what == "trace" and name.startswith("PyTorch Profiler"):
            known = self.rows.recording
            self.rows.recording = (min(known[0], start), max(known[1], end)) if known else (start, end)

    def _time(self, text: object) -> int | None:
        written = bytes(text)  # type: ignore[call-overload]
        if b"." in written:
            self.rows.whole_microseconds = False
        return nanoseconds(written)

    def _thread(self, event: Event) -> list[Row]:
        key = (str(event.pid), str(event.tid))
        rows = self.rows.threads.get(key)
        if rows is None:
            rows = self.rows.threads[key] = []
        return rows

    def _op(self, event: Event, args: Args, name: str, start: int, end: int) -> None:
        dims = bytes(args.dims) or bytes(args.dims_2021)
        key = (name, dims, bytes(args.types), bytes(args.strides), bytes(args.concrete))
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = len(self.rows.calls)
            self.rows.calls.append(key)
        else:
            name = self.rows.calls[call][0]
        external = args.external if args.external is not None else args.external_2021
        sequence = _number(args.sequence)
        thread = args.forward_thread
        row = Row(0, start, end, "op", name, None, _number(external), call, sequence)
        row.backward = sequence is not None and isinstance(thread, int) and thread > 0
        if isinstance(args.hierarchy, str):
            row.module = printable(args.hierarchy)
        self._thread(event).append(row)

    def _runtime(self, event: Event, args: Args, name: str, start: int, end: int) -> None:
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = runtime_kind(name)
        external = args.external if args.external is not None else args.external_2021
        row = Row(0, start, end, kind, name, _number(args.correlation), _number(external))
        if args.kernel is not None or args.grid is not None:
            row.info = self._info(args, printable(str(args.kernel or "")))
        self._thread(event).append(row)

    def _device(self, event: Event, args: Args, what: Role, name: str, start: int, end: int) -> None:
        kind: Kind = "copy" if what == "copy" else "set"
        if what == "kernel":
            known = self._kernel_kinds.get(name)
            if known is None:
                known = self._kernel_kinds[name] = kernel_kind(name)
            kind = known
        external = args.external if args.external is not None else args.external_2021
        correlation = _number(args.correlation)
        row = Row(0, start, end, kind, name, correlation, _number(external))
        row.info = self._info(args, "")
        row.graph = bool(args.graph_node)
        stream = self._stream(event, args)
        self.rows.streams[stream].append(row)
        self._on_device += 1
        self._uncorrelated = self._uncorrelated or correlation is None

    def _stream(self, event: Event, args: Args) -> Stream:
        key = (args.device, args.stream, event.pid, event.tid)
        try:
            return self._streams[key]
        except (KeyError, TypeError):
            pass
        pid = "" if event.pid is None else printable(str(event.pid))
        device = args.device if isinstance(args.device, int | str) else event.tid if pid == "CUDA functions" else pid
        name = args.stream if isinstance(args.stream, int | str) else event.tid
        stream = Stream(printable(str(device)), pid, printable(str(name)).removeprefix("stream ").strip() or "0")
        self.rows.streams.setdefault(stream, [])
        if all(isinstance(part, int | str | None) for part in key):
            self._streams[key] = stream
        return stream

    def _info(self, args: Args, kernel: str) -> Launch | None:
        info = Launch(
            grid=_triple(args.grid),
            block=_triple(args.block),
            registers=_count(args.registers),
            shared=_count(args.shared),
            nbytes=_count(args.nbytes),
            kernel=kernel,
        )
        return self._infos.setdefault(info, info)

    def _python(self, event: Event) -> None:
        name = event.name
        if not isinstance(name, str) or not name.startswith(_MODULE):
            return
        start, length = nanoseconds(bytes(event.ts)), nanoseconds(bytes(event.dur))
        if start is None or length is None or length < 0:
            return
        key = (str(event.pid), str(event.tid))
        self.rows.modules.setdefault(key, []).append(Module(start, start + length, printable(name[len(_MODULE) :])))

    def _uncategorised(self, event: Event) -> Role:
        """The role of an event whose category says nothing."""
        if event.cat is None:
            if event.pid == "CPU functions":
                return "op"
            if event.pid == "CUDA functions":
                return "kernel"
            if event.args is not None and event.args.task is not None:
                return task_role(event.args.task)
        self.rows.unknown[printable(str(event.cat)[:40])] += 1
        return "unknown"

    def _mark(self, event: Event) -> None:
        """Flows and names; what else is no complete event says nothing that is needed."""
        phase = event.ph
        if phase in ("s", "f", "t"):
            if self._uncorrelated or self._on_device < _FLOWS_WORTH_KEEPING:
                self._flow(event)
        elif phase == "M" and event.name in ("thread_name", "process_name") and event.args is not None:
            label = event.args.name
            if isinstance(label, str) and label:
                tid = str(event.tid) if event.name == "thread_name" else ""
                self.rows.names[(str(event.pid), tid)] = printable(label)

    def _flow(self, event: Event) -> None:
        if role(event.cat) != "flow":
            return
        at = nanoseconds(bytes(event.ts))
        if at is None or not isinstance(event.id, int | str):
            return
        place = (str(event.pid), str(event.tid), at)
        if event.ph == "s":
            self.rows.sources[event.id] = place
        else:
            self.rows.targets[place] = event.id


_DIGITS = re.compile(r"-?\d{1,20}")


def _number(value: object) -> object:
    """An id as an int where it is one, however it is written; other text as it is; None for the rest."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        return int(value) if _DIGITS.fullmatch(value) else value or None
    return None


def _count(value: object) -> int | None:
    number = _number(value)
    return number if isinstance(number, int) and number >= 0 else None


def _triple(value: object) -> tuple[int, int, int] | None:
    if isinstance(value, list) and len(value) == 3 and all(type(n) is int and n >= 0 for n in value):
        return (value[0], value[1], value[2])
    return None

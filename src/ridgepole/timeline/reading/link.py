"""Which op encloses which call, which call launched which kernel, and so which op a kernel belongs to."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter

from ridgepole.timeline.reading.kinds import is_backward, is_graph_launch
from ridgepole.timeline.reading.rows import Module, Row, Rows, Stream

_OPTIMIZER = "Optimizer."


def link(rows: Rows) -> None:
    """Fills in `parent`, `launch`, `op`, `graph`, `launches`, `module` and `phase` of every row."""
    for key, thread in rows.threads.items():
        thread.sort(key=_order)
        _nest(thread, rows.modules.get(key, []))
    calls = [row for thread in rows.threads.values() for row in thread if row.kind in ("launch", "sync", "overhead")]
    _launches(rows, calls)
    _ops(rows)
    for row in calls:
        if row.kind == "launch" or row.launches:
            _climb(row.parent)
    for stream in rows.streams.values():
        for row in stream:
            if row.op is not None:
                _climb(row.op)
    name_phases(rows)


def _order(row: Row) -> tuple[int, int]:
    return row.start, -row.end


def _climb(op: Row | None) -> None:
    while op is not None and not op.launches:
        op.launches = True
        op = op.parent


def _nest(thread: list[Row], modules: list[Module]) -> None:
    """Gives each row its enclosing op, module path and phase. `thread` is in order of start, longer first.

    A row that outlasts the one it starts in is taken to be inside it: old traces are rounded to microseconds.
    """
    paths = _module_paths(modules)
    starts = [start for start, _, _ in paths]
    stack: list[Row] = []
    for row in thread:
        start = row.start
        while stack and stack[-1].end <= start:
            stack.pop()
        top = stack[-1] if stack else None
        if top is not None:
            row.parent = top if top.kind == "op" else top.parent
            row.phase = top.phase
        kind = row.kind
        if kind == "op":
            if row.backward or is_backward(row.name):
                row.phase = "backward"
            if paths and not row.module:
                row.module = _path_at(paths, starts, start)
            stack.append(row)
        elif kind == "annotation":
            if row.name.startswith(_OPTIMIZER):
                row.phase = "optimizer"
            stack.append(row)


def _module_paths(modules: list[Module]) -> list[tuple[int, int, str]]:
    """(start, end, path) for each stretch of a thread's time, in order, in which the same module is innermost."""
    modules.sort(key=lambda m: (m.start, -m.end))
    stretches: list[tuple[int, int, str]] = []
    stack: list[tuple[int, str]] = []
    at = 0

    def until(moment: int) -> None:
        nonlocal at
        while stack and stack[-1][0] <= moment:
            end, path = stack.pop()
            if end > at:
                stretches.append((at, end, path))
                at = end

    for module in modules:
        until(module.start)
        if stack and module.start > at:
            stretches.append((at, module.start, stack[-1][1]))
        at = max(at, module.start)
        stack.append((module.end, f"{stack[-1][1]}.{module.name}" if stack else module.name))
    if stack:
        until(max(end for end, _ in stack))
    return stretches


def _path_at(paths: list[tuple[int, int, str]], starts: list[int], moment: int) -> str:
    index = bisect_right(starts, moment) - 1
    return paths[index][2] if index >= 0 and moment < paths[index][1] else ""


def _launches(rows: Rows, calls: list[Row]) -> None:
    """Gives each device row the call that launched it: by correlation id, else by the flow that ends at it."""
    known: dict[object, list[Row]] = {}
    for row in calls:
        if row.correlation is not None:
            known.setdefault(row.correlation, []).append(row)
    for candidates in known.values():
        if len(candidates) > 1:
            candidates.sort(key=attrgetter("start"))
    flows = _flows(rows)
    for stream, device in rows.streams.items():
        for row in device:
            launch = _nearest(known.get(row.correlation), row) if row.correlation is not None else None
            if launch is None and flows:
                launch = _by_flow(rows, flows, stream, row)
            if launch is None:
                continue
            row.launch = launch
            launch.launches = True
            if launch.kind == "overhead":
                launch.kind = "launch"
            row.graph = row.graph or is_graph_launch(launch.name)


def _nearest(candidates: list[Row] | None, row: Row) -> Row | None:
    """Of several calls with one correlation id (ranks merged into one file) the last before `row` starts."""
    if not candidates:
        return None
    if len(candidates) == 1:
        return candidates[0]
    before = bisect_right(candidates, row.start, key=attrgetter("start"))
    return candidates[max(before - 1, 0)]


def _flows(rows: Rows) -> dict[tuple[str, str, int], list[Row]]:
    """CPU rows by the place that a flow starts from, where any device row needs one."""
    if not rows.sources or all(r.correlation is not None for stream in rows.streams.values() for r in stream):
        return {}
    places = set(rows.sources.values())
    found: dict[tuple[str, str, int], list[Row]] = {}
    for (pid, tid), thread in rows.threads.items():
        for row in thread:
            if (pid, tid, row.start) in places:
                found.setdefault((pid, tid, row.start), []).append(row)
    return found


def _by_flow(rows: Rows, flows: dict[tuple[str, str, int], list[Row]], stream: Stream, row: Row) -> Row | None:
    for tid in (stream.name, f"stream {stream.name}"):
        flow = rows.targets.get((stream.pid, tid, row.start))
        place = rows.sources.get(flow) if flow is not None else None
        for source in flows.get(place, []) if place is not None else []:
            if source.kind == "op":
                row.op = source
            elif source.kind in ("launch", "sync", "overhead"):
                return source
    return None


def _ops(rows: Rows) -> None:
    """Gives each device row its op: the innermost around its launch, else the one whose external id it bears."""
    wanting: list[Row] = []
    for stream in rows.streams.values():
        for row in stream:
            if row.launch is not None and row.launch.parent is not None:
                row.op = row.launch.parent
            elif row.op is None:
                wanting.append(row)
    if not wanting:
        return
    known: dict[object, list[Row]] = {}
    for thread in rows.threads.values():
        for op in thread:
            if op.kind == "op" and op.external is not None:
                known.setdefault(op.external, []).append(op)
    for candidates in known.values():
        candidates.sort(key=attrgetter("start"))
    for row in wanting:
        row.op = _nearest(known.get(_external(row)), row)


def _external(row: Row) -> object:
    """The external id that a device row or its launch bears. Traces of 2022 and 2023 repeat the correlation id
    there, which names no op; 0 stands for none."""
    for bearer in (row, row.launch):
        if bearer is not None and bearer.external not in (None, 0) and bearer.external != bearer.correlation:
            return bearer.external
    return None


def name_phases(rows: Rows) -> None:
    """Of the ops that launch something: says which are forward, where any are backward, and gives backward ops the
    module of the forward op that has their sequence number."""
    ops = [row for thread in rows.threads.values() for row in thread if row.kind == "op" and row.launches]
    if not any(row.phase == "backward" for row in ops):
        return
    forward: dict[object, str] = {}
    for row in ops:
        if row.phase == "" and row.sequence is not None and row.module:
            forward[row.sequence] = row.module
    for row in ops:
        if row.phase == "":
            row.phase = "forward"
        elif row.phase == "backward" and not row.module:
            row.module = _forward_module(row, forward)


def _forward_module(row: Row, forward: dict[object, str]) -> str:
    at: Row | None = row
    while at is not None:
        module = forward.get(at.sequence) if at.sequence is not None else None
        if module:
            return module
        at = at.parent
    return ""

"""Idle time by cause: what the CPU did, at each nanosecond, about the device's next work."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ridgepole.attribute.causes import cause_of_call, cause_of_transfer
from ridgepole.attribute.sweep import Gap
from ridgepole.timeline.model import DEVICE_KINDS, Span, Timeline

KEPT_AT_EDGES = frozenset({"data-loading", "compilation", "allocator", "profiler"})
"""Causes that keep their name before the first launch and after the last work: they are why there is none."""

LONGEST_LATENCY = 100_000
"""Nanoseconds after which launched work that has not started is stalled. Launch to start takes 2 to 20 µs on an idle
device (CUDA 2-5, ROCm up to 20, in the traces that we have seen); five times the slowest is no latency any more."""

LAZY_LOADING = 1_000_000
"""Nanoseconds of a kernel's first launch, on an idle device, past which the call is loading the kernel's code."""


class Stretch(NamedTuple):
    """Idle of one cause, in nanoseconds. `doing`: what the CPU did, where the cause itself does not say (the edges)."""

    start: int
    end: int
    cause: str
    doing: str = ""


@dataclass(slots=True)
class Activity:
    """One CPU thread as disjoint stretches in order, each with the cause of idle that it is; others are left out."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)

    def add(self, start: int, end: int, cause: str) -> None:
        if self.ends and self.ends[-1] == start and self.causes[-1] == cause:
            self.ends[-1] = end
            return
        self.starts.append(start)
        self.ends.append(end)
        self.causes.append(cause)

    def within(self, start: int, end: int) -> Iterator[tuple[int, int, str | None]]:
        """[start, end) in order, cut where the cause changes; None where the thread shows nothing."""
        i = max(bisect_right(self.starts, start) - 1, 0)
        now = start
        while now < end:
            if i >= len(self.starts) or self.starts[i] >= end:
                yield now, end, None
                return
            if self.ends[i] > now:
                if self.starts[i] > now:
                    yield now, self.starts[i], None
                    now = self.starts[i]
                upto = min(self.ends[i], end)
                yield now, upto, self.causes[i]
                now = upto
            i += 1


def activity(calls: Sequence[tuple[int, int, str | None]]) -> Activity:
    """A thread's calls (start, end, own cause), in order of start with outer ones first, flattened.

    At each nanosecond the innermost call decides, except that compilation has all that runs inside it and loading
    all but waits and allocations. A call with no cause of its own has its caller's.
    """
    flat = Activity()
    stack: list[tuple[int, str | None]] = []
    now = calls[0][0] if calls else 0

    def advance(until: int) -> None:
        nonlocal now
        while stack and now < until:
            end, cause = stack[-1]
            upto = min(end, until)
            if upto > now:
                if cause is not None:
                    flat.add(now, upto, cause)
                now = upto
            if end <= now:
                stack.pop()
        now = max(now, until)

    for start, end, own in calls:
        if end <= start:
            continue
        advance(start)
        while stack and stack[-1][0] <= start:
            stack.pop()
        stack.append((end, _inside(stack[-1][1] if stack else None, own)))
    advance(max((call[1] for call in calls), default=0))
    return flat


def _inside(outer: str | None, own: str | None) -> str | None:
    if own == "compilation" or outer == "compilation":
        return "compilation"
    if own in ("sync", "allocator"):
        return own
    if outer == "data-loading" or own is None:
        return outer
    return own


class Host:
    """The CPU threads of a timeline, flattened once, ready to say why a device was idle."""

    def __init__(self, timeline: Timeline) -> None:
        self.spans = timeline.spans
        self.records_ops = False
        """Whether framework ops were recorded: without them, silence on a thread says nothing."""
        self.threads = self._flatten(timeline)
        launching = Counter(s.lane for s in self.spans if s.kind == "launch")
        self.main = launching.most_common(1)[0][0] if launching else None

    def _flatten(self, timeline: Timeline) -> dict[int, Activity]:
        calls: dict[int, list[tuple[int, int, str | None]]] = {}
        cpu = [lane.kind == "cpu" for lane in timeline.lanes]
        drained: dict[int, int] = {}
        loading = self._first_launches()
        for index, span in enumerate(self.spans):
            if span.kind == "copy" and span.launch is not None and _to_host(span):
                drained[span.launch] = max(span.end, drained.get(span.launch, span.end))
            elif cpu[span.lane] and span.kind not in DEVICE_KINDS:
                cause = "compilation" if index in loading else cause_of_call(span.kind, span.name)
                calls.setdefault(span.lane, []).append((span.start, span.end, cause))
                self.records_ops |= span.kind == "op"
        for launch, end in drained.items():
            call = self.spans[launch]
            if call.end > end and call.kind == "launch" and call.lane in calls:
                # A copy to the host that is done while its call has not returned: the CPU was waiting in it.
                calls[call.lane].append((max(end, call.start), call.end, "sync"))
        for lane in calls:
            calls[lane].sort(key=lambda call: (call[0], -call[1]))
        return {lane: activity(thread) for lane, thread in calls.items()}

    def _first_launches(self) -> set[int]:
        """Launch calls that are the first of their kernel and far too long for a launch."""
        seen: set[str] = set()
        found: set[int] = set()
        for span in self.spans:
            if span.kind == "kernel" and span.name not in seen and not span.graph:
                seen.add(span.name)
                if span.launch is not None and self.spans[span.launch].ns > LAZY_LOADING:
                    found.add(span.launch)
        return found

    def explain(self, gap: Gap) -> Iterator[Stretch]:
        """The gap in order, cut by cause: what the thread that launches the next work was doing.

        Until its launch call returns, the thread's innermost call; from then on the work is issued and still waits.
        """
        after = None if gap.after is None else self.spans[gap.after]
        before = None if gap.before is None else self.spans[gap.before]
        if after is None:
            yield from self._edge(gap.start, gap.end, "after-last" if before is not None else "before-first", before)
            return
        if before is not None and _one_graph(before, after):
            yield Stretch(gap.start, gap.end, "graph-gap")
            return
        launch = None if after.launch is None else self.spans[after.launch]
        start = gap.start
        if before is None:
            start = gap.end if launch is None else min(max(launch.start, start), gap.end)
            yield from self._edge(gap.start, start, "before-first", after)
        if launch is None:
            yield from self._unlinked(start, gap.end)
            return
        issued = min(max(launch.end, start), gap.end)
        yield from self._walk(start, issued, (launch.lane, self._lane(before)))
        if issued < gap.end:
            yield Stretch(issued, gap.end, "gap" if gap.end - issued <= LONGEST_LATENCY else "stall")

    def explain_cpu(self, gap: Gap) -> Iterator[Stretch]:
        """As `explain` where the CPU itself is the device: what any of its threads was doing instead of the work."""
        yield from self._walk(gap.start, gap.end, tuple(self.threads))

    def _edge(self, start: int, end: int, name: str, nearest: Span | None) -> Iterator[Stretch]:
        for a, b, cause, _ in self._walk(start, end, (self._lane(nearest),)):
            yield Stretch(a, b, cause) if cause in KEPT_AT_EDGES else Stretch(a, b, name, cause)

    def _unlinked(self, start: int, end: int) -> Iterator[Stretch]:
        """Work whose launch is not recorded: only what plainly keeps a device idle is believed."""
        for a, b, cause, _ in self._walk(start, end, (self.main,)):
            yield Stretch(a, b, cause if cause in KEPT_AT_EDGES or cause == "sync" else "idle-unrecorded-cpu")

    def _lane(self, span: Span | None) -> int | None:
        """The thread that launched `span`, else the one that launches most."""
        return self.main if span is None or span.launch is None else self.spans[span.launch].lane

    def _walk(self, start: int, end: int, lanes: Sequence[int | None]) -> Iterator[Stretch]:
        """What the first of `lanes` was doing, where it shows nothing the next (the autograd engine takes over)."""
        if start >= end:
            return
        thread = None
        for i, lane in enumerate(lanes):
            thread = None if lane is None or lane in lanes[:i] else self.threads.get(lane)
            if thread is not None:
                rest = lanes[i + 1 :]
                break
        if thread is None:
            yield Stretch(start, end, "python" if self.records_ops else "idle-unrecorded-cpu")
            return
        for a, b, cause in thread.within(start, end):
            if cause is None:
                yield from self._walk(a, b, rest)
            else:
                yield Stretch(a, b, cause)


def _to_host(copy: Span) -> bool:
    return cause_of_transfer(copy.kind, copy.name).startswith("dtoh")


def _one_graph(before: Span, after: Span) -> bool:
    """Both ran in one replay; where replays are not told apart, in any."""
    return before.graph and after.graph and before.launch == after.launch

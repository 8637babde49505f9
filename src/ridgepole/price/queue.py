"""The launch queue: the CPU issues op by op, the GPU runs in order, and out comes a timeline as if recorded.

The CPU dispatches an op, then launches its kernels one by one, and runs ahead of the GPU by at most the queue's
depth; a launch into a full queue waits for room. A kernel starts when its launch has returned and the kernel
before it ended a gap ago. An op that synchronises waits for the GPU. As a graph, everything is one launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ridgepole.timeline.model import DeviceInfo, Kind, Lane, Launch, Span, Timeline, Window
from ridgepole.work.op import Op

NS = 1_000_000_000
CPU, GPU = 0, 1
Mode = Literal["eager", "graph", "compiled"]


@dataclass(frozen=True, slots=True)
class Costs:
    """What issuing costs, in whole nanoseconds; `depth` in launches.

    `sync`: from the end of the last kernel until the CPU goes on. `gap`: idle between two kernels back to back
    (in a graph; a stream has no less).
    """

    launch: int
    sync: int
    gap: int
    depth: int


@dataclass(frozen=True, slots=True)
class Issue:
    """One op to issue: its index in the ops, the CPU's time to dispatch it, its kernels' times, all in ns."""

    op: int
    name: str
    dispatch: int
    kernels: tuple[int, ...]
    kind: Kind = "kernel"
    syncs: bool = False
    info: Launch | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What the timeline is of: names for its header, and the ops that its spans point into."""

    name: str
    ops: tuple[Op, ...]
    device: DeviceInfo
    notes: tuple[str, ...] = ()


def simulate(issues: Sequence[Issue], costs: Costs, target: Target, mode: Mode = "eager") -> Timeline:
    """The timeline of `issues`, from the first dispatch to the later of the CPU's and the GPU's last event."""
    spans = _graph(issues, costs) if mode == "graph" else _stream(issues, costs)
    return _timeline(spans, target, _LANES, "one pass of the program" + (" as a graph" if mode == "graph" else ""))


def on_cpu(issues: Sequence[Issue], target: Target) -> Timeline:
    """The same where the CPU is the machine: each op does its work itself, one after the other."""
    spans, now = [], 0
    for issue in issues:
        end = now + issue.dispatch + sum(issue.kernels)
        spans.append(Span(CPU, now, end, "op", issue.name, op=issue.op))
        now = end
    return _timeline(spans, target, _LANES[:1], "one pass of the program")


_LANES = (Lane("cpu", "", "main thread"), Lane("gpu", "0", "stream 7"))


def _stream(issues: Sequence[Issue], costs: Costs) -> list[Span]:
    spans: list[Span] = []
    ends: list[int] = []
    cpu = 0
    for issue in issues:
        parent = len(spans)
        spans.append(Span(CPU, cpu, cpu, "op", issue.name, op=issue.op))
        began, cpu = cpu, cpu + issue.dispatch
        for duration in issue.kernels:
            launched = cpu
            cpu += costs.launch
            if len(ends) >= costs.depth:
                cpu = max(cpu, ends[len(ends) - costs.depth])
            launch = len(spans)
            spans.append(Span(CPU, launched, cpu, "launch", _CALLS[issue.kind], op=issue.op, parent=parent))
            start = max(cpu, ends[-1] + costs.gap) if ends else cpu
            ends.append(start + duration)
            spans.append(_device(issue, start, duration, launch))
        if issue.syncs:
            waited = cpu
            cpu = max(cpu, ends[-1] if ends else cpu) + costs.sync
            spans.append(Span(CPU, waited, cpu, "sync", "cudaStreamSynchronize", op=issue.op, parent=parent))
        spans[parent] = replace(spans[parent], start=began, end=cpu)
    return spans


def _graph(issues: Sequence[Issue], costs: Costs) -> list[Span]:
    """One launch, then every kernel back to back. What would synchronise inside cannot, and does not."""
    now = costs.launch
    spans = [Span(CPU, 0, now, "launch", "cudaGraphLaunch")]
    first = True
    for issue in issues:
        for duration in issue.kernels:
            now += 0 if first else costs.gap
            first = False
            spans.append(replace(_device(issue, now, duration, 0), graph=True))
            now += duration
    return spans


def _device(issue: Issue, start: int, duration: int, launch: int) -> Span:
    return Span(GPU, start, start + duration, issue.kind, issue.name, op=issue.op, launch=launch, info=issue.info)


_CALLS: dict[Kind, str] = {
    "kernel": "cudaLaunchKernel",
    "copy": "cudaMemcpyAsync",
    "set": "cudaMemsetAsync",
    "collective": "cudaLaunchKernelExC",
}


def _timeline(spans: list[Span], target: Target, lanes: tuple[Lane, ...], rule: str) -> Timeline:
    order = sorted(range(len(spans)), key=lambda i: (spans[i].start, -spans[i].end, spans[i].lane, i))
    place = {old: new for new, old in enumerate(order)}
    moved = tuple(
        replace(
            spans[i],
            launch=None if spans[i].launch is None else place[spans[i].launch],  # type: ignore[index]
            parent=None if spans[i].parent is None else place[spans[i].parent],  # type: ignore[index]
        )
        for i in order
    )
    device = [span for span in moved if span.lane == GPU]
    info = replace(
        target.device,
        events=len(device),
        busy_ns=sum(span.ns for span in device),
        window_ns=max(s.end for s in device) - min(s.start for s in device) if device else 0,
    )
    end = max((span.end for span in moved), default=0)
    return Timeline(
        kind="priced",
        target=target.name,
        spans=moved,
        lanes=lanes,
        ops=target.ops,
        window=Window(0, end, rule),
        devices=(info,),
        notes=target.notes,
    )

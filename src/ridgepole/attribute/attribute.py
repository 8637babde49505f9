"""From a timeline to its ledger: every nanosecond of the window in one bucket, with its cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ridgepole import units
from ridgepole.attribute.beside import in_common
from ridgepole.attribute.causes import CAUSES
from ridgepole.attribute.idle import Host
from ridgepole.attribute.ledger import BUCKETS, DeviceLedger, Entry, KernelWork, Ledger
from ridgepole.attribute.rows import coverage, op_rows, roof_ns
from ridgepole.attribute.scale import scale
from ridgepole.attribute.sweep import Piece, Place, Swept, place, sweep, union
from ridgepole.machine.model import Machine
from ridgepole.timeline.model import DEVICE_KINDS, DeviceInfo, Timeline

SAME_PROGRAM = 0.5
"""Share of kernel time that two recordings of one program have in common by name at least: two of one program measure
97 to 100 %, of different ones 0 to 39 %."""
NOTED_EDGE = 0.05
"""Share of the window from which time before the first launch or after the last work is explained in a note."""


def attribute(timeline: Timeline, machine: Machine | None, *, beside: Timeline | None = None) -> Ledger:
    """The ledger of `timeline` on `machine`; None: its figures are not known, and most kernels' buckets neither.

    `beside` is a timeline of the same program that has what this one lacks (shapes, ops outside a graph).
    """
    from ridgepole.attribute.work import kernel_work

    ledger = account(timeline, machine, kernel_work(timeline, machine, beside=beside))
    if beside is not None and (common := in_common(timeline, beside)) < SAME_PROGRAM:
        said = f"{beside.target} has the kernels of {units.percent(common)} of this GPU time: is it the same program?"
        ledger = replace(ledger, notes=(*ledger.notes, said))
    return ledger


def account(timeline: Timeline, machine: Machine | None, work: Mapping[int, KernelWork]) -> Ledger:
    """As `attribute`, with what each device span did already known."""
    host = Host(timeline)
    notes = list(timeline.notes)
    if machine is None:
        notes.append("the machine is not known, so kernels have no roof to be held against")
    spans = _device_spans(timeline)
    devices = [_Account(timeline, info, indices, work, host) for info, indices in spans]
    devices.sort(key=lambda device: (-device.swept.busy, -device.info.busy_ns))
    ledgers = [device.ledger(notes) for device in devices]
    scaled = timeline.scaled_ns is not None
    return Ledger(
        target=timeline.target,
        kind=timeline.kind,
        machine="" if machine is None else machine.name,
        window_ns=timeline.window.ns if timeline.scaled_ns is None else timeline.scaled_ns,
        window_rule=timeline.window.rule,
        devices=tuple(ledgers),
        work=work,
        notes=tuple(dict.fromkeys(notes)),
        inflation=timeline.inflation,
        scaled=scaled,
    )


def _device_spans(timeline: Timeline) -> list[tuple[DeviceInfo, list[int]]]:
    """Each device with the indices of its spans; one that the timeline does not describe is described from them."""
    device = [lane.device if lane.kind == "gpu" else None for lane in timeline.lanes]
    indices: dict[str, list[int]] = {info.id: [] for info in timeline.devices}
    for index, span in enumerate(timeline.spans):
        name = device[span.lane]
        if name is not None and span.kind in DEVICE_KINDS:
            indices.setdefault(name, []).append(index)
    if "cpu" in indices and not indices["cpu"]:
        indices["cpu"] = _working_ops(timeline)
    known = {info.id: info for info in timeline.devices}
    return [(known.get(name) or _describe(timeline, name, found), found) for name, found in indices.items()]


def _working_ops(timeline: Timeline) -> list[int]:
    """Where the CPU is the machine and no stream of it is given: the op spans that call no other op."""
    callers = {span.parent for span in timeline.spans if span.kind == "op"}
    return [i for i, span in enumerate(timeline.spans) if span.kind == "op" and i not in callers]


def _describe(timeline: Timeline, name: str, indices: list[int]) -> DeviceInfo:
    spans = [timeline.spans[index] for index in indices]
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    busy = union(((span.start, span.end) for span in spans), first, last)
    return DeviceInfo(name, events=len(spans), busy_ns=busy, window_ns=last - first)


@dataclass(slots=True, init=False)
class _Account:
    """One device being accounted for: who had each nanosecond of it."""

    timeline: Timeline
    info: DeviceInfo
    indices: list[int]
    work: Mapping[int, KernelWork]
    host: Host
    places: dict[int, Place]
    swept: Swept

    def __init__(
        self, timeline: Timeline, info: DeviceInfo, indices: list[int], work: Mapping[int, KernelWork], host: Host
    ) -> None:
        self.timeline, self.info, self.indices, self.work, self.host = timeline, info, indices, work, host
        spans, window = timeline.spans, timeline.window
        self.places = {index: place(spans[index], work.get(index)) for index in indices}
        pieces = (Piece(spans[i].start, spans[i].end, self.places[i], i) for i in indices)
        self.swept = sweep(pieces, window.start, window.end)

    def ledger(self, notes: list[str]) -> DeviceLedger:
        """The device's account; what had to be cut or assumed is added to `notes`."""
        timeline, window, owned = self.timeline, self.timeline.window, self.swept.owned
        spans = [timeline.spans[i] for i in self.indices]
        running = ((s.start, s.end) for s in spans if s.kind not in ("copy", "set"))
        wall = window.ns if timeline.scaled_ns is None else timeline.scaled_ns
        return DeviceLedger(
            device=self.info.id,
            events=self.info.events,
            busy_ns=self.info.busy_ns,
            gpu_window_ns=self.info.window_ns,
            entries=self._entries(notes),
            resident_ns=min(union(running, window.start, window.end), wall),
            roof_ns=min(roof_ns(timeline, owned, self.work), wall),
            coverage=coverage(timeline, owned, self.work, self.places),
            ops=op_rows(timeline, self.indices, self.work, self.places),
        )

    def _entries(self, notes: list[str]) -> tuple[Entry, ...]:
        hidden, idle = self._idle(notes)
        busy = [Entry(bucket, cause, ns) for (bucket, cause), ns in self.swept.places.items() if ns]
        if hidden:
            busy.append(Entry("unknown", "unrecorded-graph", hidden))
        waiting = [Entry("overhead", cause, ns) for cause, ns in idle.items() if ns]
        entries = busy + waiting
        wall = self.timeline.scaled_ns
        if wall is not None:
            entries, cut = scale(busy, waiting, wall)
            if cut:
                notes.append(
                    f"device {self.info.id} was busy for {units.nanoseconds(sum(e.ns for e in busy))} while recorded, "
                    f"longer than the {units.nanoseconds(wall)} that the same work took "
                    "unrecorded: busy time is cut in proportion"
                )
            elif wall != self.timeline.window.ns:
                notes.append(
                    f"idle time is scaled so that the window is the {units.nanoseconds(wall)} measured without the "
                    f"profiler (recorded: {units.nanoseconds(self.timeline.window.ns)})"
                )
        return tuple(sorted(entries, key=lambda e: (BUCKETS.index(e.bucket), -e.ns, e.cause)))

    def _idle(self, notes: list[str]) -> tuple[int, dict[str, int]]:
        """Nanoseconds in which a graph ran unrecorded, and those of idle by cause."""
        hidden = 0
        causes: dict[str, int] = {}
        edges: dict[str, dict[str, int]] = {}
        stretches = self.timeline.unrecorded
        explain = self.host.explain_cpu if self.info.id == "cpu" else self.host.explain
        for gap in self.swept.gaps:
            within = [s for s in stretches if s[0] < gap.end and s[1] > gap.start]
            for start, end, cause, doing in explain(gap):
                covered = union(within, start, end) if within else 0
                hidden += covered
                causes[cause] = causes.get(cause, 0) + end - start - covered
                if doing:
                    edge = edges.setdefault(cause, {})
                    edge[doing] = edge.get(doing, 0) + end - start - covered
        for name, parts in edges.items():
            if sum(parts.values()) >= NOTED_EDGE * self.timeline.window.ns:
                notes.append(_edge_note(self.info.id, name, parts))
        return hidden, causes


def _edge_note(device: str, name: str, parts: Mapping[str, int]) -> str:
    doing = max(parts, key=lambda cause: (parts[cause], cause))
    whole, most = sum(parts.values()) / 1e6, parts[doing] / 1e6
    return f"device {device}, {CAUSES[name]}: {whole:,.1f} ms, most of it ({most:,.1f} ms) while {CAUSES[doing]}"

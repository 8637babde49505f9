"""A profiler's trace file into a Timeline: `read`."""

from __future__ import annotations

import os
from pathlib import Path

from ridgepole import collecting, units
from ridgepole.errors import BadInput
from ridgepole.timeline.model import Timeline, Window
from ridgepole.timeline.reading import build, clip, devices, graphs, hostonly, link, window
from ridgepole.timeline.reading.collect import Collector
from ridgepole.timeline.reading.document import Document
from ridgepole.timeline.reading.repair import Losses
from ridgepole.timeline.reading.rows import Rows
from ridgepole.timeline.reading.source import Source


def read(path: str | os.PathLike[str], *, steps: str | None = None) -> Timeline:
    """The timeline of a PyTorch profiler trace, plain or gzip, of any vendor and any year since 2021.

    `steps`: which profiler steps to explain ("2", "1-3", "all"); None: all of them where the file has steps, else
    from the first event to the last. Raises BadInput for what is no trace or has nothing to explain.
    """
    with collecting.held():
        document = Document(Source(path))
        collector = Collector()
        for batch in document.batches():
            collector.add(batch)
        return _timeline(collector.rows, document, Path(path), steps)


def _timeline(rows: Rows, document: Document, path: Path, asked: str | None) -> Timeline:
    notes = _loss_notes(document.losses, document.source.damage, rows)
    rows.streams = {stream: device for stream, device in rows.streams.items() if device}
    link.link(rows)
    on_cpu = not rows.streams
    if on_cpu:
        notes += _without_device(rows)
        hostonly.as_device(rows)
        link.name_phases(rows)
        if not rows.streams:
            raise BadInput(f"{path}: has neither device events nor CPU ops: there is nothing to explain")
    ids = devices.identify(rows) if not on_cpu else dict.fromkeys(rows.streams, "cpu")
    info = devices.describe(rows, ids, document.metadata.get("deviceProperties"))
    clipped = clip.clip(rows) if not on_cpu else clip.Clipped()
    if clipped.events:
        notes.append(
            f"clipped {_counted(clipped.events, 'event')} that ran on past the next on the stream, or past the end of "
            f"the recording, by {units.nanoseconds(clipped.ns)} in all"
        )
    _add_marks(rows)
    found = window.profiler_steps(rows)
    chosen = window.choose(rows, found, asked, str(path))
    hidden, stretches = graphs.unrecorded(rows) if not on_cpu else (0, [])
    if hidden:
        notes.append(_hidden_note(hidden, stretches, chosen))
    lanes = build.lanes(rows, ids)
    origin = min(row.start for lane in (*rows.threads.values(), *rows.streams.values()) for row in lane)
    spans, ops = build.build(rows, origin)
    return Timeline(
        kind="measured",
        target=path.name,
        spans=spans,
        lanes=lanes,
        ops=ops,
        window=Window(chosen.start - origin, chosen.end - origin, chosen.rule),
        devices=info,
        origin=origin + _base(document),
        steps=tuple(Window(s - origin, e - origin, f"profiler step #{n}") for n, (s, e) in found.items()),
        notes=tuple(notes),
        unrecorded=tuple((s - origin, e - origin) for s, e in stretches),
    )


def _base(document: Document) -> int:
    """What the file's times count from, in ns since 1970 where it says so."""
    text = document.metadata.get("baseTimeNanoseconds", b"").strip(b'"')
    return int(text) if text.isdigit() and len(text) < 20 else 0


def _add_marks(rows: Rows) -> None:
    """The device's own records of waits, where the call that waited was not recorded."""
    calls = {row.correlation for thread in rows.threads.values() for row in thread if row.kind == "sync"}
    lone = [row for row in rows.marks if "Wait" not in row.name and row.correlation not in calls]
    if lone:
        rows.threads[("", "waits recorded by the device")] = sorted(lone, key=lambda row: (row.start, -row.end))


def _without_device(rows: Rows) -> list[str]:
    launches = sum(row.kind == "launch" for thread in rows.threads.values() for row in thread)
    if launches:
        return [
            f"{_counted(launches, 'launch', 'launches')} but no device event: the profiler did not record the device, "
            "so only the CPU is explained"
        ]
    return ["no device events: the CPU is the machine"]


def _loss_notes(losses: Losses, damage: str, rows: Rows) -> list[str]:
    notes = []
    if losses.cut:
        notes.append(f"the file is cut off ({damage or 'its JSON ends early'}): what is whole of it was used")
    if losses.around:
        notes.append("what the file says around its events is not JSON: some of it, as the device's name, may be lost")
    if losses.mended:
        notes.append(f"mended {_counted(losses.mended, 'event')} whose text is not quite JSON")
    if losses.without_args:
        notes.append(f"used {_counted(losses.without_args, 'event')} without their arguments, which are not JSON")
    if losses.lost:
        notes.append(f"lost {_counted(losses.lost, 'event')} that could not be read")
    if rows.untimed:
        notes.append(f"left out {_counted(rows.untimed, 'event')} without a usable start")
    if rows.negative:
        notes.append(f"took {_counted(rows.negative, 'event')} of negative duration as ending at once")
    if rows.unknown:
        names = ", ".join(name for name, _ in rows.unknown.most_common(3))
        notes.append(f"left out {_counted(rows.unknown.total(), 'event')} of unknown category ({names})")
    return notes


def _hidden_note(launches: int, stretches: list[tuple[int, int]], chosen: Window) -> str:
    within = sum(max(min(e, chosen.end) - max(s, chosen.start), 0) for s, e in stretches)
    share = 100 * within / chosen.ns if chosen.ns else 0.0
    return (
        f"{_counted(launches, 'graph launch', 'graph launches')} without kernel records: the graph was not recorded; "
        f"it hides up to {share:.1f} % of the window, which is counted as unknown, not as idle"
    )


def _counted(n: int, noun: str, plural: str = "") -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {plural or noun + 's'}"

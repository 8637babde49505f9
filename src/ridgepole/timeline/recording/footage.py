"""From what a recorder has to a Timeline: which recording, which window, and what the steps cost unrecorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from ridgepole.errors import BadInput, RidgepoleError
from ridgepole.timeline.model import DEVICE_KINDS, Timeline, Window
from ridgepole.timeline.recording.plan import Plan, Recording
from ridgepole.timeline.recording.recorder import Footage, Take

CREDIBLE = 0.9
"""Recorded over bare time below which the bare steps were disturbed: recording makes nothing faster."""

STEADY = 1.3
"""Slowest over fastest bare batch above which the machine is said not to have been steady."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A trace on disk, the window wanted of it, and what is said about it."""

    trace: Path
    take: Take | None
    note: str = ""


def develop(footage: Footage, plan: Plan, folder: Path, target: str, *, apart: bool = False) -> Recording:
    """The Recording of a run that is over. `apart`: the last recorded step by itself is the window."""
    notes = list(footage.notes)
    try:
        cut = _choose(footage, plan, folder)
        if cut.note:
            notes.append(cut.note)
        timeline = _read(cut.trace)
    except RidgepoleError as error:
        return Recording(timeline=None, error=error, notes=tuple(notes), bare_ns=footage.bare_ns)
    timeline = replace(timeline, target=target)
    take = cut.take
    recorded: int | None = None
    if take is not None and take.marked and timeline.steps:
        timeline = replace(timeline, window=_window(timeline, take, apart=apart))
        if take.wall_ns is not None:
            recorded = take.wall_ns // (1 if apart else plan.steps)
    if recorded is not None and footage.bare_ns:
        bare = median(footage.bare_ns)
        steps = 1 if apart else plan.steps
        timeline = replace(timeline, inflation=recorded / bare)
        notes.append(_timing(footage.bare_ns, recorded, "call" if apart else "step"))
        if recorded / bare >= CREDIBLE:
            timeline = replace(timeline, scaled_ns=round(bare * steps))
        else:
            notes.append("the recorded steps were the faster ones, so something else slowed the others: not scaled")
    elif take is not None:
        notes.append("nothing was timed without the profiler: by how much it slowed the program is not known")
    timeline = replace(timeline, notes=(*timeline.notes, *notes))
    return Recording(timeline, notes=tuple(notes), bare_ns=footage.bare_ns, recorded_ns=recorded)


def _choose(footage: Footage, plan: Plan, folder: Path) -> _Cut:
    """The best there is: the planned steps, else the program's own trace, else steps or a run cut short."""
    steps = [take for take in footage.takes if take.kind == "steps"]
    whole = [take for take in footage.takes if take.kind == "whole"]
    complete = next((take for take in steps if take.wall_ns is not None), None)
    if complete is not None:
        return _Cut(_export(complete, folder), complete)
    if footage.theirs is not None:
        return _Cut(footage.theirs, None, "explained from the trace of the program's own torch profiler")
    early = f"the program marked {footage.steps_seen} steps and the plan needs {plan.least}: "
    partial = next((take for take in steps if take.marked), None)
    if partial is not None:
        return _Cut(_export(partial, folder), partial, early + "fewer are explained")
    if whole:
        take = whole[-1]
        return _Cut(_export(take, folder), take, early + "the warm-up is explained" if footage.steps_seen else "")
    if steps:
        return _Cut(_export(steps[-1], folder), steps[-1], early + "all that was recorded is explained")
    if footage.steps_seen:
        raise BadInput(early + "nothing was recorded; mark more steps, or give a smaller plan")
    if footage.waited:
        raise BadInput(
            "no torch op was recorded: there is a GPU here and the program never used it; "
            "mark its steps with ridgepole.step(), or hide the GPU with CUDA_VISIBLE_DEVICES= to record the CPU"
        )
    raise BadInput("no torch op was recorded: the program ran none that this can see, or none on its main thread")


def _export(take: Take, folder: Path) -> Path:
    return take.session.export(folder / "recorded.json")


def _read(trace: Path) -> Timeline:
    from ridgepole.timeline import reader

    try:
        timeline: Timeline = reader.read(trace)
        return timeline
    except BadInput as error:
        raise BadInput(f"no torch op was recorded ({error})".replace(str(trace), "the recording")) from error


def _window(timeline: Timeline, take: Take, *, apart: bool) -> Window:
    """The marked steps. Of a warm-up the first is left out where there are more: it compiles and allocates."""
    steps = timeline.steps[: take.marked] if take.kind == "steps" else timeline.steps
    if apart:
        steps = steps[-1:]
    elif take.kind == "whole" and len(steps) > 1:
        steps = steps[1:]
    start, end = steps[0].start, steps[-1].end
    if take.wall_ns is None:
        end = _with_tail(timeline, start, end)
    count = len(steps)
    return Window(start, end, f"{count} marked step{'s' if count > 1 else ''}")


def _with_tail(timeline: Timeline, start: int, end: int) -> int:
    """The end of the device work that was launched between `start` and `end`."""
    spans = timeline.spans
    last = end
    for span in spans:
        if span.kind in DEVICE_KINDS and span.launch is not None and start <= spans[span.launch].start < end:
            last = max(last, span.end)
    return last


def _timing(bare_ns: tuple[int, ...], recorded_ns: int, unit: str) -> str:
    middle = median(bare_ns)
    return (
        f"without the profiler a {unit} took {middle / 1e6:.3f} ms (median of {len(bare_ns)} batches, "
        f"{min(bare_ns) / 1e6:.3f} to {max(bare_ns) / 1e6:.3f}); recorded, {recorded_ns / 1e6:.3f} ms: "
        f"{recorded_ns / middle:.2f}x"
    ) + ("; the machine was not steady" if max(bare_ns) > STEADY * min(bare_ns) else "")

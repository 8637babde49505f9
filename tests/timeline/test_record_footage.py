"""Which recording is explained, and how its window is scaled, on recordings made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from ridgepole.errors import BadInput
from ridgepole.timeline.model import DeviceInfo, Lane, Span, Timeline, Window
from ridgepole.timeline.recording import footage as room
from ridgepole.timeline.recording.footage import develop
from ridgepole.timeline.recording.plan import Plan, Recording
from ridgepole.timeline.recording.recorder import Footage, Take

MS = 1_000_000
LANES = (Lane("cpu", "", "main"), Lane("gpu", "0", "stream 7"))


class Reel:
    """A stopped session whose trace is called `name`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def export(self, path: Path) -> Path:
        return path.with_name(self.name)


def take(name: str, kind: Any, marked: int = 0, wall_ns: int | None = None) -> Take:
    return Take(cast("Any", Reel(name)), kind, marked, wall_ns)


def timeline(steps: int) -> Timeline:
    """Steps of 10 ms one after another; in each a launch at 9 ms whose kernel runs for 5 ms, into the next."""
    spans = []
    for k in range(steps):
        spans.append(Span(0, (10 * k + 9) * MS, (10 * k + 9) * MS + 1000, "launch", "cudaLaunchKernel"))
        spans.append(Span(1, (10 * k + 10) * MS, (10 * k + 15) * MS, "kernel", "k", launch=2 * k))
    windows = tuple(Window(10 * k * MS, 10 * (k + 1) * MS, "step") for k in range(steps))
    whole = Window(0, 10 * steps * MS + 5 * MS, "all")
    return Timeline("measured", "f", tuple(spans), LANES, (), whole, (DeviceInfo("0"),), steps=windows)


@pytest.fixture
def developed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    def go(footage: Footage, steps: int = 3, plan: Plan | None = None, *, apart: bool = False) -> tuple[Recording, str]:
        read: list[str] = []

        def reader(path: Path) -> Timeline:
            read.append(path.name)
            return timeline(steps)

        monkeypatch.setattr(room, "_read", reader)
        recording = develop(footage, plan or Plan(), tmp_path, "me", apart=apart)
        return recording, "".join(read)

    return go


def test_the_window_is_scaled_to_the_median_bare_step(developed: Any) -> None:
    takes = (take("planned", "steps", 3, 30 * MS),)
    recording, read = developed(Footage(takes, None, (4 * MS, 5 * MS, 9 * MS), 30, ("said",)))
    assert read == "planned"
    line = recording.timeline
    assert (line.window, line.target) == (Window(0, 30 * MS, "3 marked steps"), "me")
    assert (line.inflation, line.scaled_ns, recording.recorded_ns) == (2.0, 15 * MS, 10 * MS)
    assert line.notes == recording.notes
    assert line.notes[0] == "said"
    assert "a step took 5.000 ms (median of 3 batches, 4.000 to 9.000); recorded, 10.000 ms: 2.00x" in line.notes[1]
    assert "not steady" in line.notes[1]


def test_bare_steps_slower_than_recorded_ones_are_not_believed(developed: Any) -> None:
    recording, _ = developed(Footage((take("planned", "steps", 3, 30 * MS),), None, (20 * MS,), 30, ()))
    assert (recording.timeline.inflation, recording.timeline.scaled_ns) == (0.5, None)
    assert any("not scaled" in note for note in recording.notes)


def test_a_call_timed_apart_is_explained_by_its_last_recording(developed: Any) -> None:
    footage = Footage((take("planned", "steps", 3, 10 * MS),), None, (5 * MS,), 30, ())
    recording, _ = developed(footage, apart=True)
    assert recording.timeline.window == Window(20 * MS, 30 * MS, "1 marked step")
    assert recording.timeline.scaled_ns == 5 * MS


def test_the_programs_own_trace_comes_before_a_recording_cut_short(developed: Any) -> None:
    footage = Footage((take("cut", "whole"),), Path("theirs"), (), 0, ())
    recording, read = developed(footage)
    assert read == "theirs"
    assert recording.timeline.window.rule == "all"
    assert any("own torch profiler" in note for note in recording.notes)


def test_a_warm_up_is_explained_without_its_first_step_and_with_the_work_it_left_running(developed: Any) -> None:
    recording, read = developed(Footage((take("warm", "whole", 3),), None, (), 3, ()))
    assert read == "warm"
    assert recording.timeline.window == Window(10 * MS, 35 * MS, "2 marked steps")
    assert any("marked 3 steps and the plan needs 19" in note for note in recording.notes)
    assert recording.timeline.inflation is None


def test_of_planned_steps_cut_short_the_complete_ones_are_explained(developed: Any) -> None:
    recording, _ = developed(Footage((take("part", "steps", 1),), None, (5 * MS,), 12, ()))
    assert recording.timeline.window == Window(0, 15 * MS, "1 marked step")
    assert recording.timeline.scaled_ns is None


def test_a_run_without_steps_keeps_the_readers_window(developed: Any) -> None:
    recording, _ = developed(Footage((take("run", "whole"),), None, (), 0, ()), steps=0)
    assert recording.timeline.window.rule == "all"
    assert any("not known" in note for note in recording.notes)


def test_nothing_recorded_is_one_line(developed: Any) -> None:
    for seen, why in [(0, "no torch op was recorded"), (5, "marked 5 steps")]:
        recording, _ = developed(Footage((), None, (), seen, ()))
        assert recording.timeline is None
        assert isinstance(recording.error, BadInput)
        assert why in str(recording.error)
        assert "\n" not in str(recording.error)

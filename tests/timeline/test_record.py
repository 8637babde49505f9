"""Functions, blocks, decorated functions and marked steps, recorded on this machine's CPU."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest

from ridgepole.errors import BadInput, Missing
from ridgepole.timeline import step
from ridgepole.timeline.record import Block, record_calls, record_function
from ridgepole.timeline.recording import bound, footage
from ridgepole.timeline.recording.plan import Plan, Recording
from ridgepole.timeline.recording.recorder import Recorder

torch = pytest.importorskip("torch")

BRIEF = Plan(warmup=1, bare=2, settle=1, steps=2)


@pytest.fixture
def work() -> Callable[[], object]:
    x = torch.ones(128, 128)

    def twice() -> object:
        return torch.tanh(x @ x).sum()

    return twice


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine would time its scheduler."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _nobody_listens_afterwards() -> Iterator[None]:
    yield
    assert step._current is None
    assert step._outer == []


def ops(recording: Recording) -> set[str]:
    assert recording.timeline is not None, recording.error
    return {span.name for span in recording.timeline.spans if span.kind == "op"}


def assert_scaled(recording: Recording, steps: int) -> None:
    """The window is scaled to the bare wall, unless another program slowed the bare steps meanwhile."""
    assert recording.timeline is not None
    assert recording.recorded_ns is not None
    bare = median(recording.bare_ns)
    disturbed = recording.recorded_ns / bare < footage.CREDIBLE
    assert recording.timeline.scaled_ns == (None if disturbed else round(steps * bare))


def test_a_marker_costs_under_a_microsecond_while_nobody_records() -> None:
    def loop(n: int) -> float:
        began = time.perf_counter()
        for _ in range(n):
            with step.step():
                pass
        return (time.perf_counter() - began) / n

    assert min(loop(20_000) for _ in range(5)) < 1e-6


def test_a_function_is_timed_bare_and_recorded_and_its_result_comes_back(work: Callable[[], object]) -> None:
    recording = record_function(work, plan=BRIEF)
    timeline = recording.timeline
    assert timeline is not None
    assert torch.equal(recording.result, work())
    assert timeline.target.endswith("twice")
    assert timeline.window.rule == "2 marked steps"
    assert {"aten::mm", "aten::tanh", "aten::sum"} <= ops(recording)
    assert len(recording.bare_ns) >= 5
    bare = median(recording.bare_ns)
    assert recording.recorded_ns is not None
    assert_scaled(recording, 2)
    assert timeline.inflation == pytest.approx(recording.recorded_ns / bare)
    assert timeline.window.ns == pytest.approx(2 * recording.recorded_ns, rel=0.1, abs=200_000)
    assert any("without the profiler a step took" in note for note in timeline.notes)
    assert any(note.startswith("called ") for note in timeline.notes)


def test_bare_time_is_what_a_stopwatch_says() -> None:
    def nap() -> object:
        time.sleep(0.02)
        return torch.ones(2) + 1

    recording = record_function(nap, plan=BRIEF)
    assert 20e6 < median(recording.bare_ns) < 25e6
    assert_scaled(recording, 2)


def test_without_bare_steps_inflation_is_unknown_and_said_to_be(work: Callable[[], object]) -> None:
    recording = record_function(work, plan=Plan(warmup=0, bare=0, settle=0, steps=1))
    assert recording.timeline is not None
    assert recording.timeline.inflation is None
    assert recording.timeline.scaled_ns is None
    assert any("not known" in note for note in recording.notes)


def test_a_slow_function_is_called_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr("ridgepole.timeline.record.SLOW_SECONDS", 0.05)
    monkeypatch.setattr("ridgepole.timeline.recording.recorder.ENOUGH", 50_000_000)

    def slow() -> object:
        calls.append(1)
        time.sleep(0.06)
        return torch.ones(2) + 1

    recording = record_function(slow)
    assert recording.timeline is not None
    assert recording.timeline.inflation is not None
    assert len(calls) <= 12


def test_what_the_function_raises_passes_and_the_profiler_is_off_again(work: Callable[[], object]) -> None:
    def broken() -> None:
        work()
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        record_function(broken)
    with torch.profiler.profile(acc_events=True) as profile:
        work()
    assert profile.events()


def test_a_function_that_runs_no_op_is_bad_input_not_an_empty_ledger() -> None:
    recording = record_function(lambda: sum(range(10)), plan=BRIEF)
    assert recording.timeline is None
    assert isinstance(recording.error, BadInput)
    assert "no torch op was recorded" in str(recording.error)


def test_a_function_that_marks_steps_is_called_once(work: Callable[[], object]) -> None:
    calls = []

    def train() -> str:
        calls.append(1)
        for _ in range(3000):
            with step.step():
                work()
                with step.step():
                    pass
        return "trained"

    recording = record_function(train, plan=BRIEF)
    assert (recording.result, len(calls)) == ("trained", 1)
    assert recording.timeline is not None
    assert recording.timeline.window.rule == "2 marked steps"
    assert recording.timeline.inflation is not None


def test_a_gpu_that_is_not_there_is_missing(work: Callable[[], object]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(Missing, match="no GPU"):
        record_function(work, device="cuda")


def test_a_plan_without_recorded_steps_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 1"):
        Plan(steps=0)
    with pytest.raises(BadInput, match="negative"):
        Plan(warmup=-1)


def test_a_block_runs_once_and_whole(work: Callable[[], object]) -> None:
    with Block() as block:
        work()
        torch.ones(4).cumsum(0)
    assert block.recording is not None
    assert {"aten::mm", "aten::cumsum"} <= ops(block.recording)
    assert block.recording.timeline is not None
    assert block.recording.timeline.inflation is None


def test_a_block_that_raises_is_kept(work: Callable[[], object]) -> None:
    block = Block()
    with pytest.raises(ValueError, match="mine"), block:
        work()
        raise ValueError("mine")
    assert block.recording is not None
    assert "aten::mm" in ops(block.recording)


def test_steps_marked_in_a_block_follow_the_plan(work: Callable[[], object]) -> None:
    with Block(plan=BRIEF) as block:
        torch.ones(4).cumsum(0)
        for _ in range(2000):
            with step.step():
                work()
    assert block.recording is not None
    assert block.recording.timeline is not None
    assert "aten::cumsum" not in ops(block.recording)
    assert block.recording.timeline.window.rule == "2 marked steps"
    assert block.recording.timeline.inflation is not None


def test_time_between_markers_belongs_to_the_steps() -> None:
    with Block(plan=BRIEF) as block:
        for _ in range(40):
            time.sleep(0.005)
            with step.step():
                time.sleep(0.005)
                torch.ones(4).sum()
    assert block.recording is not None
    assert block.recording.timeline is not None
    assert 20e6 < block.recording.timeline.window.ns < 35e6
    assert 10e6 < median(block.recording.bare_ns) < 17e6


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 9])
def test_a_program_that_ends_before_the_plan_is_explained_from_what_there_is(
    work: Callable[[], object], steps: int
) -> None:
    with Block(plan=Plan(warmup=3, bare=1000)) as block:
        for _ in range(steps):
            with step.step():
                work()
        torch.ones(4).cumsum(0)
    assert block.recording is not None
    assert "aten::mm" in ops(block.recording)
    assert any(f"marked {steps} steps" in note for note in block.recording.notes)


def test_markers_on_other_threads_count_for_nothing(work: Callable[[], object]) -> None:
    def elsewhere() -> None:
        with step.step():
            pass

    with Block(plan=BRIEF) as block:
        work()
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert block.recording is not None
    assert block.recording.timeline is not None
    assert block.recording.timeline.steps == ()


def test_a_decorated_function_runs_as_often_as_it_is_called_and_delivers_once(work: Callable[[], object]) -> None:
    delivered: list[Recording] = []
    calls = []

    def add(a: int, *, b: int) -> int:
        """Adds."""
        calls.append(a)
        work()
        return a + b

    added = record_calls(add, delivered.append, plan=BRIEF)
    assert [added(i, b=1) for i in range(12)] == list(range(1, 13))
    assert len(calls) == 12
    assert (added.__name__, added.__doc__) == ("add", "Adds.")
    [recording] = delivered
    assert recording.timeline is not None
    assert recording.timeline.window.rule == "1 marked step"
    assert recording.timeline.inflation is not None
    assert_scaled(recording, 1)


def test_a_decorated_function_that_raises_or_recurses_stays_itself(work: Callable[[], object]) -> None:
    delivered: list[Recording] = []

    def down(n: int) -> int:
        work()
        if n < 0:
            raise ValueError("below")
        return 0 if n == 0 else 1 + recorded(n - 1)

    recorded = record_calls(down, delivered.append, plan=BRIEF)
    assert recorded(4) == 4
    with pytest.raises(ValueError, match="below"):
        recorded(-1)
    for _ in range(10):
        recorded(2)
    assert len(delivered) == 1


def test_a_recording_inside_a_recording_goes_first(work: Callable[[], object]) -> None:
    with Block() as outer:
        work()
        with Block() as inner:
            torch.ones(4).cumsum(0)
        work()
    assert inner.recording is not None
    assert "aten::cumsum" in ops(inner.recording)
    assert outer.recording is not None
    assert "aten::mm" in ops(outer.recording)


def test_a_recording_that_lasts_too_long_stops_and_says_so(
    work: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound.Bound.__init__, "__defaults__", (0.2,))
    with Block() as block:
        began = time.monotonic()
        while time.monotonic() - began < 0.6:
            work()
        torch.ones(4).cumsum(0)
    assert block.recording is not None
    assert "aten::mm" in ops(block.recording)
    assert "aten::cumsum" not in ops(block.recording)
    assert any("recording stopped after 0.2 s" in note for note in block.recording.notes)


def test_nothing_is_left_in_the_temporary_folder(
    work: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    record_function(work, plan=BRIEF)
    with Block():
        work()
    assert list(tmp_path.iterdir()) == []


def test_batches_are_sized_by_the_device_and_not_by_a_host_that_runs_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that takes 4 ms a step, while the host issues one in no time."""
    queued = 0
    longest = 0

    def issue() -> None:
        nonlocal queued
        torch.ones(2).sum()
        queued += 1

    def wait() -> None:
        nonlocal queued, longest
        longest = max(longest, queued)
        time.sleep(0.004 * queued)
        queued = 0

    monkeypatch.setattr("ridgepole.timeline.recording.profiler.synchroniser", lambda: wait)
    monkeypatch.setattr("ridgepole.timeline.recording.recorder.ENOUGH", 100_000_000)
    recording = record_function(issue)
    assert longest <= 13  # 50 ms of them
    assert 4e6 < median(recording.bare_ns) < 5e6
    assert recording.recorded_ns is not None
    assert 4e6 < recording.recorded_ns < 6e6


class Gpu:
    """A GPU as torch.cuda tells of one: asleep until its first use."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.awake = self.waking = False
        self.queued: list[Callable[[], None]] = []
        monkeypatch.setattr(torch.cuda, "_lazy_init", self.use)
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: self.awake)
        monkeypatch.setattr("ridgepole.timeline.recording.profiler.gpu_possible", lambda: True)
        monkeypatch.setattr("ridgepole.timeline.recording.profiler._wait_for_gpus", lambda: None)

    def use(self) -> None:
        if self.awake or self.waking:
            return
        self.waking = True
        torch.cuda._lazy_init()  # as seeds do that wait for the GPU
        self.awake = True


def test_recording_waits_for_the_first_use_of_the_gpu(
    work: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Gpu(monkeypatch)
    with Block() as block:
        torch.ones(4).cumsum(0)
        torch.cuda._lazy_init()
        work()
        torch.cuda._lazy_init()
    assert torch.cuda._lazy_init == gpu.use
    assert block.recording is not None
    assert "aten::mm" in ops(block.recording)
    assert "aten::cumsum" not in ops(block.recording)


def test_a_gpu_that_is_never_used_is_said_to_be(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    Gpu(monkeypatch)
    with Block() as block:
        work()
    assert block.recording is not None
    assert "the program never used it" in str(block.recording.error)


def test_recording_settles_until_steps_no_longer_get_faster() -> None:
    pauses = iter([0.001] * 3 + [0.03, 0.02, 0.01, 0.01] + [0.005] * 100)
    seen = []

    def nap() -> None:
        pause = next(pauses)
        seen.append(pause)
        torch.ones(2).sum()
        time.sleep(pause)

    recorder = Recorder(Plan(warmup=3, bare=0, settle=1, steps=2), whole=False)
    recorder.begin()
    while recorder.phase != "done":
        recorder.enter()
        if recorder.phase != "done":
            nap()
            recorder.leave()
    recorder.end(goes_on=True)
    recorder.discard()
    assert seen == [0.001] * 3 + [0.03, 0.02, 0.01, 0.01] + [0.005] * 2

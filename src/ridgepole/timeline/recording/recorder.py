"""Recording a program while it runs: the whole of it, or planned steps of it once it marks some.

Until a step is marked the whole run is recorded. The first marker starts the plan (see `Plan`): the whole-run
recording goes on through the warm-up, kept only for a program that ends early, then stops; steps are timed bare,
then recorded, then timed bare again, each batch with one wait for the device at both ends, so that what the device
does asynchronously within a batch stays as it was. After the plan the markers cost nothing again.

A step lasts from its marker to the next one, so that what the loop does between markers (loading data) counts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ridgepole.timeline import step
from ridgepole.timeline.recording import foreign, profiler
from ridgepole.timeline.recording.bound import Bound, on_main_thread
from ridgepole.timeline.recording.plan import Plan
from ridgepole.timeline.recording.profiler import Device, Session

Phase = Literal["whole", "warmup", "bare", "record", "done"]

LEAST_BATCH = 50_000_000
"""Nanoseconds a bare batch lasts at least: its two waits (some 0.1 ms) then weigh under 0.3 %."""

FASTER = 0.9
"""A recorded step in less than this share of the time before it shows that recording has not settled."""

MOST_SETTLING = 4
"""Times `settle` steps that recording is given to settle."""

SHORT_BATCH = 10
"""Times `bare` steps that the batch before a marked program's recording has at most, however short they are."""

ENOUGH = 1_000_000_000
"""Nanoseconds of bare steps after the recorded ones that are enough: clocks and hosts drift within less."""

ENOUGH_BATCHES = 20
"""So many batches are enough, however short."""


@dataclass(frozen=True, slots=True)
class Take:
    """One stopped recording. `marked`: its steps that are complete and may be explained, from the first on.

    `wall_ns`: of the marked steps, by the host's clock with a wait for the device at both ends.
    """

    session: Session
    kind: Literal["whole", "steps"]
    marked: int = 0
    wall_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Footage:
    """What a recorder has once the program is over."""

    takes: tuple[Take, ...]
    theirs: Path | None
    bare_ns: tuple[int, ...]
    steps_seen: int
    notes: tuple[str, ...]
    waited: bool = False
    """The recording waited for a first use of the GPU that never came."""


class Recorder:
    """Records the calling program by `plan`, from `begin` to `end`. Never raises into the program.

    `whole`: record from the start, before any marker. `apart`: each step is timed by itself from enter to leave
    (a decorated function, whose callers' time between calls is not its own). `before`: bare batches wanted before
    the recorded steps.
    """

    def __init__(
        self, plan: Plan, device: Device = "auto", *, whole: bool = True, apart: bool = False, before: int = 1
    ) -> None:
        self.plan = plan
        self.phase: Phase = "whole"
        self.folder = Path(tempfile.mkdtemp(prefix="ridgepole-"))
        self._pid = os.getpid()
        self._device: Device = device
        self._whole = whole
        self._apart = apart
        self.before = before
        self._session: Session | None = None
        self._takes: list[Take] = []
        self._complete = False
        self._bare: list[int] = []
        self._pilot: int | None = None
        self._length = 0
        self._after = 0
        self._after_ns = 0
        self._settled = False
        self._settling = 0
        self._pace = 0
        self._notes: list[str] = []
        self._count = 0
        self._seen = 0
        self._open = False
        self._start = 0
        self._waiting = False
        self._foreign = False
        self._theirs: Path | None = None
        self._ended = False
        self._footage: Footage | None = None
        self._orphan: Session | None = None
        self._wait: Callable[[], None] = _nothing
        self._watch = foreign.Watch(self, self.folder)
        self._bound = Bound(self._cut)

    # From the outside

    def begin(self) -> None:
        """Starts watching, and recording if the whole run is to be. torch must have been imported."""
        self._watch.install()
        if self._whole:
            self._safely(self._start_whole)

    def end(self, *, goes_on: bool = False) -> Footage:
        """Stops whatever is on. `goes_on`: the process has more to do, so the profiler is cleaned up fully."""
        if self._footage is not None:
            return self._footage
        self._ended = True
        self._bound.stop()
        step.unsubscribe(self)
        self._safely(lambda: self._stop(tear_down=goes_on))
        self.phase = "done"
        if self._theirs is None and not self._complete:
            self._theirs = self._watch.last_unexported()
        self._watch.remove()
        bare = self._bare or ([] if self._pilot is None else [self._pilot])
        self._footage = Footage(
            tuple(self._takes), self._theirs, tuple(bare), self._seen, tuple(self._notes), self._waiting
        )
        return self._footage

    def abandon(self) -> None:
        """For a forked child, whose parent goes on: nothing is recorded here, and nothing will come of it."""
        self._ended = True
        self._orphan, self._session = self._session, None  # kept: freeing it would wait for threads that are not here
        if self._orphan is not None:
            self._safely(profiler.hush_in_child)
        self._footage = Footage((), None, (), 0, ())
        self.phase = "done"
        self._bound.stop()
        self._watch.remove()

    def discard(self) -> None:
        """Frees the recordings and the files behind them."""
        if os.getpid() != self._pid:
            return
        self._takes.clear()
        self._footage = None
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def orphaned(self) -> bool:
        """Whether this is a forked child, and was being recorded when it was born."""
        return self._orphan is not None

    @property
    def heard(self) -> bool:
        """Whether any step was marked."""
        return self._seen > 0

    # Told of steps

    def enter(self) -> None:
        self._safely(self._enter)

    def leave(self) -> None:
        self._safely(self._leave)

    def _enter(self) -> None:
        if self._open and not self._apart:
            self._completed()
        if self.phase == "whole":
            self.phase = "warmup"
            if self.plan.warmup == 0:
                self._warm()
        if self.phase == "done":
            return
        self._open = True
        self._seen += 1
        if self._apart and self.phase in ("bare", "record"):
            self._wait()
        if self._session is not None:
            self._session.open_range(self._name())
        if self._apart:
            self._start = time.perf_counter_ns()

    def _leave(self) -> None:
        if self._apart:
            self._completed()
        elif self.phase == "warmup" and self._session is not None:
            self._session.close_range()

    def _name(self) -> str:
        if self.phase == "record" and not self._settled:
            return f"ridgepole.settle#{self._count}"
        return f"ProfilerStep#{self._count - self._settling}"

    def _completed(self) -> None:
        self._open = False
        self._count += 1
        if self.phase == "warmup":
            if self._session is not None:
                self._session.close_range()
            if self._count >= self.plan.warmup:
                self._warm()
        elif self.phase == "bare":
            self._bare_step()
        elif self.phase == "record":
            self._recorded_step()

    def _warm(self) -> None:
        """The warm-up is over."""
        self._stop(tear_down=True)
        self._wait = profiler.synchroniser()
        if self.plan.bare:
            self._start_batch()
        else:
            self._start_record()

    def _start_batch(self) -> None:
        self.phase = "bare"
        self._count = 0
        self._length = self._batch_length()
        self._wait()
        self._start = time.perf_counter_ns()

    def _batch_length(self) -> int:
        """Steps of the next bare batch. The host's clock alone cannot end one: it may be far ahead of the device."""
        if self._apart:
            return 1
        step_ns = self._bare[-1] if self._bare else self._pilot
        if step_ns is None:
            return self.plan.bare
        length = max(self.plan.bare, -(-LEAST_BATCH // max(step_ns, 1)))
        if self.before == 1 and not self._complete:
            # nobody knows how many steps the program has left, and some must be recorded
            length = min(length, SHORT_BATCH * self.plan.bare)
        return length

    def _bare_step(self) -> None:
        if self._count < self._length:
            return
        self._wait()
        ns = time.perf_counter_ns() - self._start
        if self._pilot is None and not self._apart and ns < LEAST_BATCH:
            self._pilot = ns // self._count
            self._start_batch()
            return
        self._bare.append(ns // self._count)
        self._start_batch()
        self._after_batch(ns)

    def _after_batch(self, ns: int) -> None:
        """A bare batch of `ns` is timed: on to recording, or to more of them, or to the end."""
        if not self._complete:
            if len(self._bare) >= (self.plan.bare if self._apart else self.before):
                self._start_record()
            return
        self._after += 1
        self._after_ns += ns
        if self._apart:
            done = self._after >= self.plan.bare
        else:
            done = self._after >= ENOUGH_BATCHES or self._after_ns >= (ENOUGH if self._after >= 3 else 3 * ENOUGH)
        if done:
            self._finish()

    def _start_record(self) -> None:
        self._takes.clear()  # the warm-up's must be written before another starts, and is not worth that
        self._session = Session(self._gpu(), self)
        self._session.start()
        self._bound.start()
        self.phase = "record"
        self._count = self._settling = self._pace = 0
        self._settled = self.plan.settle == 0
        self._wait = profiler.synchroniser()
        self._wait()
        self._start = time.perf_counter_ns()

    def _recorded_step(self) -> None:
        if self._apart:
            self._wait()
        if not self._settled:
            self._settle()
            return
        if self._count < self._settling + self.plan.steps:
            return
        self._wait()  # inside the last step's annotation: what it left running belongs to it
        wall = time.perf_counter_ns() - self._start
        self._complete = True
        self._stop(tear_down=True, wall=wall)
        if self.plan.bare:
            self._start_batch()
        else:
            self._finish()

    def _settle(self) -> None:
        """One more step has been recorded that is not explained: enough, once they no longer get faster."""
        now = time.perf_counter_ns()
        before, self._pace, self._start = self._pace, now - self._start, now
        faster = before == 0 or self._pace < FASTER * before
        if self._count < self.plan.settle or (faster and self._count < MOST_SETTLING * self.plan.settle):
            return
        self._settling = self._count
        self._settled = True
        self._wait()
        self._start = time.perf_counter_ns()

    def _finish(self) -> None:
        self.phase = "done"
        step.unsubscribe(self)

    # Starting and stopping

    def _gpu(self) -> bool:
        return self._device != "cpu" and profiler.gpu_awake()

    def _start_whole(self) -> None:
        if self._ended or self._foreign or self._session is not None or self.phase != "whole":
            return
        if self._device != "cpu" and profiler.gpu_possible() and not profiler.gpu_awake():
            # Starting now would wake the driver before the program does; and work before that is not the GPU's.
            self._waiting = True
            profiler.when_gpu_wakes(lambda: on_main_thread(lambda: self._safely(self._start_whole)))
            return
        self._waiting = False
        self._session = Session(self._gpu(), self)
        self._session.start()
        self._bound.start()

    def _stop(self, *, tear_down: bool, wall: int | None = None) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        self._bound.stop()
        kind: Literal["whole", "steps"] = "steps" if self.phase == "record" else "whole"
        if kind == "steps":
            marked = self._count - self._settling if self._settled else 0
        else:
            marked = 0 if self.phase == "whole" else self._count + self._open
        session.stop(tear_down=tear_down)
        self._takes.append(Take(session, kind, marked, wall))

    def _cut(self, why: str) -> None:
        """The recording has become too long: what there is is kept."""
        if self._session is None or self._ended:
            return
        self._notes.append(f"recording stopped {why}; mark steps with ridgepole.step() to record a few of them only")
        self._safely(lambda: self._stop(tear_down=True))
        if self.phase == "record":
            self._finish()

    def _safely(self, act: Callable[[], None]) -> None:
        """Does `act`; where it fails the recording ends and the program does not notice."""
        try:
            act()
        except Exception as error:
            self._notes.append(f"recording stopped: {type(error).__name__}: {error}".splitlines()[0])
            session, self._session = self._session, None
            if session is not None:
                with suppress(Exception):  # it may be what failed; a profiler left on would slow the program
                    session.stop()
            self._finish()

    # Told of the program's own profiler

    def theirs_starts(self) -> None:
        if self._foreign or self._ended:
            return
        self._foreign = True
        if self.phase != "done":
            self._notes.append("the program started a torch profiler of its own: this recording stopped there")
        self._safely(self._make_way)

    def _make_way(self) -> None:
        """Stops, and writes what there is while it can be written."""
        self._stop(tear_down=False)
        for number, take in enumerate(self._takes):
            take.session.export(self.folder / f"recorded-{number}.json")
        self._finish()

    def theirs_exports(self, trace: Path) -> None:
        self._theirs = trace


def _nothing() -> None:
    return None

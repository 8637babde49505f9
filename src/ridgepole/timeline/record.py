"""Recording a function, a block or a decorated function of this process. Scripts: see `live`.

Each gives a Recording whose timeline covers a few steps in steady state, and knows what the same steps cost without
the profiler (`inflation`, `scaled_ns`), wherever steps could be told apart.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from ridgepole.errors import Missing
from ridgepole.timeline import step
from ridgepole.timeline.recording import profiler
from ridgepole.timeline.recording.footage import develop
from ridgepole.timeline.recording.live import record_script
from ridgepole.timeline.recording.plan import Plan, Recording
from ridgepole.timeline.recording.profiler import Device
from ridgepole.timeline.recording.recorder import Recorder

__all__ = ["Block", "Device", "Plan", "Recording", "record_calls", "record_function", "record_script"]

T = TypeVar("T")

WARM_SECONDS = 0.5
"""A function is warmed up at least this long: a host's clocks take 0.6 s to rise (7.2 to 5.0 ms a step, H200 box)."""

SLOW_SECONDS = 2.0
"""A function whose first call takes longer is called as few times as possible."""

BATCHES_BEFORE = 5


def record_function(
    fn: Callable[..., object],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    plan: Plan | None = None,
    device: Device = "auto",
    target: str = "",
) -> Recording:
    """Calls `fn(*args, **kwargs)` again and again: warm-up, bare, recorded, bare (see Plan). What it raises passes.

    Where `fn` marks steps with `ridgepole.step()` itself it is called once, and its steps are recorded.
    """
    _need_torch()
    chosen, given = plan or Plan(), dict(kwargs or {})
    name = target or getattr(fn, "__qualname__", "function")
    recorder = Recorder(chosen, device, whole=False)
    recorder.begin()
    try:
        step.subscribe(recorder)
        began = time.perf_counter()
        result = fn(*args, **given)
        first = time.perf_counter() - began
        step.unsubscribe(recorder)
        if recorder.heard:
            calls = 1
        else:
            _need_gpu(device)
            recorder.before = BATCHES_BEFORE
            if first >= SLOW_SECONDS:
                chosen = recorder.plan = Plan(warmup=0, bare=min(1, chosen.bare), settle=1, steps=1)
                recorder.before = 1
            result, calls = _repeat(recorder, lambda: fn(*args, **given), began, chosen.warmup)
        recording = develop(recorder.end(goes_on=True), chosen, recorder.folder, name)
    finally:
        recorder.end(goes_on=True)
        recorder.discard()
    return _with_note(replace(recording, result=result), f"called {calls} times" if calls > 1 else "")


def _repeat(recorder: Recorder, call: Callable[[], T], began: float, warmup: int) -> tuple[T, int]:
    calls = 1
    result: T | None = None
    wanted = WARM_SECONDS if warmup else 0.0
    wait = profiler.synchroniser()
    wait()
    while time.perf_counter() - began < wanted:
        result = call()
        wait()  # else the host may run a thousand calls ahead of the device meanwhile
        calls += 1
    while True:
        recorder.enter()
        if recorder.phase == "done":
            return result, calls  # type: ignore[return-value]
        result = call()
        recorder.leave()
        calls += 1


class Block:
    """`with Block() as block: ...` records the block once, whole; by the plan where steps are marked in it.

    Afterwards `recording` is there, whether or not the block raised.
    """

    def __init__(self, plan: Plan | None = None, device: Device = "auto", target: str = "block") -> None:
        self.recording: Recording | None = None
        self._plan = plan or Plan()
        self._device: Device = device
        self._target = target
        self._recorder: Recorder | None = None

    def __enter__(self) -> Block:
        _need_torch()
        _need_gpu(self._device)
        self._recorder = Recorder(self._plan, self._device, whole=True)
        self._recorder.begin()
        step.subscribe(self._recorder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        try:
            self.recording = develop(recorder.end(goes_on=True), self._plan, recorder.folder, self._target)
        finally:
            recorder.discard()


def record_calls(
    fn: Callable[..., T],
    deliver: Callable[[Recording], None],
    *,
    plan: Plan | None = None,
    device: Device = "auto",
    target: str = "",
) -> Callable[..., T]:
    """`fn` unchanged in result and number of calls; its own calls are the plan's steps.

    `deliver` is given the Recording once the plan is complete, or when the process ends. Each planned call waits
    for the device before and after; calls from inside a call, and from other threads, are not counted.
    """
    recording = _Calls(plan or Plan(), device, target or getattr(fn, "__qualname__", "function"), deliver)

    @functools.wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> T:
        if not recording.enter():
            return fn(*args, **kwargs)
        try:
            return fn(*args, **kwargs)
        finally:
            recording.leave()

    return recorded


class _Calls:
    """The calls of one decorated function, from the first until the plan is complete."""

    def __init__(self, plan: Plan, device: Device, target: str, deliver: Callable[[Recording], None]) -> None:
        self._plan = plan
        self._device: Device = device
        self._target = target
        self._deliver = deliver
        self._recorder: Recorder | None = None
        self._thread = 0
        self._inside = False
        self._over = False

    def enter(self) -> bool:
        """Whether the call that begins now is counted."""
        if self._over or self._inside:
            return False
        if self._recorder is None:
            _need_torch()
            self._thread, self._pid = threading.get_ident(), os.getpid()
            self._recorder = Recorder(self._plan, self._device, whole=True, apart=True)
            self._recorder.begin()
            atexit.register(self._close)
        if threading.get_ident() != self._thread or os.getpid() != self._pid:
            return False
        self._inside = True
        self._recorder.enter()
        return True

    def leave(self) -> None:
        self._inside = False
        if self._recorder is None:
            return
        self._recorder.leave()
        if self._recorder.phase == "done":
            self._close(goes_on=True)

    def _close(self, *, goes_on: bool = False) -> None:
        recorder = self._recorder
        if self._over or recorder is None or os.getpid() != self._pid:
            return
        self._over = True
        atexit.unregister(self._close)
        try:
            recording = develop(recorder.end(goes_on=goes_on), self._plan, recorder.folder, self._target, apart=True)
        finally:
            recorder.discard()
        self._deliver(recording)


def _with_note(recording: Recording, note: str) -> Recording:
    if not note:
        return recording
    timeline = recording.timeline
    if timeline is not None:
        timeline = replace(timeline, notes=(*timeline.notes, note))
    return replace(recording, timeline=timeline, notes=(*recording.notes, note))


def _need_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise Missing(f"recording needs torch, which does not import here ({error}): pip install torch") from error


def _need_gpu(device: Device) -> None:
    if device != "cuda":
        return
    import torch

    if not torch.cuda.is_available():
        raise Missing("device cuda was asked for, and torch finds no GPU here; ridgepole machine doctor says why")
    if not profiler.gpu_awake():
        torch.cuda.init()

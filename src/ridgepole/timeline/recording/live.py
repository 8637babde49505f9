"""Recording a script while it runs, however it ends.

torch is not imported before the program does it itself (environment variables that it sets first still count), nor is
the GPU's driver woken. What was recorded is kept where the program returns, raises, exits, is interrupted, calls
`os._exit` or is asked to end by SIGTERM. Forked children record nothing and deliver nothing.
"""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType, ModuleType
from typing import Any, NoReturn

from ridgepole.errors import RidgepoleError
from ridgepole.timeline import step
from ridgepole.timeline.recording import program
from ridgepole.timeline.recording.bound import on_main_thread
from ridgepole.timeline.recording.footage import develop
from ridgepole.timeline.recording.plan import Plan, Recording
from ridgepole.timeline.recording.profiler import Device
from ridgepole.timeline.recording.recorder import Recorder

Deliver = Callable[[Recording], None]

DEEP = 1000
"""Python's own recursion limit."""


def record_script(
    script: str,
    argv: Sequence[str] = (),
    *,
    plan: Plan | None = None,
    device: Device = "auto",
    module: bool = False,
    deliver: Deliver | None = None,
) -> Recording:
    """Runs `script` (a module's name if `module`) with `argv` and records it. BadInput where it is no such file.

    `deliver` is given the Recording once, also where the process is about to end without returning here.
    """
    if not module:
        program.check(script)
    run = _ScriptRun(script, plan or Plan(), device, deliver)
    with run.watching():
        code = program.run_module(script, argv) if module else program.run(script, argv)
        return run.over(code)


class _ScriptRun:
    """One run of a script: starts the recorder when torch arrives, and closes it exactly once, in one process."""

    def __init__(self, target: str, plan: Plan, device: Device, deliver: Deliver | None) -> None:
        self._target = target
        self._plan = plan
        self._deliver = deliver
        self._pid = os.getpid()
        self._recorder = Recorder(plan, device, whole=True)
        self._recording: Recording | None = None
        self._closing = False
        self._sigterm = False
        self._watching = False
        self._real_exit = os._exit
        self._stderr = sys.stderr

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Everything that tells of the program's beginning and end, put back afterwards."""
        step.subscribe(self._recorder)
        arrival = _Arrival("torch", lambda: on_main_thread(self._recorder.begin))
        arrival.install()
        os._exit = self._exit_now
        self._catch_sigterm()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_child)
        self._watching = True
        try:
            yield
        finally:
            self._watching = False
            os._exit = self._real_exit
            self._release_sigterm()
            arrival.remove()
            self._recorder.end()
            self._recorder.discard()

    def over(self, code: int) -> Recording:
        """The program has ended with `code`. In a forked child, which came here too, the process ends so."""
        if os.getpid() != self._pid:
            self._end_child(code)
        if self._recording is None:
            self._closing = True
            with self._at_ease():
                recording = self._developed()
                self._recording = replace(recording, exit_code=code)
                if self._deliver is not None:
                    self._deliver(self._recording)
        return self._recording

    @contextmanager
    def _at_ease(self) -> Iterator[None]:
        """What the program set for itself does not hold for us: its stderr, its recursion limit."""
        theirs, limit = sys.stderr, sys.getrecursionlimit()
        sys.stderr = _fresh(2) if self._stderr is not None and self._stderr.closed else self._stderr
        sys.setrecursionlimit(max(limit, DEEP))
        try:
            yield
        finally:
            sys.stderr = theirs
            with suppress(RecursionError):
                sys.setrecursionlimit(limit)

    def _end_child(self, code: int) -> NoReturn:
        if not self._recorder.orphaned:
            raise SystemExit(code)
        # The profiler's static destructors wait for threads that a fork does not take along: end as Python would,
        # and leave C++ out of it.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        self._real_exit(code)

    def _developed(self) -> Recording:
        try:
            return develop(self._recorder.end(), self._plan, self._recorder.folder, self._target)
        except Exception as error:  # the program's exit code must outlive a recording that cannot be read
            why = f"the recording cannot be read: {type(error).__name__}: {error}".splitlines()[0]
            return Recording(timeline=None, error=RidgepoleError(why))

    def _exit_now(self, status: int) -> NoReturn:
        """What the program calls as `os._exit`."""
        if os.getpid() == self._pid:
            self._last_chance(status)
        self._real_exit(status)

    def _last_chance(self, code: int) -> None:
        """The process ends here. What the program left in Python's buffers is lost, as it would have been."""
        if self._closing:
            return
        sys.stdout, sys.stderr = _fresh(1), _fresh(2)
        self._stderr = sys.stderr
        try:
            self.over(code)
        except BaseException as error:  # the program's exit code stands, whatever happens to the report
            print(f"ridgepole: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):
                    stream.flush()
            self._recorder.discard()

    def _catch_sigterm(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        if main and hasattr(signal, "SIGTERM") and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminated)
            self._sigterm = True

    def _release_sigterm(self) -> None:
        if self._sigterm and signal.getsignal(signal.SIGTERM) == self._terminated:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._sigterm = False

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        self._last_chance(128 + number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _in_child(self) -> None:
        """A fork's child: the parent records, the child is what it would have been."""
        if not self._watching:
            return
        step.forget()
        self._release_sigterm()
        self._recorder.abandon()


def _fresh(descriptor: int) -> Any:
    """A text stream on a descriptor with nothing of the program's in its buffer."""
    try:
        return io.TextIOWrapper(io.FileIO(os.dup(descriptor), "w"), encoding="utf-8", errors="replace")
    except OSError:
        return io.StringIO()


class _Arrival(importlib.abc.MetaPathFinder):
    """Calls `act` once the program has imported the module `name`."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name = name
        self._act = act

    def install(self) -> None:
        if self._name in sys.modules:
            self._act()
        else:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        self.remove()
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # the instance's; the class's stays
            execute(module)
            self._act()

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

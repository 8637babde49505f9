"""A kernel that never ends must not hang its user: past a limit the process ends, with one line and what it had saved.

Nothing can stop a kernel that runs, so the process is what ends. Waiting costs two assignments, no thread a wait: one
watcher looks every half second, from the first wait on.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ridgepole.errors import BadInput, Missing

VARIABLE = "RIDGEPOLE_KERNEL_TIMEOUT"
SECONDS = 120.0
"""Far beyond any kernel of the library at the sizes of the laboratory."""
POLL = 0.5
SAVING = 10.0
"""Seconds the callbacks together have to save what there is."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What is waited for, until when by the monotonic clock, and the limit in seconds that this came from."""

    what: str
    until: float
    seconds: float


_waits: dict[int, Wait] = {}
"""By thread."""
_callbacks: list[Callable[[], object]] = []
_watcher: list[threading.Thread] = []


def limit() -> float:
    """Seconds a wait may take: RIDGEPOLE_KERNEL_TIMEOUT, or 120. Raises BadInput where that is not a number above 0."""
    said = os.environ.get(VARIABLE)
    if said is None:
        return SECONDS
    try:
        seconds = float(said)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise BadInput(f"{VARIABLE} is {said!r}: give a number of seconds above 0")
    return seconds


@contextlib.contextmanager
def waiting(what: str, seconds: float | None = None) -> Iterator[None]:
    """Around a wait for `what`: if it takes more than `seconds`, or `limit()`, the process ends with exit code 3.

    The wait must let other threads run, as pyopencl's and torch's do.
    """
    seconds = limit() if seconds is None else seconds
    if not _watcher:
        _watcher.append(threading.Thread(target=_watch, name="ridgepole watchdog", daemon=True))
        _watcher[0].start()
    thread = threading.get_ident()
    before = _waits.get(thread)
    _waits[thread] = Wait(what, time.monotonic() + seconds, seconds)
    try:
        yield
    finally:
        if before is None:
            _waits.pop(thread, None)
        else:
            _waits[thread] = before


@contextlib.contextmanager
def saving(callback: Callable[[], object]) -> Iterator[None]:
    """Within this, `callback` is called from another thread before the process ends, to save partial results."""
    _callbacks.append(callback)
    try:
        yield
    finally:
        _callbacks.remove(callback)


def _watch() -> None:
    while True:
        time.sleep(POLL)
        now = time.monotonic()
        for wait in tuple(_waits.values()):
            if now > wait.until:
                _end(wait)


def _end(wait: Wait) -> None:
    saver = threading.Thread(target=_save, daemon=True)
    saver.start()
    saver.join(SAVING)
    # os._exit: the waiting thread is in the driver and cannot be asked to unwind.
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(Exception):
        print(
            f"ridgepole: {wait.what} did not finish within {wait.seconds:g} s, so the process ends: "
            f"give it less to do, or set {VARIABLE} to more seconds",
            file=sys.stderr,
            flush=True,
        )
    os._exit(Missing.exit_code)


def _save() -> None:
    for callback in tuple(_callbacks):
        # One that fails must not keep the others from saving.
        with contextlib.suppress(Exception):
            callback()

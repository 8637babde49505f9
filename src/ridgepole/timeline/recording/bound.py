"""Keeps a recording from filling the memory: it ends after a time, or when little memory is left."""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
import time
from collections.abc import Callable
from functools import partial

MAX_SECONDS = 20.0
"""A recording lasts this long at most: some 200,000 small ops a second, of 2.7 kB each, fill 500 MB in each."""

MAX_GROWTH = 4 * 2**30
"""Bytes by which the process may grow meanwhile."""

LEAST_FREE = 0.1
"""Share of the machine's memory that must stay free."""

_LOOK = 0.2


class Bound:
    """Calls `cut(why)` on the main thread once a recording has lasted too long, from `start` until `stop`."""

    def __init__(self, cut: Callable[[str], None], seconds: float = MAX_SECONDS) -> None:
        self._cut = cut
        self._seconds = seconds
        self._turn = 0

    def start(self) -> None:
        self._turn += 1
        if threading.current_thread() is not threading.main_thread():
            return  # only the thread that started a recording can stop it, and only the main one can be reached
        # Not threading.Thread: a program that lists its threads shall not find this one.
        _thread.start_new_thread(self._look, (self._turn, os.getpid()))

    def stop(self) -> None:
        self._turn += 1

    def _look(self, turn: int, pid: int) -> None:
        began, size = time.monotonic(), resident()
        while True:
            time.sleep(_LOOK)
            if self._turn != turn or os.getpid() != pid:
                return
            why = self._why(time.monotonic() - began, resident() - size)
            if why:
                on_main_thread(partial(self._cut_if_still, turn, why))
                return

    def _cut_if_still(self, turn: int, why: str) -> None:
        if self._turn == turn:
            self._cut(why)

    def _why(self, seconds: float, growth: int) -> str:
        if seconds >= self._seconds:
            return f"after {self._seconds:g} s"
        if growth >= MAX_GROWTH:
            return f"when the process had grown by {MAX_GROWTH >> 30} GiB"
        if free_share() < LEAST_FREE:
            return f"because less than {LEAST_FREE:.0%} of the memory was free"
        return ""


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


def free_share() -> float:
    """Share of the machine's memory that is available; 1 where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            sizes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        return sizes["MemAvailable"] / sizes["MemTotal"]
    except (OSError, KeyError, ValueError, IndexError):
        return 1.0


_pending: list[Callable[[], object]] = []


def _run_pending(_: int | None) -> int:
    while _pending:
        _pending.pop(0)()
    return 0


_RUN_PENDING = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_run_pending)


def on_main_thread(act: Callable[[], object]) -> None:
    """Does `act` on the main thread, between two of its bytecodes (now, if this is it). Signals are not involved."""
    if threading.current_thread() is threading.main_thread():
        act()
        return
    _pending.append(act)
    if ctypes.pythonapi.Py_AddPendingCall(_RUN_PENDING, None) != 0:
        _pending.remove(act)  # the queue is full: nothing is recorded rather than something broken

"""The step marker that a user's program carries: `with ridgepole.step(): ...`.

It costs well under a microsecond while nobody records. While somebody does, the outermost marker on the thread that
records counts; markers inside it, or on other threads, count for nothing.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Protocol


class Listener(Protocol):
    """Who is told of steps."""

    def enter(self) -> None: ...

    def leave(self) -> None: ...


class Marker(Protocol):
    """What `step()` returns."""

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class _Silent:
    """The marker that tells nobody."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


_SILENT = _Silent()


class _Telling:
    """Tells the listener of one step. The inner ones of a nest stay silent."""

    __slots__ = ("heard",)

    def __init__(self) -> None:
        self.heard: _Subscription | None = None

    def __enter__(self) -> None:
        top = _current
        if top is None or not top.claim():
            return
        self.heard = top
        top.listener.enter()

    def __exit__(self, *error: object) -> None:
        heard, self.heard = self.heard, None
        if heard is not None:
            heard.inside = False
            heard.listener.leave()


class _Subscription:
    """One listener, the thread it follows, and whether a step is open."""

    __slots__ = ("inside", "listener", "thread")

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.thread = threading.get_ident()
        self.inside = False

    def claim(self) -> bool:
        """Whether the calling thread's step counts; it is open from now on if it does."""
        if self.inside or self.thread != threading.get_ident():
            return False
        self.inside = True
        return True


_current: _Subscription | None = None
_outer: list[_Subscription] = []


def step() -> Marker:
    """Marks one step of the program's loop, from here to the next one's start.

    with ridgepole.step():
        loss = train(batch)
    """
    return _SILENT if _current is None else _Telling()


def subscribe(listener: Listener) -> None:
    """Tells `listener` of this thread's steps from now on; one that was told before waits until it is gone."""
    global _current
    if _current is not None:
        _outer.append(_current)
    _current = _Subscription(listener)


def unsubscribe(listener: Listener) -> None:
    """Tells `listener` no more. Nothing happens where it was told of nothing."""
    global _current
    if _current is not None and _current.listener is listener:
        _current = _outer.pop() if _outer else None
        return
    _outer[:] = [one for one in _outer if one.listener is not listener]


def forget() -> None:
    """Tells nobody any more: for a forked child, whose parent records."""
    global _current
    _current = None
    _outer.clear()

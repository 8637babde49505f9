"""The elements of a list of events, however they are laid out, and whatever is wrong with some of them.

Text is decoded about a megabyte at a time: cut at the last `}, {` and read as a list. If that succeeds, the cut was
between two events, because a list of whole values can be read in one way only. If it fails, the cut was inside
an event, or the list ends here, or an event is not JSON: then a shorter piece is tried, and at last one event.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

import msgspec

from ridgepole.timeline import events
from ridgepole.timeline.events import Event
from ridgepole.timeline.repair import Losses, clean, decode
from ridgepole.timeline.source import PIECE
from ridgepole.timeline.text import LONGEST, Text

_USUAL_EVENT = 1 << 16
"""Bytes within which an event that is whole ends."""

_BETWEEN = re.compile(rb"\}(?=\s*,\s*\{)")
_BETWEEN_EVENTS = re.compile(rb'\}(?=\s*,\s*\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args|s|bp)"\s*:)')
_END_OF_LIST = re.compile(rb'\}(?=\s*\]\s*(?:,\s*"|\}|$))')
_NEXT_OBJECT = re.compile(rb",\s*(?=\{)|\]")
_OBJECT_FOLLOWS = re.compile(rb"\s*\{")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|["{}\[\]]', re.DOTALL)
_AT_BYTE = re.compile(r"\(byte (\d+)\)")

_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


def batches(text: Text, losses: Losses) -> Generator[list[Event], None, bool]:
    """Yields the events of the list whose `[` was just dropped. Returns whether its `]` was found, and drops that."""
    doubtful = False
    while True:
        first = text.next()
        if first == b"]":
            text.drop(1)
            return True
        if not first:
            return False
        text.fill(_USUAL_EVENT if doubtful else PIECE)
        window = text.buffer[:_USUAL_EVENT] if doubtful else text.buffer
        batch, used, ended = _piece(window)
        doubtful = not batch
        if not batch:
            event = _single(text, losses)
            batch = [] if event is None else [event]
        text.drop(used)
        if batch:
            text.productive = True
            yield batch
        if ended:
            return True


def _piece(window: bytes) -> tuple[list[Event], int, bool]:
    """As many events as can be read at the start of `window`, the bytes they took, and whether the list ended."""
    end = _last_between(window, len(window))
    text = b"[" + window[:end] + b"]" if end else b"[" + window
    try:
        return events.many.decode(text), end or len(window), not end
    except _ERRORS as error:
        message = str(error)
    place = _AT_BYTE.search(message)
    limit = len(window) // 2
    if place is not None:
        limit = max(int(place[1]) - 2, 0)
        if "trailing" in message:
            close = text.rfind(b"]", 0, limit + 1)
            try:
                return events.many.decode(text[: close + 1]), close, True
            except _ERRORS:
                pass
    return _shorter(window, limit)


def _shorter(window: bytes, limit: int) -> tuple[list[Event], int, bool]:
    for end in _cuts(window, limit):
        try:
            return events.many.decode(b"[" + window[:end] + b"]"), end, False
        except _ERRORS:
            continue
    return [], 0, False


def _cuts(window: bytes, limit: int) -> Iterator[int]:
    """Places to try a cut at: before what is wrong, at what looks like a new event, then ever earlier."""
    near = _last_between(window, limit)
    if near:
        yield near
    likely = [match.end() for match in _BETWEEN_EVENTS.finditer(window, max(len(window) - _USUAL_EVENT, 0))]
    if likely:
        yield likely[-1]
    while limit > 2048:
        limit //= 2
        near = _last_between(window, limit)
        if near:
            yield near


def _last_between(window: bytes, limit: int) -> int:
    """Where the last `}` before `limit` ends that a comma and a `{` follow; 0 if there is none."""
    end = limit
    for _ in range(64):
        end = window.rfind(b"},", 0, end) + 1
        if not end:
            break
        if _OBJECT_FOLLOWS.match(window, end + 1):
            return end
    found = 0
    for match in _BETWEEN.finditer(window, max(limit - _USUAL_EVENT, 0), limit):
        found = match.end()
    return found


def _single(text: Text, losses: Losses) -> Event | None:
    """Takes the next element off the text, mended if it must be; None if it is lost or the text ends within it."""
    if text.buffer[:1] != b"{":
        _no_object(text, losses)
        return None
    while True:
        whole = _balanced(text.buffer)
        if whole:
            event = _plain(text.buffer[:whole]) or _plain(clean(text.buffer[:whole]))
            if event is not None:
                losses.mended += not _plain(text.buffer[:whole])
                text.drop(whole)
                return event
        elif len(text.buffer) < _USUAL_EVENT and text.more():
            continue
        follows = _BETWEEN_EVENTS.search(text.buffer)
        if follows is not None:
            return _taken(text, follows.end(), losses)
        if len(text.buffer) < LONGEST and text.fill(2 * len(text.buffer)):
            continue
        last = _END_OF_LIST.search(text.buffer)
        if last is not None:
            return _taken(text, last.end(), losses)
        if whole:
            return _taken(text, whole, losses)
        losses.cut = True
        text.drop(len(text.buffer))
        return None


def _taken(text: Text, end: int, losses: Losses) -> Event | None:
    event = decode(text.buffer[:end], losses)
    text.drop(end)
    return event


def _no_object(text: Text, losses: Losses) -> None:
    """Passes over an element that is no object."""
    losses.lost += 1
    while True:
        match = _NEXT_OBJECT.search(text.buffer)
        if match is not None:
            text.drop(match.start())
            return
        text.drop(max(len(text.buffer) - 64, 0))
        if not text.more():
            text.drop(len(text.buffer))
            return


def _plain(text: bytes) -> Event | None:
    try:
        return events.one.decode(text)
    except _ERRORS:
        return None


def _balanced(window: bytes) -> int:
    """Where the object at the start of `window` ends, by its brackets and strings; 0 if it does not."""
    depth = 0
    for token in _TOKEN.finditer(window, 0, LONGEST):
        symbol = token[0]
        if symbol in (b"{", b"["):
            depth += 1
        elif symbol in (b"}", b"]"):
            depth -= 1
            if not depth:
                return token.end()
        elif symbol == b'"':
            return 0
    return 0

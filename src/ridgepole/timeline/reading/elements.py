"""The elements of a list of events, however they are laid out, and whatever is wrong with some of them.

Text is decoded about a megabyte at a time: cut at the last `}, {` and read as a list. If that succeeds, the cut was
between two events, because a list of whole values can be read in one way only. If it fails, the cut was inside
an event, or the list ends here, or an event is not JSON: then a shorter piece is tried, and at last one event.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

import msgspec

from ridgepole.timeline.reading import events
from ridgepole.timeline.reading.events import Event
from ridgepole.timeline.reading.repair import Losses, clean, decode
from ridgepole.timeline.reading.source import PIECE
from ridgepole.timeline.reading.text import LONGEST, Text

_USUAL_EVENT = 1 << 16
"""Bytes within which an event that is whole ends."""

_HOPELESS = 10_000
"""Elements lost, with none read, after which the list is given up."""

_BETWEEN = re.compile(rb"\}(?=\s*,\s*\{)")
_BETWEEN_EVENTS = re.compile(
    rb'\}(?=\s*,\s*\{\s*"(?:(?:ph|cat|pid|tid|ts|dur|args)"\s*:|name"[^}]{0,2000}?"\s*,\s*"(?:ph|cat|pid|tid|ts)"\s*:))'
)
"""Between what can only be two events: an object among their arguments may have a name, but no ph or ts."""
_END_OF_LIST = re.compile(rb'\}(?=\s*\]\s*(?:,\s*"|\}|$))')
_SCALAR = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[^\s,\[\]{}"]+', re.DOTALL)
_OBJECT_FOLLOWS = re.compile(rb"\s*\{")
# One repetition an escape, not one a character: the engine keeps a frame for each.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
_ELEMENT_ENDS = re.compile(rb"\s*[,\]]")
_LIST_OF_EVENTS = re.compile(rb'\[\s*\{\s*"(?:ph|cat|pid|tid|ts|dur|name|args)"\s*:')
_CLOSES = {b"{": b"}", b"[": b"]"}
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
        if not first or (losses.lost > _HOPELESS and not text.productive):
            return False
        if not doubtful:
            text.fill(PIECE)
        elif len(text.buffer) < _USUAL_EVENT // 4:
            text.fill(_USUAL_EVENT)
        if doubtful:
            text.narrow(_USUAL_EVENT)
        batch, used, ended = _piece(text.buffer)
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


def resumes(text: Text, losses: Losses) -> bool:
    """Whether the `]` just found was a broken event's and the list goes on; if so, what is left of that is dropped."""
    if text.next() != b"{":
        if text.productive and not (losses.lost or losses.without_args):
            return False
        text.fill(_USUAL_EVENT)
        follows = _BETWEEN_EVENTS.search(text.buffer, 0, _USUAL_EVENT)
        if follows is None:
            return False
        text.drop(follows.end())
    losses.lost += 1
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
    if place is not None:
        wrong = max(int(place[1]) - 2, 0)
    elif "UTF-8" in message:
        wrong = _not_utf8(window)
    else:
        return _shorter(window, len(window) // 2)
    if "trailing" in message:
        close = text.rfind(b"]", 0, wrong + 1)
        try:
            return events.many.decode(text[: close + 1]), close, True
        except _ERRORS:
            pass
    return _shorter(window, wrong) if _last_between(window, wrong) else ([], 0, False)


def _not_utf8(window: bytes) -> int:
    try:
        window.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(window)


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
        if whole and (follows is None or whole <= follows.end()):
            return _taken(text, whole, losses)
        if follows is not None:
            return _taken(text, follows.end(), losses)
        if len(text.buffer) < LONGEST and text.double():
            continue
        last = _END_OF_LIST.search(text.buffer)
        if last is not None:
            mended = losses.mended
            event = _taken(text, last.end(), losses)
            losses.cut = losses.cut or losses.mended == mended
            return event
        losses.cut = True
        text.drop(len(text.buffer))
        return None


def _taken(text: Text, end: int, losses: Losses) -> Event | None:
    event = decode(text.buffer[:end], losses)
    text.drop(end)
    return event


def _no_object(text: Text, losses: Losses) -> None:
    """Passes over an element that is no object; over all up to the next event, where it is no element either."""
    losses.lost += 1
    if _LIST_OF_EVENTS.match(text.buffer):
        text.drop(1)
        return
    while True:
        end = _balanced(text.buffer) if text.buffer[:1] == b"[" else 0
        if not end:
            scalar = _SCALAR.match(text.buffer)
            end = scalar.end() if scalar is not None else 0
        if end and _ELEMENT_ENDS.match(text.buffer, end):
            text.drop(end)
            return
        follows = _BETWEEN_EVENTS.search(text.buffer)
        if follows is not None:
            text.drop(follows.end())
            return
        if len(text.buffer) >= LONGEST or not text.double(_USUAL_EVENT):
            break
    last = _END_OF_LIST.search(text.buffer)
    text.drop(last.end() if last is not None else len(text.buffer))


def _plain(text: bytes) -> Event | None:
    try:
        return events.one.decode(text)
    except _ERRORS:
        return None


def _balanced(window: bytes) -> int:
    """Where the object or list at the start of `window` ends, by its brackets and strings; 0 if it does not."""
    depth = 0
    for token in _TOKEN.finditer(window, 0, LONGEST):
        symbol = token[0]
        if symbol in (b"{", b"["):
            depth += 1
        elif symbol in (b"}", b"]"):
            depth -= 1
            if not depth:
                return token.end() if _CLOSES[window[:1]] == symbol else 0
        elif symbol == b'"':
            return 0
    return 0

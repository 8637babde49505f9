"""Mending the text of one event that is not quite JSON, where that can be done without guessing."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from ridgepole.timeline.reading import events
from ridgepole.timeline.reading.events import Event


@dataclass(slots=True)
class Losses:
    """What a file did not give up whole: counts of events, whether it was cut within them, or broken around them."""

    mended: int = 0
    without_args: int = 0
    lost: int = 0
    cut: bool = False
    around: bool = False


_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPE = re.compile(
    rb'\\(?:["\\/bfnrt]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})'
    rb"|u[0-9a-fA-F]{4}|(?P<bad>.|$))",
    re.DOTALL,
)
_NOT_A_NUMBER = re.compile(rb"(:\s*|,\s*|\[\s*)[+-]?(?:nan|inf(?:inity)?)(?=\s*[,}\]])", re.IGNORECASE)
_NAME = re.compile(
    rb'("name"\s*:\s*")(.*?)("\s*,\s*"(?:ph|cat|pid|tid|ts|dur|id|args|s|bp)"\s*:|"\s*\}\s*$)', re.DOTALL
)
_ARGS = re.compile(rb',\s*"args"\s*:.*', re.DOTALL)

_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


def decode(text: bytes, losses: Losses) -> Event | None:
    """The event that `text` writes, mended if need be and counted in `losses`; None, and counted, if it is lost.

    Tried in turn: as it is; with invalid UTF-8, control characters, stray backslashes and NaN replaced; with the
    quotes inside its name escaped; without its args.
    """
    found = _try(text)
    if found is not None:
        return found
    text = clean(text)
    for attempt in (text, _requote(text)):
        found = _try(attempt)
        if found is not None:
            losses.mended += 1
            return found
    for attempt in (text, _requote(text)):
        found = _try_bare(attempt) or _try_bare(_ARGS.sub(b"}", attempt, count=1))
        if found is not None:
            losses.without_args += 1
            return found
    losses.lost += 1
    return None


def _try(text: bytes) -> Event | None:
    try:
        return events.one.decode(text)
    except _ERRORS:
        return None


def _try_bare(text: bytes) -> Event | None:
    try:
        return events.bare.decode(text).event()
    except _ERRORS:
        return None


def clean(text: bytes) -> bytes:
    """Replaces what JSON allows nowhere. Backslashes that begin no escape are doubled, as a path would have them."""
    text = text.decode("utf-8", "replace").encode()
    text = _CONTROL.sub(b" ", text)
    text = _ESCAPE.sub(_unescape, text)
    return _NOT_A_NUMBER.sub(rb"\1null", text)


def _unescape(match: re.Match[bytes]) -> bytes:
    if match["half"] is not None:
        return b"?"
    return match[0] if match["bad"] is None else b"\\\\" + match["bad"]


def _requote(text: bytes) -> bytes:
    """Escapes quotes, and a last backslash, inside the event's name, which ends where its next key begins."""

    def escape(match: re.Match[bytes]) -> bytes:
        name = re.sub(rb'\\*"', lambda m: b"'", match[2])
        trailing = len(name) - len(name.rstrip(b"\\"))
        return match[1] + name + (b"\\" if trailing % 2 else b"") + match[3]

    return _NAME.sub(escape, text, count=1)

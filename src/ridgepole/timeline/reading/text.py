"""A file's text as a window that slides over it: look at what is at hand, drop it, read on."""

from __future__ import annotations

import re

from ridgepole.timeline.reading.source import Source

NO_EVENT_LIMIT = 256 << 20
"""Bytes of text after which a file without a single event is refused."""
LONGEST = 16 << 20
"""Bytes of text that one event, or one metadata value that is kept, may have."""

_BLANK = re.compile(rb"[\s,]*")
_KEY = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"\s*:', re.DOTALL)
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_SYNTAX = re.compile(rb'["{}\[\]]')
_STRING_END = re.compile(rb'["\\]')
_SCALAR_END = re.compile(rb"[,}\]]")


class Text:
    """The text of one file being read. `buffer` is what is at hand; `productive` is set once it gave an event."""

    def __init__(self, source: Source) -> None:
        self.buffer = b""
        self.productive = False
        self._source = source
        self._pieces = source.pieces()
        self._held: list[bytes] = []
        self._read = 0

    def fill(self, size: int) -> bool:
        """Reads on until `size` bytes are at hand. False if the file ends first."""
        if len(self.buffer) >= size:
            return True
        parts = [self.buffer]
        have = len(self.buffer)
        while have < size:
            piece = self._held.pop() if self._held else next(self._pieces, None)
            if piece is None:
                break
            parts.append(piece)
            have += len(piece)
            self._read += len(piece)
            if not self.productive and self._read > NO_EVENT_LIMIT:
                raise self._source.refuse(f"has no event in its first {NO_EVENT_LIMIT >> 20} MiB: it is no trace")
        self.buffer = b"".join(parts)
        return have >= size

    def more(self) -> bool:
        """Reads on by some bytes. False at the end of the file."""
        return self.fill(len(self.buffer) + 1)

    def double(self, least: int = 1) -> bool:
        """Reads on until twice as much, and `least` bytes, are at hand, or all is. False at the end of the file."""
        before = len(self.buffer)
        self.fill(max(2 * before, least))
        return len(self.buffer) > before

    def drop(self, size: int) -> None:
        """Done with the first `size` bytes."""
        self.buffer = self.buffer[size:]

    def narrow(self, size: int) -> None:
        """Keeps only `size` bytes at hand, so that dropping few of them is cheap; the rest comes again."""
        if len(self.buffer) > size:
            rest = self.buffer[size:]
            self.buffer = self.buffer[:size]
            self._read -= len(rest)
            self._held.append(rest)

    def skip_mark(self) -> None:
        """Drops a byte-order mark."""
        if self.fill(3) and self.buffer.startswith(b"\xef\xbb\xbf"):
            self.drop(3)

    def next(self) -> bytes:
        """The next byte that is no blank and no comma, left in place; b"" at the end of the file."""
        while True:
            match = _BLANK.match(self.buffer)
            if match is not None and match.end():
                self.drop(match.end())
            if self.buffer:
                return self.buffer[:1]
            if not self.more():
                return b""

    def key(self) -> str | None:
        """Takes the next key and its colon; where none stands, goes on to `traceEvents`. None if there is none."""
        while True:
            match = _KEY.match(self.buffer)
            if match is not None:
                self.drop(match.end())
                return match[1].decode("utf-8", "replace")
            if self.buffer[:1] != b'"' or len(self.buffer) > LONGEST or not self.more():
                return self.events_key()

    def events_key(self) -> str | None:
        """Goes on to the next `traceEvents` whose value is a list, wherever it stands; None where none is."""
        if self.productive:
            return None
        while True:
            match = _EVENTS_KEY.search(self.buffer)
            if match is not None:
                self.drop(match.end() - 1)
                return "traceEvents"
            self.drop(max(len(self.buffer) - 64, 0))
            if not self.more():
                return None

    def value(self, *, keep: bool) -> bytes | None:
        """Takes the next value: its bytes if `keep` and not too long, else b"". None if the file ends within it."""
        kept: list[bytes] = []
        first = self.next()
        if not first:
            return None
        if first not in b'"{[':
            found = self._search(_SCALAR_END, 0, kept)
            return None if found is None else self._take(found[1], kept, keep)
        depth, at, within = 0, 0, False
        while True:
            found = self._search(_STRING_END if within else _SYNTAX, at, kept)
            if found is None:
                return None
            symbol, at = found
            at += 1
            if symbol == b"\\":
                at += 1
            elif symbol == b'"':
                within = not within
            elif symbol in b"{[":
                depth += 1
            else:
                depth -= 1
            if depth <= 0 and not within:
                return self._take(at, kept, keep)

    def _search(self, pattern: re.Pattern[bytes], at: int, kept: list[bytes]) -> tuple[bytes, int] | None:
        """The next match at or after `at`, and where it is. Text passed on the way goes to `kept`."""
        while True:
            match = pattern.search(self.buffer, at)
            if match is not None:
                return match[0], match.start()
            at = max(at - len(self.buffer), 0)
            if sum(map(len, kept)) < LONGEST:
                kept.append(self.buffer)
            self.buffer = b""
            if not self.fill(at + 1):
                return None

    def _take(self, end: int, kept: list[bytes], keep: bool) -> bytes:
        size = sum(map(len, kept)) + end
        value = b"".join([*kept, self.buffer[:end]]).strip() if keep and size < LONGEST else b""
        self.drop(end)
        return value

"""The text of a trace file: plain or gzip by its first bytes, piece by piece, never more than it should be."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ridgepole.errors import BadInput

PIECE = 1 << 20
"""Bytes of text handed on at a time: small enough to stay in cache while it is decoded."""

BOMB_TEXT = 256 << 20
BOMB_RATIO = 200
"""A gzip file that has unpacked to more than BOMB_TEXT at more than BOMB_RATIO to one is refused: traces pack
15 to 40 to one, deflate's limit is 1,032."""

_GZIP = b"\x1f\x8b"
_KNOWN = (
    (b"PK\x03\x04", "a zip archive (or a torch.save file): unpack the trace from it first"),
    (b"\x80\x02", "a Python pickle, not a trace: export one with torch.profiler's export_chrome_trace"),
    (b"\x80\x03", "a Python pickle, not a trace: export one with torch.profiler's export_chrome_trace"),
    (b"\x80\x04", "a Python pickle, not a trace: export one with torch.profiler's export_chrome_trace"),
    (b"\x80\x05", "a Python pickle, not a trace: export one with torch.profiler's export_chrome_trace"),
    (b"BZh", "bzip2-compressed: bunzip2 it first"),
    (b"\xfd7zXZ\x00", "xz-compressed: unxz it first"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed: unzstd it first"),
    (b"\x00\x05\x16\x07", "a macOS resource file (AppleDouble): the trace is the file of that name without '._'"),
    (b"SQLite format 3", "a SQLite database (an Nsight Systems export?): ridgepole reads torch.profiler traces"),
    (b"\xff\xfe", "UTF-16 text: save the trace as UTF-8"),
    (b"\xfe\xff", "UTF-16 text: save the trace as UTF-8"),
    (b"\x7fELF", "a program, not a trace"),
)


class Source:
    """One file being read. After `pieces` is exhausted, `damage` says how its end was missing ("": it was not)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.damage = ""

    def refuse(self, why: str) -> BadInput:
        """The error to raise, one line whatever the file's name and keys hold."""
        line = f"{self.path}: {why}"
        return BadInput("".join(c if c.isprintable() else "?" for c in line))

    def pieces(self) -> Iterator[bytes]:
        """The file's text, decompressed, in pieces of about PIECE bytes. Raises BadInput for what holds none."""
        file = self._open()
        with file:
            head = file.read(PIECE)
            if not head:
                raise self.refuse("the file is empty")
            if head.startswith(_GZIP):
                yield from self._unzip(file, head)
                return
            self._sniff(head)
            while head:
                yield head
                head = file.read(PIECE)

    def _open(self) -> BinaryIO:
        try:
            if self.path.is_dir():
                raise self.refuse("is a directory: name a trace file in it")
            return self.path.open("rb")
        except FileNotFoundError:
            raise self.refuse("no such file") from None
        except (OSError, ValueError) as error:
            raise self.refuse(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None

    def _sniff(self, head: bytes) -> None:
        for magic, what in _KNOWN:
            if head.startswith(magic):
                raise self.refuse(f"is {what}")

    def _unzip(self, file: BinaryIO, packed: bytes) -> Iterator[bytes]:
        """Every member of a gzip file, one after another. Zeros and other bytes behind the last are left."""
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        taken, given = len(packed), 0
        within = False
        while packed:
            try:
                text = unpacker.decompress(packed, PIECE)
            except zlib.error:
                if not given:
                    raise self.refuse("is not a gzip file, though it begins like one: copy it again") from None
                self.damage = "its gzip data is corrupt"
                return
            within = not unpacker.eof
            if text:
                if not given:
                    self._sniff(text)
                given += len(text)
                if given > BOMB_TEXT and given > BOMB_RATIO * taken:
                    raise self.refuse(f"unpacks more than {BOMB_RATIO} to one, which no trace does: refused")
                yield text
            packed = unpacker.unconsumed_tail
            if unpacker.eof:
                packed = unpacker.unused_data
                if packed and not _GZIP.startswith(packed[:2]):
                    break
                unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            if not packed:
                packed = file.read(PIECE // 8)
                taken += len(packed)
                if packed and not within and not _GZIP.startswith(packed[:2]):
                    break
        if within:
            self.damage = "its gzip data ends early"
        if not given:
            raise self.refuse("the file is empty")

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest

from ridgepole.errors import BadInput
from ridgepole.timeline import reader
from ridgepole.timeline.reading import source
from ridgepole.timeline.reading.source import Source

from .written import kernel, put, text

WHOLE = text(kernel(1, 100, 50))


def refusal(path: Path) -> str:
    with pytest.raises(BadInput) as error:
        reader.read(path)
    line = str(error.value)
    assert "\n" not in line
    assert str(path) in line
    return line.removeprefix(str(path))


def test_gzip_is_known_by_its_first_bytes_and_not_by_its_name(tmp_path: Path) -> None:
    disguised = tmp_path / "trace.json"
    disguised.write_bytes(gzip.compress(WHOLE))
    plain = tmp_path / "trace.json.gz"
    plain.write_bytes(WHOLE)
    assert reader.read(disguised).devices == reader.read(plain).devices


def test_every_member_of_a_gzip_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "joined.gz"
    path.write_bytes(gzip.compress(WHOLE[:40]) + gzip.compress(WHOLE[40:]) + b"\0\0\0\0")
    assert b"".join(Source(path).pieces()) == WHOLE


def test_a_gzip_file_cut_anywhere_gives_what_is_whole(tmp_path: Path) -> None:
    packed = gzip.compress(WHOLE)
    for size in range(2, len(packed)):
        path = tmp_path / "cut.gz"
        path.write_bytes(packed[:size])
        cut = Source(path)
        try:
            got = b"".join(cut.pieces())
        except BadInput:
            continue
        assert WHOLE.startswith(got)
        assert cut.damage


def test_the_end_of_a_corrupt_gzip_file_is_given_up(tmp_path: Path) -> None:
    body = text(*(kernel(i, 100 * i, 50, name=f"kernel {i * 7919 % 1000}") for i in range(20_000)))
    packed = bytearray(gzip.compress(body))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    path = tmp_path / "corrupt.gz"
    path.write_bytes(bytes(packed))
    timeline = reader.read(path)
    assert 100 < timeline.devices[0].events < 20_000
    assert any("gzip data is corrupt" in note for note in timeline.notes)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b""), "the file is empty"),
        (b" \n\t ", "holds only blanks"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"\x80\x04\x95", "pickle"),
        (b"SQLite format 3\0", "SQLite"),
        (b"\x28\xb5\x2f\xfd\0", "zstd"),
        (b"\x00\x05\x16\x07\0\x02", "AppleDouble"),
        (gzip.compress(b"\x80\x04\x95"), "pickle"),
        (b"\x1f\x8bnot really", "not a gzip file"),
        (b"hello", "is not JSON"),
        (b"<html>", "is not JSON"),
        (b"\xff\xfe{\0", "UTF-16"),
        (b"42", "is not JSON"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "it"
    path.write_bytes(content)
    assert words in refusal(path)


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    assert "is a directory" in refusal(tmp_path)
    assert "no such file" in refusal(tmp_path / "absent.json")


def test_a_gzip_bomb_is_refused_before_it_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BOMB_TEXT", 4 << 20)
    event = json.dumps(kernel(1, 100, 50)).encode()
    squeezed = zlib.compressobj(9, wbits=31)
    path = tmp_path / "bomb.gz"
    body = b'{"traceEvents": [' + b",".join([event] * 200_000)
    path.write_bytes(squeezed.compress(body) + squeezed.flush())
    assert "no trace does" in refusal(path)


def test_a_file_of_blanks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ridgepole.timeline.reading import text as window

    monkeypatch.setattr(window, "NO_EVENT_LIMIT", 4 << 20)
    path = tmp_path / "blanks.json"
    path.write_bytes(b'{"a": [' + b" " * (12 << 20) + b"]}")
    assert "no event in its first" in refusal(path)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert reader.read(put(tmp_path, b"\xef\xbb\xbf" + WHOLE)).devices[0].events == 1

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepole.errors import BadInput
from ridgepole.timeline.reading import elements
from ridgepole.timeline.reading.document import Document
from ridgepole.timeline.reading.source import Source

from .written import Json, kernel, launch, op, text

names = st.text(max_size=12)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | st.floats(allow_nan=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
events = st.fixed_dictionaries(
    {"ph": st.just("X"), "name": names, "pid": st.integers(0, 9)},
    optional={"args": st.dictionaries(names, anything, max_size=4), "more": anything, "ts": st.integers()},
)
layouts = st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}])


class Pieces(Source):
    """A file whose text comes in given pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__("made")
        self._given = pieces

    def pieces(self) -> Iterator[bytes]:
        return iter(self._given)


def read(content: bytes, cuts: list[int] | None = None) -> tuple[list[Any], Document]:
    places = sorted({min(cut, len(content)) for cut in cuts or []})
    pieces = [content[a:b] for a, b in zip([0, *places], [*places, len(content)], strict=True) if b > a]
    document = Document(Pieces(pieces))
    return [event for batch in document.batches() for event in batch], document


def seen(found: list[Any]) -> list[tuple[Any, Any]]:
    return [(event.name, event.pid) for event in found]


def written(listed: list[Json]) -> list[tuple[Any, Any]]:
    return [(event["name"], event["pid"]) for event in listed]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(events, min_size=1, max_size=12),
    st.dictionaries(names.filter(lambda key: key != "traceEvents"), anything, max_size=3),
    st.dictionaries(names.filter(lambda key: key != "traceEvents"), anything, max_size=3),
    layouts,
    st.booleans(),
    st.lists(st.integers(0, 3000), max_size=8),
    st.integers(1, 300),
)
def test_the_events_are_the_same_however_the_text_is_laid_out_and_cut(
    listed: list[Json],
    before: Json,
    after: Json,
    layout: Json,
    bare: bool,
    cuts: list[int],
    reach: int,
) -> None:
    whole: Any = listed if bare else {**before, "traceEvents": listed, **{f"{k} ": v for k, v in after.items()}}
    content = json.dumps(whole, **layout).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elements, "PIECE", reach)
        found, document = read(content, cuts)
    assert seen(found) == written(listed)
    assert not document.losses.cut
    assert not document.losses.lost


TRACE = text(
    op("aten::mm", 0, 90, **{"Input Dims": [[2, 2], [2, 2]], "Input type": ["float", "float"]}),
    launch(1, 10),
    kernel(1, 30, 20, name='void k<"x", {1}>(int[])'),
    launch(2, 60),
    kernel(2, 80, 5, stack=[{"name": "inner"}, {"name": "other"}]),
    deviceProperties=[{"id": 0, "name": "one"}, {"id": 1, "name": "two"}],
)


def test_cut_at_any_byte_it_gives_every_event_that_is_whole() -> None:
    everything, _ = read(TRACE)
    for size in range(len(TRACE)):
        try:
            found, document = read(TRACE[:size])
        except BadInput as error:
            assert b'"ph"' not in TRACE[:size] or size < TRACE.index(b'"ph": "X", "cat": "cuda_runtime"')
            assert "\n" not in str(error)
            continue
        whole = len(found)
        assert seen(found) == seen(everything[:whole])
        assert document.losses.cut or document.losses.around
        begun = TRACE[:size].count(b'{"ph"')
        assert whole >= begun - 1


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, len(TRACE) - 1), st.sampled_from([b'"', b"\\", b"\x00", b"\xff", b"\n", b"{", b"}", b"NaN", b"]"])
)
def test_a_stray_byte_costs_no_more_than_the_event_that_it_is_in(place: int, stray: bytes) -> None:
    first = TRACE.index(b'{"ph"')
    broken = TRACE[:place] + stray + TRACE[place:]
    try:
        found, _ = read(broken)
    except BadInput:
        assert place <= first
        return
    starts = [i for i in range(len(TRACE)) if TRACE.startswith(b'{"ph"', i)]
    hit = max([i for i, start in enumerate(starts) if start <= place], default=-1)
    spared = [name for i, name in enumerate(["aten::mm", "cudaLaunchKernel", 'void k<"x", {1}>(int[])']) if i < hit]
    assert [event.name for event in found][: len(spared)] == spared
    if stray not in (b"]",):
        assert len(found) >= 3


def mended(broken: bytes, instead_of: bytes = b'"name": "gemm"') -> tuple[list[Any], Document]:
    content = text(kernel(1, 0, 5, name="before"), kernel(2, 10, 5), kernel(3, 20, 5, name="after"))
    assert instead_of in content
    found, document = read(content.replace(instead_of, broken))
    assert [event.name for event in found][::2] == ["before", "after"]
    return found, document


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (rb'"name": "C:\work\x.py"', "C:\\work\\x.py"),
        (rb'"name": "C:\dir\"', "C:\\dir\\"),
        (b'"name": "say "hi" twice"', "say 'hi' twice"),
        (b'"name": "a\x07b"', "a b"),
        (b'"name": "a\nb"', "a b"),
        (b'"name": "caf\xe9"', "caf�"),
        (rb'"name": "\ud800"', "?"),
        (rb'"name": "\u12"', "\\u12"),
    ],
)
def test_a_name_that_is_not_quite_json_is_mended_and_counted(broken: bytes, name: str) -> None:
    found, document = mended(broken)
    assert found[1].name == name
    assert found[1].args.correlation == 2
    assert document.losses.mended == 1


@pytest.mark.parametrize("word", [b"NaN", b"-Infinity", b"inf", b"nan"])
def test_a_bandwidth_that_is_not_a_number_costs_nothing_else(word: bytes) -> None:
    found, document = mended(b'"memory bandwidth (GB/s)": ' + word + b', "name": "gemm"')
    assert found[1].args.correlation == 2
    assert document.losses.mended == 1


def test_arguments_that_cannot_be_read_leave_the_event_its_time() -> None:
    found, document = mended(b'"correlation": "2"quoted"', b'"correlation": 2')
    assert bytes(found[1].ts) == b"10"
    assert found[1].args is None
    assert document.losses.without_args == 1


def test_integers_past_64_bits_pass() -> None:
    found, document = mended(
        b'"correlation": 10159970886766084423, "other": 99999999999999999999999', b'"correlation": 2'
    )
    assert found[1].args.correlation == 10159970886766084423
    assert document.losses == type(document.losses)()


def test_elements_that_are_no_objects_are_passed_over_and_counted() -> None:
    found, document = read(b'[1, "x", {"ph": "X", "name": "a"}, null, [2, 3], {"ph": "X", "name": "b"}]')
    assert [event.name for event in found] == ["a", "b"]
    assert document.losses.lost


def test_an_event_nested_past_all_sense_is_lost_alone() -> None:
    deep = b'{"a": ' * 5000 + b"1" + b"}" * 5000
    found, document = read(b'[{"name": "a"}, ' + deep + b', {"name": "b"}]')
    assert [event.name for event in found] == ["a", "b"]
    assert document.losses.lost == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{}", "has no events"),
        (b"[]", "has no events"),
        (b'{"traceEvents": []}', "has no events"),
        (b'{"traceEvents": null}', "has no events"),
        (b'{"schema": "1.0.1", "nodes": [{"id": 1}]}', "execution trace"),
        (b'{"resourceSpans": []}', "OpenTelemetry"),
        (b'{"deviceProperties": [], "b\\n": 2}', "it has deviceProperties"),
        (b'{"schemaVersion": 1', "cut off before its first event"),
        (b'{"traceEvents": [{"ph": "X", ', "cut off before its first event"),
    ],
)
def test_json_that_is_no_trace_is_refused_in_one_line(content: bytes, words: str) -> None:
    with pytest.raises(BadInput) as error:
        read(content)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_the_events_are_found_behind_metadata_that_is_not_json() -> None:
    found, document = read(b'{"note": "a "quoted word", "traceEvents": [{"name": "a"}], "x": 1}')
    assert [event.name for event in found] == ["a"]
    assert document.losses.around or document.losses == type(document.losses)()


def test_metadata_is_kept_from_before_and_behind_the_events() -> None:
    content = b'{"deviceProperties": [{"id": 0}], "traceEvents": [{"name": "a"}], "baseTimeNanoseconds": 17, "z": "}]"}'
    _, document = read(content)
    assert document.metadata == {"deviceProperties": b'[{"id": 0}]', "baseTimeNanoseconds": b"17"}


def test_a_file_on_disk_is_read_as_its_pieces_are(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(TRACE)
    on_disk = [event.name for batch in Document(Source(path)).batches() for event in batch]
    assert on_disk == [event.name for event in read(TRACE)[0]]


def test_a_long_list_of_anything_else_is_given_up_soon() -> None:
    with pytest.raises(BadInput, match="none of its events can be read"):
        read(json.dumps(list(range(1_000_000))).encode())


REAL = gzip.decompress((Path(__file__).resolve().parents[2] / "examples/traces/h200-launch-bound.json.gz").read_bytes())
FIRST = REAL.index(b'{"ph"') if b'{"ph"' in REAL else REAL.index(b'"ph"')
STRAYS = [b"", b'"', b"\\", b"\x00", b"\xff", b"{", b"}", b"[", b"]", b"},{", b'"}', b'":']


@settings(max_examples=60, deadline=None)
@given(st.integers(FIRST, len(REAL) - 1), st.integers(0, 150), st.sampled_from(STRAYS))
def test_a_wound_anywhere_among_the_events_stays_a_small_one(place: int, gone: int, stray: bytes) -> None:
    whole = len(read(REAL)[0])
    found, document = read(REAL[:place] + stray + REAL[place + gone :])
    assert abs(whole - len(found)) <= 6
    losses = document.losses
    if len(found) < whole - 2:
        assert losses.lost or losses.without_args or losses.cut

"""Coalescing: how many sectors a warp's reads fall in, and what they cost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.kernels.cuda.counters import Counters
from ridgepole.kernels.device import Device
from ridgepole.lab.bench import Bench
from ridgepole.lab.experiment import Result, Row
from ridgepole.lab.experiments import coalescing
from tests.lab.made import gpu_bench


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (3, 12), (9, 32), (33, 32), (1025, 32)])
def test_a_warp_reads_4_sectors_in_order_and_32_scattered(stride: int, sectors: int) -> None:
    assert coalescing.pieces(stride, 32) == sectors


@pytest.mark.parametrize(("stride", "lines"), [(1, 2), (3, 6), (9, 18), (33, 32), (1025, 32)])
def test_32_elements_of_a_cpu_come_from_2_lines_in_order_and_32_scattered(stride: int, lines: int) -> None:
    assert coalescing.pieces(stride, 64) == lines


@given(st.integers(1, 5000))
def test_no_warp_reads_fewer_sectors_than_its_bytes_or_more_than_its_lanes(stride: int) -> None:
    assert 4 <= coalescing.pieces(stride, 32) <= 32
    assert 2 <= coalescing.pieces(stride, 64) <= coalescing.pieces(stride, 32)


def test_a_scattered_copy_moves_four_and_a_half_times_the_bytes() -> None:
    n = 1 << 20
    assert coalescing.moved(1, 32, n) == 8 * n
    assert coalescing.moved(1025, 32, n) / coalescing.moved(1, 32, n) == 4.5


def row(stride: int, slower: float, counted: float | None = None, note: str = "") -> Row:
    n = 1 << 26
    seconds = 8.0 * n / 4.1e12 * slower
    grain = 32
    return {
        "stride": stride, "pieces": coalescing.pieces(stride, grain), "counted": counted, "useful": 8.0 * n,
        "seconds": seconds, "spread": 0.0, "bandwidth": 8.0 * n / seconds, "moved": coalescing.moved(stride, grain, n),
        "moving": coalescing.moved(stride, grain, n) / seconds, "slower": slower,
        "expected": coalescing.moved(stride, grain, n) / coalescing.moved(1, grain, n), "note": note,
    }  # fmt: skip


def test_an_h200_is_told_4_against_32_and_that_the_counter_agrees(device: Device) -> None:
    rows = [row(1, 1.0, 4.0), row(3, 2.0, 12.0), row(1025, 4.6, 32.0)]
    said = coalescing._meaning(rows, gpu_bench(device))
    assert "At stride 1 a warp reads 4 sectors of 32 bytes; at stride 1025 a warp reads 32 sectors" in said
    assert "4.6x as long as in order, where the bytes that move are 4.5x" in said
    assert "The hardware's own counter agrees at 3 strides of 3." in said
    assert "not in this count" not in said


def test_a_counter_that_differs_is_quoted(device: Device) -> None:
    said = coalescing._meaning([row(1, 1.0, 4.0), row(9, 6.0, 33.5)], gpu_bench(device))
    assert "differs" in said and "33.50" in said


def test_what_bytes_do_not_explain_is_said(device: Device) -> None:
    said = coalescing._meaning([row(1, 1.0), row(1025, 9.0)], gpu_bench(device))
    assert "The other 2.0x is not in this count" in said


def test_a_picture_has_every_stride(device: Device) -> None:
    picture = coalescing._picture([row(1, 1.0), row(9, 4.5)], gpu_bench(device))
    assert [series.x for series in picture.series] == [("stride 1", "stride 9")] * 2


def test_scattered_reads_are_never_clearly_faster_than_those_in_order(conducted: Callable[[str], Result]) -> None:
    rows = conducted("coalescing").rows
    assert [r["stride"] for r in rows] == list(coalescing.STRIDES)
    assert float(rows[-1]["slower"] or 0) > 1 / 1.3
    assert "A CPU has no warps" in conducted("coalescing").meaning


def test_input_and_output_together_are_past_the_last_level_cache(bench: Bench) -> None:
    assert 2 * coalescing.elements(bench) * 4 >= min(2 * bench.last_cache, 8 * coalescing.MOST)


def test_the_counter_is_read_once_for_all_strides(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def count(name: str, *calls: tuple[int, int], device: str) -> tuple[Counters, ...]:
        asked.append((name, device, *calls))
        return tuple(Counters(coalescing.pieces(stride, 32) * 100.0, 100.0, 0.0) for _, stride in calls)

    monkeypatch.setattr("ridgepole.kernels.cuda.counters.count", count)
    bench = gpu_bench(device)
    bench.device.backend = "cuda"  # type: ignore[misc]
    counted, why = coalescing._counted_by_hardware(bench)
    assert counted == {1: 4.0, 3: 12.0, 9: 32.0, 33: 32.0, 1025: 32.0} and why == ""
    assert len(asked) == 1


def test_a_counter_that_cannot_be_read_says_why(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgepole.kernels.cuda.counters.count", lambda *args, **kwargs: "no permission")
    bench = gpu_bench(device)
    bench.device.backend = "cuda"  # type: ignore[misc]
    assert coalescing._counted_by_hardware(bench) == ({}, "no permission")

"""Attention: bytes by hand, every way within rounding of float64, and words for a GPU's rows."""

from __future__ import annotations

import pytest

from ridgepole.kernels.device import Device
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import find
from ridgepole.lab.experiment import Row
from ridgepole.lab.experiments import attention
from ridgepole.lab.experiments.attention import NAIVE, TILED, VENDOR, VENDOR_HALF, flops, least_bytes, matrix_bytes
from tests.lab.made import gpu_bench

ATTENTION = find("attention")


def test_one_head_of_64_at_4096_moves_4_megabytes_where_its_matrix_moves_268() -> None:
    assert least_bytes(1, 4096) == 4 * 4096 * 64 * 4 == 4_194_304
    assert matrix_bytes(1, 4096) == 4 * 4 * 4096 * 4096 == 268_435_456
    assert flops(1, 4096) == 4 * 4096 * 4096 * 64
    assert least_bytes(1, 4096, 2) == least_bytes(1, 4096) / 2


def row(way: str, seconds: float | None, n: int = 4096, note: str = "") -> Row:
    rate = flops(32, n) / seconds if seconds else None
    return {"n": n, "heads": 32, "way": way, "seconds": seconds, "rate": rate, "note": note}


H200_ROWS = [row(TILED, 1e-2), row(NAIVE, 2e-2), row(VENDOR, 5e-3), row(VENDOR_HALF, 1e-3)]


def test_the_meaning_says_what_was_spared_and_how_the_others_did(device: Device) -> None:
    said = ATTENTION.meaning(H200_ROWS, gpu_bench(device))
    assert "At n = 4,096 (32 heads of 64)" in said
    assert "4 x 4 x 32 x n² = 8.59 GB and leaves 134 MB, 65x fewer bytes" in said
    assert "The tiled kernel takes 10.0 ms (13.7 TFLOP/s); three kernels 20.0 ms (2.00x its time)" in said
    assert "The spared bytes alone are 1.79 ms at 4.80 TB/s." in said
    assert "Sparing bytes did not make it faster" not in said


def test_where_sparing_bytes_did_not_pay_it_says_so(device: Device) -> None:
    said = ATTENTION.meaning([row(TILED, 3e-2), row(NAIVE, 2e-2)], gpu_bench(device))
    assert "Sparing bytes did not make it faster here" in said


def test_a_matrix_within_the_cache_is_not_said_to_cost_memory(device: Device) -> None:
    said = ATTENTION.meaning([row(TILED, 1e-4, n=512)], gpu_bench(device))
    assert "fits the last cache" in said and "The spared bytes alone" not in said


def test_without_a_tiled_row_nothing_is_claimed(device: Device) -> None:
    said = ATTENTION.meaning([row(NAIVE, 2e-2), row(TILED, None, note="not run")], gpu_bench(device))
    assert "no figure to be believed" in said


def test_every_way_is_within_rounding_of_float64(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "QUICK_CPU_SIZES", (96, 128))
    rows = list(ATTENTION.rows(bench))
    assert [(r["n"], r["way"]) for r in rows] == [(n, way) for n in (96, 128) for way in (TILED, NAIVE, VENDOR)]
    for r in rows:
        assert 0 < float(r["error"] or 0) < 1e-5 and float(r["seconds"] or 0) > 0
    by_way = {str(r["way"]): r for r in rows if r["n"] == 128}
    assert float(by_way[NAIVE]["bytes"] or 0) == least_bytes(1, 128) + matrix_bytes(1, 128)
    assert float(by_way[TILED]["bytes"] or 0) == float(by_way[VENDOR]["bytes"] or 0) == least_bytes(1, 128)


def test_a_gpu_runs_many_heads_and_bf16_beside(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "QUICK_SIZES", (64,))
    rows = list(ATTENTION.rows(gpu_bench(device)))
    assert [r["way"] for r in rows] == [TILED, NAIVE, VENDOR, VENDOR_HALF]
    assert all(r["heads"] == 32 for r in rows)
    assert 1e-5 < float(rows[-1]["error"] or 0) < 2e-2


def test_what_torch_has_no_room_for_is_a_row_and_the_rest_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(attention, "QUICK_CPU_SIZES", (64,))
    monkeypatch.setattr(attention, "_three_kernels", no_room)
    rows = list(ATTENTION.rows(bench))
    assert [bool(r["note"]) for r in rows] == [False, True, False]
    assert rows[1]["note"] == "not run: out of memory"


def test_a_picture_has_a_line_a_way(device: Device) -> None:
    picture = ATTENTION.picture([*H200_ROWS, row(TILED, 1e-3, n=1024)], gpu_bench(device))
    assert picture is not None
    assert [(series.label, series.style) for series in picture.series][:2] == [(TILED, "line"), (NAIVE, "points")]

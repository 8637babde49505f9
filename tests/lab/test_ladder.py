"""The ladder: shares of the vendor's rate, what each rung asks, and words that hold for whatever rows there are."""

from __future__ import annotations

import pytest

from ridgepole.kernels.device import Device
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import find
from ridgepole.lab.experiment import Row
from ridgepole.lab.patience import Patience
from ridgepole.lab.rungs import RUNGS, VENDOR, rung, vendor
from ridgepole.lab.values import believed, number
from tests.lab.made import gpu_bench

LADDER = find("ladder")


def row(name: str, rate: float | None, n: int = 4096, note: str = "") -> Row:
    vendor_rate = 50.8e12
    share = rate / vendor_rate if rate else None
    return {"n": n, "rung": name, "rate": rate, "of_vendor": share, "of_peak": rate / 67e12 if rate else None,
            "relative": 6e-7, "note": note}  # fmt: skip


H200_ROWS = [
    row(VENDOR, 50.8e12), row("matmul_naive", 5e12), row("matmul_tiled16", 7.5e12), row("matmul_tiled32", 9e12),
    row("matmul_registers", 20.32e12),
]  # fmt: skip


def test_the_meaning_climbs_from_rung_to_rung_with_what_each_changed(device: Device) -> None:
    said = LADDER.meaning(H200_ROWS, gpu_bench(device))
    assert said.startswith("At n = 4096 the fastest rung, registers, runs 20.3 TFLOP/s, 40.0 % of the vendor library's")
    assert "naive 5.00 TFLOP/s with 8,192 reads an output (2n)" in said
    assert "tiled16 1.50x with 512 reads an output (2n/16) and 2 of shared memory a multiply-add" in said
    assert "registers 2.26x with 128 reads an output (2n/64) and 0.5 of shared memory a multiply-add" in said
    assert "The rungs are in order." in said and "6e-07" in said


def test_rungs_out_of_order_are_said_to_be(device: Device) -> None:
    said = LADDER.meaning([row("matmul_naive", 5e12), row("matmul_tiled16", 4e12)], gpu_bench(device))
    assert "The rungs are not in order here." in said and "CPU" not in said


def test_a_rate_above_the_limit_is_not_in_the_meaning(device: Device) -> None:
    bad = row("matmul_registers", 9e14, note="rate above the physical limit: not believed")
    said = LADDER.meaning([*H200_ROWS[:-1], bad], gpu_bench(device))
    assert "900" not in said and "the fastest rung, tiled32" in said
    assert "notes say why" in LADDER.meaning([bad], gpu_bench(device))


def test_the_size_with_the_most_rungs_is_spoken_of(device: Device) -> None:
    rows = [*H200_ROWS, row("matmul_registers", 2e13, n=8192), row("matmul_naive", None, n=8192, note="not run")]
    assert "At n = 4096" in LADDER.meaning(rows, gpu_bench(device))


def test_a_picture_has_a_line_a_rung_and_none_for_what_did_not_run(device: Device) -> None:
    rows = [*H200_ROWS, *(row(name, 1e12, n=2048) for name in RUNGS), row("matmul_naive", None, n=8192)]
    picture = LADDER.picture(rows, gpu_bench(device))
    assert picture is not None
    lines = {series.label: series for series in picture.series}
    assert lines["naive"].x == (4096.0, 2048.0) and lines["naive"].style == "line"
    assert lines[VENDOR].style == "points"


def test_the_vendors_product_is_float64s_to_rounding_and_bf16_to_its_own(bench: Bench) -> None:
    full, half = vendor(bench, 64), vendor(bench, 64, "bfloat16")
    assert full.relative < 1e-5 < half.relative < 1e-2


def test_every_rung_has_the_error_of_float32(bench: Bench) -> None:
    for name in RUNGS:
        timed = rung(bench, name, 48)
        assert timed.relative < 1e-5 and timed.rate > 0


def test_a_call_that_would_take_too_long_is_not_made() -> None:
    patience = Patience(0.3)
    assert patience.why_not("a", 1e15) == ""
    patience.learn("a", 2e9, 1.0)
    assert patience.predicted("a", 8e9) == pytest.approx(4.0)
    assert "300 ms" in patience.why_not("a", 8e9) and not patience.why_not("a", 0.5e9)
    assert not patience.why_not("b", 1e15)


def test_the_ladder_says_what_it_did_not_run_and_how_long_it_would_have_taken(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "ridgepole.lab.experiments.ladder"
    monkeypatch.setattr(f"{module}.QUICK_CPU_SIZES", (32, 64))
    monkeypatch.setattr(f"{module}.patience", lambda bench: Patience(1e-9))
    rows = list(LADDER.rows(bench))
    assert [r["n"] for r in rows if r["rate"] is None] == [64] * 5
    assert all(
        str(r["note"]).startswith("not run") and (number(r, "would_take") or 0) > 0 for r in rows if r["n"] == 64
    )
    assert all(believed(r, "rate") for r in rows if r["n"] == 32)
    asked = {str(r["rung"]): r.get("bytes_per_flop") for r in rows if r["n"] == 32}
    assert [asked[name] for name in RUNGS] == [4, 0.25, 0.125, 0.0625]


def test_a_product_torch_has_no_room_for_is_a_row_and_the_rungs_go_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise RuntimeError("\nout of memory\nand a dump")

    module = "ridgepole.lab.experiments.ladder"
    monkeypatch.setattr(f"{module}.QUICK_CPU_SIZES", (32,))
    monkeypatch.setattr(f"{module}.vendor", no_room)
    rows = list(LADDER.rows(bench))
    assert rows[0]["note"] == "not run: out of memory" and len(rows) == 5
    assert all(r["of_vendor"] is None and believed(r, "rate") for r in rows[1:])

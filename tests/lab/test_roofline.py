"""The roof: the lesser of arithmetic and memory, and the longest of three times."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.kernels.device import Device
from ridgepole.lab.experiment import Result, Row
from ridgepole.lab.experiments import roofline
from ridgepole.lab.roof import Roof, bucket
from ridgepole.lab.timing import Timing
from tests.lab.made import gpu_bench

H200 = Roof(peak=50e12, bandwidth=4.2e12, overhead=8e-6)


def test_intensities_are_those_of_the_textbook() -> None:
    assert roofline.add(1 << 20).intensity == pytest.approx(1 / 12)
    assert roofline.matrix_vector(4096, "float32").intensity == pytest.approx(0.5, abs=0.001)
    assert roofline.product(4096, "float32").intensity == pytest.approx(4096 / 6)
    assert roofline.product(4096, "bfloat16").intensity == pytest.approx(4096 / 3)
    assert roofline.batch(1024, 64, "float32").intensity == roofline.product(64, "float32").intensity


@given(st.floats(1e-3, 1e5), st.floats(1e9, 1e16), st.floats(1e9, 1e13))
def test_attainable_is_below_both_roofs_and_on_one(intensity: float, peak: float, bandwidth: float) -> None:
    found = Roof(peak, bandwidth, 0.0).attainable(intensity)
    assert found <= peak and found <= intensity * bandwidth
    assert found in (peak, intensity * bandwidth)


def test_one_small_product_is_overhead_and_a_thousand_in_one_call_are_memory() -> None:
    one, many, large = (roofline.product(64, "float32"), roofline.batch(1024, 64, "float32"),
                        roofline.product(4096, "float32"))  # fmt: skip
    assert bucket(one.flops, one.bytes, H200) == "overhead"
    assert bucket(many.flops, many.bytes, H200) == "memory"
    assert bucket(large.flops, large.bytes, H200) == "compute"


def rows(device: Device) -> list[Row]:
    bench = gpu_bench(device)
    reached = {
        "vector add": 0.77e-3, "matmul 64": 9e-6, "matmul 4096": 2.7e-3, "1,024 matmuls of 64": 15e-6,
    }  # fmt: skip
    work = [w for w in roofline.plan(("float32",), 1 << 28) if w.name in reached]
    return [roofline._row(bench, w, _timing(reached[w.name]), None, H200) for w in work]


def _timing(seconds: float) -> Timing:
    return Timing(seconds, seconds, seconds, 9, "queued")


def test_the_meaning_names_limits_and_says_that_one_product_of_64_is_overhead(device: Device) -> None:
    said = roofline._meaning(rows(device), gpu_bench(device))
    assert "50.9 TFLOP/s in float32, 76.0 % of the datasheet's, so the ridge is at 12 FLOP/B" in said
    assert "Memory gives 4.18 TB/s, 87.2 % of the datasheet's." in said
    assert "the call itself takes longer than the work, of: matmul 64." in said
    assert "One matmul of 64 in float32 takes 9.00 µs" in said
    assert "614.4x the FLOP/s at the same intensity" in said


def test_the_picture_has_both_roofs_and_names_its_points(device: Device) -> None:
    picture = roofline._picture(rows(device), gpu_bench(device))
    assert picture is not None
    assert [s.label for s in picture.series] == ["measured roof, float32", "datasheet, float32", "float32"]
    assert "matmul 64" in picture.series[-1].names
    assert picture.x.log and picture.y.log


def test_a_rate_above_the_datasheet_is_neither_believed_nor_a_roof(device: Device) -> None:
    bench = gpu_bench(device)
    wrong = roofline._row(bench, roofline.product(4096, "float32"), _timing(1e-3), None, H200)
    assert "above the physical limit" in str(wrong["note"])
    assert roofline.measured([wrong]) == ({}, 0.0)
    assert "Not believed: matmul 4096" in roofline._meaning([wrong], bench)


def test_what_is_not_run_says_why(device: Device) -> None:
    row = {**roofline._known(roofline.product(4096, "float32")), "note": "not run: too long"}
    assert "Not run: matmul 4096." in roofline._meaning([row], gpu_bench(device))
    assert roofline._picture([row], gpu_bench(device)) is None


def test_no_row_is_above_its_own_roof(conducted: Callable[[str], Result]) -> None:
    found = [r for r in conducted("roofline").rows if r["rate"] is not None]
    assert len(found) >= 6
    assert all(0 < float(r["share"] or 0) <= 1.0001 for r in found)
    assert found[0]["bucket"] == "memory"

"""Batching: what a batch costs by hand, where it stops being free, and for real on the CPU."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.kernels.device import Device
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import conduct_at, find
from ridgepole.lab.experiment import Row
from ridgepole.lab.experiments import batching
from ridgepole.lab.values import amount
from tests.lab.made import gpu_bench

BATCHING = find("batching")
BANDWIDTH, PEAK = 4.0e12, 8.0e14
"""An H200 as it runs: bytes and bfloat16 FLOPs a second."""


def weight(batch: int, note: str = "") -> Row:
    """A row at whichever roof is lower."""
    flops, moved = batching.cost(batch, 4096, 14336, 2)
    seconds = max(flops / PEAK, moved / BANDWIDTH)
    return {"what": batching.WEIGHT, "batch": batch, "seconds": seconds, "rate_rows": batch / seconds,
            "flops": flops / seconds, "of_peak": flops / seconds / 989e12, "bandwidth": moved / seconds,
            "intensity": flops / moved, "note": note}  # fmt: skip


def small(what: str, many: int, seconds: float) -> Row:
    return {"what": what, "batch": many, "seconds": seconds, "note": ""}


H200_ROWS: list[Row] = [
    *(weight(batch) for batch in batching.batches(quick=False)),
    small(batching.ONE_BY_ONE, 1, 8e-6), small(batching.ONE_CALL, 1024, 16e-6),
]  # fmt: skip


def test_one_row_of_the_weight_is_one_flop_a_byte() -> None:
    flops, moved = batching.cost(1, 4096, 14336, 2)
    assert flops == 117_440_512 and moved == 117_477_376
    assert flops / moved == pytest.approx(1, rel=1e-3)


@given(st.integers(1, 512), st.sampled_from([2, 4]))
def test_a_larger_batch_never_has_less_to_do_for_each_byte(batch: int, item: int) -> None:
    flops, moved = batching.cost(batch, 4096, 14336, item)
    more, also = batching.cost(batch + 1, 4096, 14336, item)
    assert flops / moved < more / also < 2 * (batch + 1) / item


def test_batches_go_from_one_to_the_largest() -> None:
    assert batching.batches(quick=False) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert batching.batches(quick=True) == [1, 4, 16, 64, 256, 1024]


def test_the_meaning_says_where_a_batch_stops_being_free_and_where_the_ridge_is(device: Device) -> None:
    said = BATCHING.meaning(H200_ROWS, gpu_bench(device))
    assert said.startswith("One row takes 29.4 µs and 256 rows 37.6 µs: up to there a batch costs less than 2x one row")
    assert "The ridge point is 206 FLOP/B, reached at 256 rows" in said
    assert "the best rate is 800 TFLOP/s at " in said and "of the known peak" in said
    assert "8.00 µs by its own call and 15.6 ns as one of 1,024 in one bmm: 512.0x as fast" in said


def test_a_batch_that_is_dear_at_once_is_said_to_be(device: Device) -> None:
    rows = [{**weight(1), "seconds": 1e-5, "rate_rows": 1e5}, {**weight(2), "seconds": 1e-3, "rate_rows": 2e3}]
    said = BATCHING.meaning(rows, gpu_bench(device))
    assert (
        "One row takes 10.0 µs, and 2 rows already 100.0x as long. At 2 rows each is 50.0x dearer than alone." in said
    )


def test_rows_that_are_not_believed_say_nothing(device: Device) -> None:
    rows = [weight(1, note="rate above the physical limit: not believed")]
    assert BATCHING.meaning(rows, gpu_bench(device)) == "Too little was measured that can be believed."


def test_small_products_that_gain_nothing_together_are_said_to(device: Device) -> None:
    rows = [small(batching.ONE_BY_ONE, 1, 8e-6), small(batching.ONE_CALL, 100, 9e-4)]
    assert BATCHING.meaning(rows, gpu_bench(device)).endswith("in one bmm: no gain here.")


def test_the_picture_marks_the_ridge_point_between_the_batches_around_it(device: Device) -> None:
    picture = BATCHING.picture(H200_ROWS, gpu_bench(device))
    assert picture is not None
    ((name, batch),) = picture.marks
    assert name == "ridge point" and 206 < batch < 256
    time, gain = picture.series
    assert time.y[0] == gain.y[0] == 1 and gain.y[-1] > 100


def test_many_rows_together_are_cheaper_each_than_one_alone(bench: Bench) -> None:
    rows = conduct_at(bench, BATCHING).rows
    found = [row for row in rows if row["what"] == batching.WEIGHT]
    assert [row["batch"] for row in found] == batching.batches(quick=True)
    assert amount(found[-1], "rate_rows") > 1.5 * amount(found[0], "rate_rows")
    assert {row["what"] for row in rows} == {batching.WEIGHT, batching.ONE_BY_ONE, batching.ONE_CALL}

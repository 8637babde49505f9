"""Quantities as people write them, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole import units
from ridgepole.errors import BadInput


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (units.seconds(40.1e-6), "40.1 µs"),
        (units.seconds(0.99996e-3), "1.00 ms"),
        (units.seconds(0), "0 s"),
        (units.nanoseconds(3_907_825), "3.91 ms"),
        (units.nbytes(33_554_432), "33.6 MB"),
        (units.nbytes(12), "12 B"),
        (units.flops(33_554_432), "33.6 MFLOP"),
        (units.rate_bytes(3.35e12), "3.35 TB/s"),
        (units.rate_flops(989e12), "989 TFLOP/s"),
        (units.percent(0.912), "91.2 %"),
        (units.percent(1.0), "100 %"),
        (units.percent(0), "0 %"),
        (units.percent(0.00001), "<0.01 %"),
        (units.count(16_777_216), "16,777,216"),
    ],
)
def test_a_quantity_reads_as_the_field_writes_it(shown: str, said: str) -> None:
    assert shown == said


@given(st.floats(1e-11, 900.0))
def test_seconds_keep_three_digits(value: float) -> None:
    assert units.parse_quantity(units.seconds(value), "s") == pytest.approx(value, rel=0.006)


@given(st.floats(1.0, 9e18))
def test_bytes_a_second_keep_three_digits(value: float) -> None:
    shown = units.rate_bytes(value)
    assert units.parse_quantity(shown, "B/s") == pytest.approx(value, rel=0.006, abs=0.51)
    assert not shown.startswith("1,000 ")


@pytest.mark.parametrize("text", ["", "fast", "3.35 GB", "3.35 XB/s", "1e"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="not a quantity"):
        units.parse_quantity(text, "B/s")

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.timeline.reading.clock import nanoseconds


def exactly(text: str) -> int:
    return int((Decimal(text) * 1000).to_integral_value())


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**18), max_value=10**18, places=9))
def test_any_decimal_is_its_thousandfold_rounded_once(value: Decimal) -> None:
    text = format(value, "f")
    assert nanoseconds(text.encode()) == int((Decimal(text) * 1000).to_integral_value())


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_what_json_writes_of_a_float_is_read_as_written(value: float) -> None:
    text = repr(value)
    assert nanoseconds(text.encode()) == exactly(text)


@given(st.integers(min_value=-(10**20), max_value=10**20))
def test_whole_microseconds_gain_three_zeros(value: int) -> None:
    assert nanoseconds(str(value).encode()) == value * 1000


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("5251265997829.197", 5251265997829197),
        ("1419116963728.4125", 1419116963728412),
        ("0.0005", 0),
        ("0.0015", 2),
        ("0.00050000000001", 1),
        ("-1.25", -1250),
        ("1e3", 1_000_000),
        ("1.5E-3", 2),
        ("1e-400", 0),
        ('"1695835542514261.500"', 1695835542514261500),
        ("0", 0),
        ("-0.0", 0),
    ],
)
def test_numbers_in_every_spelling_are_exact(text: str, ns: int) -> None:
    assert nanoseconds(text.encode()) == ns


@pytest.mark.parametrize("text", ["", "null", "NaN", "-Infinity", '"soon"', "1e999999999", "[1]", "--1", "1e4000", "."])
def test_what_is_no_time_is_none(text: str) -> None:
    assert nanoseconds(text.encode()) is None


def test_a_number_of_a_million_digits_costs_nothing_and_is_no_time() -> None:
    assert nanoseconds(b"9" * 1_000_000) is None
    assert nanoseconds(b"0." + b"9" * 1_000_000) == 1000

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


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (units.nbytes(12.0), "12 B"),
        (units.nbytes(999), "999 B"),
        (units.nbytes(999.6), "1.00 kB"),
        (units.nbytes(999_500), "1.00 MB"),
        (units.nbytes(0.005), "0.005 B"),
        (units.seconds(5e-9), "5.00 ns"),
        (units.seconds(9.995e-6), "10.0 µs"),
        (units.seconds(99.96e-6), "100 µs"),
        (units.seconds(999.6e-6), "1.00 ms"),
        (units.seconds(0.9996), "1.00 s"),
        (units.seconds(999.6), "1,000 s"),
        (units.seconds(86_400), "86,400 s"),
        (units.seconds(-30e-6), "-30.0 µs"),
        (units.rate_flops(999.6e12), "1.00 PFLOP/s"),
        (units.rate_bytes(0), "0 B/s"),
        (units.hertz(1.98e9), "1.98 GHz"),
        (units.percent(0.00994), "0.99 %"),
        (units.percent(0.00996), "1.0 %"),
        (units.percent(0.9994), "99.9 %"),
        (units.percent(0.9996), "100 %"),
        (units.percent(12.0), "1,200 %"),
        (units.percent(-1e-9), ">-0.01 %"),
        (units.number(2250), "2,250"),
        (units.number(67), "67.0"),
    ],
)
def test_rounding_at_a_border_takes_the_next_prefix(shown: str, said: str) -> None:
    assert shown == said


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_shown_as_it_is(value: float) -> None:
    for say in (units.seconds, units.nbytes, units.flops, units.rate_bytes, units.rate_flops, units.percent):
        assert str(value) in say(value)


@given(st.floats(1e-11, 900.0))
def test_seconds_keep_three_digits(value: float) -> None:
    assert units.parse_quantity(units.seconds(value), "s") == pytest.approx(value, rel=0.006)


@given(st.floats(1.0, 9e18))
def test_bytes_a_second_keep_three_digits(value: float) -> None:
    shown = units.rate_bytes(value)
    assert units.parse_quantity(shown, "B/s") == pytest.approx(value, rel=0.006)
    assert not shown.startswith("1,000 ")


@given(st.floats(1e-11, 900.0), st.floats(1e-11, 900.0))
def test_what_takes_longer_is_never_shown_as_shorter(one: float, other: float) -> None:
    less, more = sorted((one, other))
    shown = [units.parse_quantity(units.seconds(value), "s") for value in (less, more)]
    assert shown[0] <= shown[1]


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("3.35 TB/s", "B/s", 3.35e12),
        ("3.35TB/s", "B/s", 3.35e12),
        (" 80 GB ", "B", 80e9),
        ("1,000 B", "B", 1e3),
        (".5 ms", "s", 0.5e-3),
        ("5. us", "s", 5e-6),
        ("40.1 µs", "s", 40.1e-6),
        ("9.89e14", "FLOP/s", 9.89e14),
        ("-3 s", "s", -3.0),
    ],
)
def test_a_quantity_is_read_as_it_was_meant(text: str, unit: str, value: float) -> None:
    assert units.parse_quantity(text, unit) == pytest.approx(value)


@pytest.mark.parametrize(("text", "unit"), [("5 mB", "B"), ("3 Ms", "s"), ("1e400", "B"), ("٣ B", "B"), (",5 B", "B")])
def test_a_prefix_that_would_be_another_quantity_is_refused(text: str, unit: str) -> None:
    with pytest.raises(BadInput):
        units.parse_quantity(text, unit)


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_is_refused_in_one_line(text: str) -> None:
    try:
        value = units.parse_quantity(text, "B")
    except BadInput as error:
        assert "\n" not in str(error)
    else:
        assert value == value


@pytest.mark.parametrize("text", ["", "fast", "3.35 GB", "3.35 XB/s", "1e"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="not a quantity"):
        units.parse_quantity(text, "B/s")

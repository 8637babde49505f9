"""Exact time: the decimal microseconds that a trace writes, as integer nanoseconds, never through floats."""

from __future__ import annotations

import re

_SCALE = (1000, 100, 10, 1)
_DECIMAL = re.compile(rb'\s*"?\s*([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?\s*"?\s*')
_LONGEST = 64
"""Digits of a number that can still be a time: more is rubbish, and would cost memory to multiply out."""


def nanoseconds(text: bytes) -> int | None:
    """A JSON number, or a string that holds one, in microseconds: its value times 1,000, rounded once, half to even.

    None for what is no finite decimal number (null, NaN, text) or is past 10**64 ns.
    """
    whole, dot, fraction = text.partition(b".")
    if whole.isdigit() and len(whole) < _LONGEST:
        if not dot:
            return int(whole) * 1000
        digits = len(fraction)
        if digits <= 3 and fraction.isdigit():
            return int(whole) * 1000 + int(fraction) * _SCALE[digits]
    return _from_decimal(text)


def _from_decimal(text: bytes) -> int | None:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction, exponent = match.groups()
    fraction = fraction or b""
    if not whole and not fraction:
        return None
    digits = (whole + fraction).lstrip(b"0")
    power = int(exponent or 0) - len(fraction) + 3
    if not digits:
        return 0
    if len(digits) + power > _LONGEST:
        return None
    if len(digits) + power < -1:
        return 0
    value = _scaled(digits, power)
    return -value if sign == b"-" else value


def _scaled(digits: bytes, power: int) -> int:
    """`digits` times 10**power, rounded half to even; at most 64 digits come out, however many go in."""
    if power >= 0:
        return int(digits) * int(10**power)
    kept, cut = digits[:power], digits[power:]
    if len(digits) < -power:
        cut = cut.rjust(-power, b"0")
    value = int(kept or b"0")
    half = b"5".ljust(len(cut), b"0")
    if cut > half or (cut == half and value % 2):
        value += 1
    return value

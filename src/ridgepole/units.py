"""Formatting and parsing of quantities: the one place that knows how "989 TFLOP/s" is written.

Three significant digits, decimal prefixes (1 MB is 1,000,000 bytes), a space before the unit.
"""

from __future__ import annotations

import re

from ridgepole.errors import BadInput

_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))
_FACTOR = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_FACTOR |= {"m": 1e-3, "µ": 1e-6, "μ": 1e-6, "u": 1e-6, "n": 1e-9, "p": 1e-12}
_QUANTITY = re.compile(r"\s*([-+]?[\d_,]*\.?\d+(?:[eE][-+]?\d+)?)\s*(.*?)\s*")


def seconds(value: float) -> str:
    """40.1e-6 → "40.1 µs"."""
    if value == 0:
        return "0 s"
    if abs(value) >= 1000:
        return f"{value:,.0f} s"
    return _scaled(value, "s", _SMALL)


def nanoseconds(ns: float) -> str:
    """40_100 → "40.1 µs"."""
    return "0 ns" if ns == 0 else seconds(ns * 1e-9)


def nbytes(value: float) -> str:
    """33_554_432 → "33.6 MB" (decimal)."""
    return _whole(value, "B")


def flops(value: float) -> str:
    """33_554_432 → "33.6 MFLOP"."""
    return _whole(value, "FLOP")


def rate_bytes(value: float) -> str:
    """3.35e12 → "3.35 TB/s"."""
    return _scaled(value, "B/s", _PREFIXES)


def rate_flops(value: float) -> str:
    """989e12 → "989 TFLOP/s"."""
    return _scaled(value, "FLOP/s", _PREFIXES)


def hertz(value: float) -> str:
    """1.98e9 → "1.98 GHz"."""
    return _scaled(value, "Hz", _PREFIXES)


def percent(share: float) -> str:
    """0.912 → "91.2 %"; a share above zero is never shown as 0."""
    value = share * 100
    if value == 0:
        return "0 %"
    if abs(value) < 0.01:
        return "<0.01 %"
    if abs(value) < 1:
        return f"{value:.2f} %"
    return f"{value:.1f} %" if abs(value) < 99.95 else f"{value:.0f} %"


def count(value: int) -> str:
    """16777216 → "16,777,216"."""
    return f"{value:,}"


def _whole(value: float, unit: str) -> str:
    """A count of `unit`: below 1,000 as it stands."""
    if abs(value) < 1000 and value == int(value):
        return f"{value:.0f} {unit}"
    return _scaled(value, unit, _PREFIXES)


def _scaled(value: float, unit: str, prefixes: tuple[tuple[float, str], ...]) -> str:
    size = abs(value)
    for index, (factor, _) in enumerate(prefixes):
        # 999.95 µs rounds to 1,000: the next prefix says it in three digits.
        if _three(size / factor) >= 1 or index == len(prefixes) - 1:
            number = _three(size / factor)
            if number >= 1000 and index:
                factor, prefix = prefixes[index - 1]
                return f"{_digits(value / factor)} {prefix}{unit}"
            return f"{_digits(value / factor)} {prefixes[index][1]}{unit}"
    raise AssertionError("the last prefix always returns")


def _three(value: float) -> float:
    return float(f"{value:.3g}")


def _digits(value: float) -> str:
    size = _three(abs(value))
    if size >= 100 or size == 0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def parse_quantity(text: str, unit: str) -> float:
    """ "3.35 TB/s" with unit "B/s" → 3.35e12. Raises BadInput for another unit or no number."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise BadInput(f"{text!r} is not a quantity in {unit}: write it as 3.35 T{unit}")
    number = float(found[1].replace(",", "").replace("_", ""))
    said = found[2]
    if said == unit or not said:
        return number
    prefix = said.removesuffix(unit)
    if not said.endswith(unit) or prefix not in _FACTOR:
        raise BadInput(f"{text!r} is not a quantity in {unit}: write it as 3.35 T{unit}")
    return number * _FACTOR[prefix]

"""Formatting and parsing of quantities: the one place that knows how "989 TFLOP/s" is written.

Three significant digits, decimal prefixes (1 MB is 1,000,000 bytes), a space before the unit.
"""

from __future__ import annotations

import re
from math import isfinite

from ridgepole.errors import BadInput

_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))
_LARGE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_PARTS = {"": 1.0, "m": 1e-3, "µ": 1e-6, "μ": 1e-6, "u": 1e-6, "n": 1e-9, "p": 1e-12}
_QUANTITY = re.compile(r"\s*([-+]?(?:[0-9][0-9_,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(\D*)", re.ASCII)


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
        return "<0.01 %" if value > 0 else ">-0.01 %"
    if abs(value) < 0.995:
        return f"{value:.2f} %"
    return f"{value:.1f} %" if abs(value) < 99.95 else f"{value:,.0f} %"


def count(value: int) -> str:
    """16777216 → "16,777,216"."""
    return f"{value:,}"


def number(value: float) -> str:
    """A figure of a column whose heading has the unit: 989, 67.0, 2,250."""
    return _digits(value) if isfinite(value) else f"{value}"


def _whole(value: float, unit: str) -> str:
    """A count of `unit`: below 1,000 as it stands."""
    if abs(value) < 1000 and value == int(value):
        return f"{value:.0f} {unit}"
    return _scaled(value, unit, _PREFIXES)


def _scaled(value: float, unit: str, prefixes: tuple[tuple[float, str], ...]) -> str:
    if not isfinite(value):
        return f"{value} {unit}"
    for index, (factor, prefix) in enumerate(prefixes):
        # 999.96 µs rounds to 1,000: the next prefix says it in three digits.
        number = _three(abs(value) / factor)
        if number >= 1000 and index:
            factor, prefix = prefixes[index - 1]
            return f"{_digits(value / factor)} {prefix}{unit}"
        if number >= 1 or index == len(prefixes) - 1:
            return f"{_digits(value / factor)} {prefix}{unit}"
    raise AssertionError("the last prefix always returns")


def _three(value: float) -> float:
    return float(f"{value:.3g}")


def _digits(value: float) -> str:
    size = _three(abs(value))
    if size >= 100 or size == 0:
        return f"{value:,.0f}"
    if size < 1:  # below the smallest prefix
        return f"{value:.3g}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def parse_quantity(text: str, unit: str) -> float:
    """ "3.35 TB/s" with unit "B/s" → 3.35e12. Raises BadInput for another unit or no number.

    Seconds are cut up (m, µ, n, p), everything else is multiplied (k, M, G, T, P, E): "5 mB" is refused.
    """
    found = _QUANTITY.fullmatch(text)
    factors = _PARTS if unit == "s" else _LARGE
    said = found[2].strip() if found is not None else ""
    prefix = said.removesuffix(unit)
    if found is None or (said and (not said.endswith(unit) or prefix not in factors)):
        example = "40.1 µs" if unit == "s" else f"3.35 T{unit}"
        raise BadInput(f"{text!r} is not a quantity in {unit}: write it as {example}")
    value = float(found[1].replace(",", "").replace("_", "")) * factors[prefix]
    if not isfinite(value):
        raise BadInput(f"{text!r} is not a finite quantity")
    return value

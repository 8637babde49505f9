"""Values of rows, read back by what they mean and what they draw."""

from __future__ import annotations

from ridgepole.lab.experiment import Row


def number(row: Row, key: str) -> float | None:
    """The number at `key`; None where it is not known, or no number."""
    value = row.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def believed(row: Row, key: str) -> bool:
    """Whether the row has a positive number at `key`, and no note speaks against it."""
    found = number(row, key)
    return found is not None and found > 0 and not row.get("note")


def amount(row: Row | None, key: str) -> float:
    """The number at `key`; 0 where it is not known."""
    return (number(row, key) if row is not None else None) or 0.0

"""What a row of a machine file may hold: a key that nothing reads is a slip that would lose a figure in silence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ridgepole.machine.match import words
from ridgepole.machine.model import Limits, Overheads

Table = Mapping[str, Any]

_TEXTS = ("name", "source", "memory_kind", "kind", "vendor", "architecture", "compute", "confidence", "measured_of")
_SHARED = frozenset({"kind", "vendor", "architecture", "compute", "limits", "overheads", "tuning"})
"""Keys that a row and its family may both have."""
_FIGURES = frozenset({"sms", "clock", "memory", "bandwidth", "l2", "l2_bandwidth", "llc", "llc_bandwidth", "link"})
_ROW = _SHARED | _FIGURES | {"name", "aliases", "confidence", "source", "memory_kind", "power", "notes", "peaks"}
_ROW |= {"measured_of", "levels", "links"}
_FAMILY = _SHARED | {"latency", "l2_bandwidth"}
_LIMITS = frozenset(Limits.__dataclass_fields__) | {"source"}
_OVERHEADS = frozenset(Overheads.__dataclass_fields__)
_LEVELS = frozenset({"registers", "shared", "l2", "llc", "dram"})
_LEVEL = frozenset({"capacity", "bandwidth", "latency"})
_LATENCY = frozenset({"source", "registers", "shared", "l2", "llc", "dram"})


def check(row: Table, family: Table) -> None:
    """Raises ValueError for a key that nothing reads, or a value of the wrong kind."""
    for what, table, keys in _tables(row, family):
        if not isinstance(table, Mapping):
            raise ValueError(f"{what} is no table")
        unread = sorted(set(table) - keys) if keys is not None else []
        if unread:
            raise ValueError(f"{what} has {unread[0]!r}, which is no key of a machine file")
    for table in (row, family):
        for key in _TEXTS:
            if not isinstance(table.get(key, ""), str):
                raise ValueError(f"{key} is no text")
    for key in ("aliases", "notes"):
        held = row.get(key, [])
        if not isinstance(held, list) or not all(isinstance(each, str) for each in held):
            raise ValueError(f"{key} is no list of texts")
    if not words(row["name"]):
        raise ValueError(f"the name {row['name']!r} has no word that tells it from others")
    if row.get("measured_of") == row["name"]:
        raise ValueError("measured_of is its own name: --on could not tell it from the datasheet's")
    if row.get("confidence", "medium") not in ("high", "medium", "low"):
        raise ValueError("confidence is none of high, medium, low")
    if row.get("vendor", family.get("vendor")) == "NVIDIA":
        compute = row.get("compute", family.get("compute", ""))
        if not re.fullmatch(r"[0-9]+\.[0-9]", compute):
            raise ValueError(f"compute is {compute!r}, no compute capability such as '9.0'")
    if row.get("kind", family.get("kind", "gpu")) not in ("gpu", "cpu"):
        raise ValueError("kind is none of gpu, cpu")


def _tables(row: Table, family: Table) -> Iterator[tuple[str, Any, frozenset[str] | None]]:
    """Each table with the keys it may have; None: any."""
    yield "the row", row, _ROW
    yield "[family]", family, _FAMILY
    for name, table in (("family", family), ("machine", row)):
        yield f"[{name}.limits]", table.get("limits", {}), _LIMITS
        yield f"[{name}.overheads]", table.get("overheads", {}), _OVERHEADS
        yield f"[{name}.tuning]", table.get("tuning", {}), None
    yield "[family.latency]", family.get("latency", {}), _LATENCY
    yield "[machine.peaks]", row.get("peaks", {}), None
    yield "[machine.links]", row.get("links", {}), None
    levels = row.get("levels", {})
    yield "[machine.levels]", levels, _LEVELS
    for name, level in levels.items() if isinstance(levels, Mapping) else ():
        yield f"[machine.levels.{name}]", level, _LEVEL

"""A machine made of what was measured, on top of what the catalog says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ridgepole.machine.model import Figure, Machine, MemoryLevel, Unit
from ridgepole.machine.validate import OVERHEAD

SUFFIX = " measured"


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures that were measured, by the names of Machine's own fields; what is not here was not measured."""

    peaks: Mapping[tuple[Unit, str], Figure] = field(default_factory=dict)
    levels: Mapping[str, MemoryLevel] = field(default_factory=dict)
    limits: Mapping[str, Figure] = field(default_factory=dict)
    overheads: Mapping[str, Figure] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def build(base: Machine, found: Measured) -> Machine:
    """`base` with the measured figures in place of its own; the rest keeps its own source.

    Its name is the base's with " measured" behind it, so that neither is ever taken for the other. An overhead that
    none can have (a gap of 0 s between two records) is left as the base has it, and a note says so.
    Raises ValueError where `base` is itself a measurement: what it kept would pass for measured today.
    """
    if base.measured_of:
        raise ValueError(f"{base.name} is a measurement: build on {base.measured_of}")
    odd = {name: figure for name, figure in found.overheads.items() if not _plausible(figure)}
    overheads = {name: figure for name, figure in found.overheads.items() if name not in odd}
    refused = tuple(f"{name} came out at {f.value:.3g} {f.unit}: not believed, not kept" for name, f in odd.items())
    levels = {level.name: level for level in base.memory}
    for name, level in found.levels.items():
        before = levels.get(name, level)
        levels[name] = MemoryLevel(
            name,
            before.scope,
            level.capacity or before.capacity,
            level.bandwidth or before.bandwidth,
            level.latency or before.latency,
        )
    order = [level.name for level in base.memory]
    return replace(
        base,
        name=base.name + SUFFIX,
        aliases=tuple(f"{alias}-measured" for alias in base.aliases if " " not in alias),
        peaks=MappingProxyType({**base.peaks, **found.peaks}),
        memory=tuple(sorted(levels.values(), key=lambda level: _place(level.name, order))),
        limits=replace(base.limits, **found.limits),
        overheads=replace(base.overheads, **overheads),
        confidence="high",
        notes=(*base.notes, *found.notes, *refused),
        measured_of=base.name,
    )


def _place(name: str, order: list[str]) -> int:
    """Nearest level first, as in the base; one that the base lacks goes before the device memory."""
    return order.index(name) if name in order else len(order) - 1


def _plausible(figure: Figure) -> bool:
    low, high = OVERHEAD if figure.unit == "s" else (1.0, float("inf"))
    return low <= figure.value <= high


_DAY = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")


def when(machine: Machine) -> str:
    """The day of its last measured figure, "2026-12-01"; "" where none names a day."""
    days = (
        day
        for figure in _figures(machine)
        if figure.source.kind == "measured"
        for day in _DAY.findall(figure.source.detail)
    )
    return max(days, default="")


def _figures(machine: Machine) -> Iterator[Figure]:
    yield from machine.peaks.values()
    for level in machine.memory:
        yield from (figure for figure in (level.capacity, level.bandwidth, level.latency) if figure is not None)
    yield from (getattr(machine.overheads, name) for name in machine.overheads.__dataclass_fields__)

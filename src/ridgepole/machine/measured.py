"""A machine made of what was measured, on top of what the catalog says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ridgepole.machine.model import Figure, Machine, MemoryLevel, Unit

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

    Its name is the base's with " measured" behind it, so that neither is ever taken for the other.
    """
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
        overheads=replace(base.overheads, **found.overheads),
        confidence="high",
        notes=(*base.notes, *found.notes),
        measured_of=base.name,
    )


def _place(name: str, order: list[str]) -> int:
    """Nearest level first, as in the base; one that the base lacks goes before the device memory."""
    return order.index(name) if name in order else len(order) - 1

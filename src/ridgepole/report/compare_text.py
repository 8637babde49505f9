"""Two machines side by side: what moving to the second changes for each kind of work, then every figure of both."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import floor, log10
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ridgepole import units
from ridgepole.machine.model import Figure, Machine, Source
from ridgepole.report import machine_text, table

MARKS: Mapping[str, str] = {"datasheet": "d", "measured": "m", "derived": "~", "assumed": "?"}
NAMES_WIDTH = 12
"""Columns that the names of figures and machines have at least; narrower, they fold."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure of both machines, None where one lacks it. `ratio`: second over first, where both have it."""

    name: str
    first: Figure | None
    second: Figure | None

    @property
    def ratio(self) -> float | None:
        if self.first is None or self.second is None or not self.first.value:
            return None
        return self.second.value / self.first.value


def pairs(first: Machine, second: Machine) -> tuple[Pair, ...]:
    """Every figure that either has: bandwidth, peaks and ridge points, then levels, limits and overheads."""
    mine, other = dict(_figures(first)), dict(_figures(second))
    found = (Pair(name, mine.get(name), other.get(name)) for name in {**mine, **other})
    return tuple(sorted(found, key=lambda pair: _place(pair.name)))


def _place(name: str) -> int:
    """Where the kind of figure stands. Sorting by it keeps the order within each kind."""
    if name == "dram bandwidth":
        return 0
    levels = ("registers", "shared", "l2", "llc", "dram")
    if name.split()[-1] in ("bandwidth", "latency") or " capacity" in name:
        return 3 + levels.index(name.split()[0])
    return {"peak": 1, "ridge": 2}.get(name.split()[0], 3 + len(levels))


def _figures(machine: Machine) -> Iterator[tuple[str, Figure]]:
    """What is compared of a machine. Constants of the kernel models say nothing of the machine by themselves."""
    for name, figure in machine_text.figures(machine):
        # A number of SMs that is not known is written as one, assumed.
        if not name.startswith("tuning ") and not (name == "sms" and figure.source.kind == "assumed"):
            yield name, figure
    for (unit, dtype), peak in machine.peaks.items():
        source = Source("derived", f"peak {unit} {dtype} / dram bandwidth")
        yield f"ridge {unit} {dtype}", Figure(peak.value / machine.bandwidth, "FLOP/B", source)


def verdict(first: Machine, second: Machine) -> str:
    """What work gains on the second, by what limits it; of a measurement, what it reached of the datasheet."""
    if second.measured_of == first.name:
        return _reached(second, first)
    if first.measured_of == second.name:
        return _reached(first, second)
    known = {pair.name: pair for pair in pairs(first, second)}
    said = [_gain("memory-bound work", known["dram bandwidth"].ratio)]
    halves = [_half(machine) for machine in (first, second)]
    both = [machine.peaks[half] for machine, half in zip((first, second), halves, strict=True) if half is not None]
    if len(both) == 2:
        name = "bf16" if {half[1] for half in halves if half is not None} == {"bfloat16"} else "16-bit"
        said.append(_gain(f"{name} products", both[1].value / both[0].value))
    if (plain := known.get("peak vector float32")) is not None:
        said.append(_gain("fp32 work", plain.ratio))
    said.append(_launching(first, second))
    text = f"On {second.name}, against {first.name}: {', '.join(each for each in said if each)}."
    return f"{text}{_unlike(first, second)}"


def _half(machine: Machine) -> Any:
    """The 16-bit peak of the matrix units, by its key; None without."""
    return next((key for key in (("tensor", "bfloat16"), ("tensor", "float16")) if key in machine.peaks), None)


def _launching(first: Machine, second: Machine) -> str:
    assumed = [machine.name for machine in (first, second) if "assumed" in _kinds_of_issue(machine)]
    if assumed:
        whose = " and ".join(dict.fromkeys(assumed))
        return f"launch-bound work not known (what {whose} take{'s' if len(assumed) == 1 else ''} to launch is assumed)"
    mine, other = (m.overheads.dispatch.value + m.overheads.launch.value for m in (first, second))
    return _gain("launch-bound work", mine / other if other else None)


def _kinds_of_issue(machine: Machine) -> set[str]:
    return {machine.overheads.dispatch.source.kind, machine.overheads.launch.source.kind}


def _reached(measured: Machine, datasheet: Machine) -> str:
    """Shares of the datasheet's figures, of those that were measured."""
    said = []
    for pair in pairs(datasheet, measured):
        if pair.second is None or pair.second.source.kind != "measured" or pair.first == pair.second:
            continue
        if pair.ratio is not None and (pair.name == "dram bandwidth" or pair.name.startswith("peak ")):
            said.append(f"{units.percent(pair.ratio)} of its {pair.name.removeprefix('dram ')}")
    if not said:
        return f"{measured.name} has no rate measured: they are those of {datasheet.name}."
    return f"{measured.name} reached, of {datasheet.name} by its datasheet: {', '.join(said)}."


def _unlike(first: Machine, second: Machine) -> str:
    """That a datasheet's bandwidth was divided by a measured one, where it was."""
    kinds = {machine.name: _bandwidth(machine).source.kind for machine in (first, second)}
    measured = [name for name, kind in kinds.items() if kind == "measured"]
    if len(measured) != 1 or len(kinds) != 2:
        return ""
    sheet = next(name for name in kinds if name not in measured)
    return f" Figures of {measured[0]} are measured, those of {sheet} a datasheet's, of which kernels reach less."


def _bandwidth(machine: Machine) -> Figure:
    level = machine.level("dram")
    if level is None or level.bandwidth is None:
        raise ValueError(f"{machine.name} has no device-memory bandwidth")
    return level.bandwidth


def _gain(what: str, ratio: float | None) -> str:
    return "" if ratio is None else f"{what} {_ratio(ratio)}"


def render(first: Machine, second: Machine, *, width: int = 100, color: bool = False) -> str:
    """The verdict, and the table; behind each figure a mark of where it is from. Figures are never cut."""
    rows = [(pair.name, _shown(pair.first), _shown(pair.second), _ratio(pair.ratio)) for pair in pairs(first, second)]
    longest = [max(len(row[column]) for row in rows) for column in range(4)]
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("figure", overflow="fold", min_width=NAMES_WIDTH)
    for column, name in ((1, first.name), (2, second.name), (3, "ratio")):
        head = "\n".join(textwrap.wrap(name, max(longest[column], NAMES_WIDTH)))
        shown.add_column(head, justify="right", no_wrap=True, min_width=longest[column])
    for row in rows:
        shown.add_row(row[0], *row[1:3], Text(row[3], style="dim" if row[3] == "1.00x" else ""))
    least = NAMES_WIDTH + sum(max(each, NAMES_WIDTH) for each in longest[1:]) + 3
    legend = "d datasheet · m measured · ~ derived · ? assumed; ratio: second over first"
    parts: list[Any] = [Text(verdict(first, second), style="bold"), Text(""), shown, Text(legend, style="dim")]
    return table.render(parts, width=max(width, least), color=color)


def _shown(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    said = f"{units.number(figure.value)} FLOP/B" if figure.unit == "FLOP/B" else machine_text.value(figure)
    return f"{said} {MARKS[figure.source.kind]}"


def _ratio(ratio: float | None) -> str:
    """Two digits behind the point, or two that tell where those would be 0.0."""
    if ratio is None:
        return ""
    if ratio >= 100:
        return f"{ratio:,.0f}x"
    if ratio >= 0.1 or ratio <= 0:
        return f"{ratio:.2f}x"
    return f"{ratio:.{1 - floor(log10(ratio))}f}x"


def document(first: Machine, second: Machine) -> dict[str, Any]:
    """Both machines as `machine show --json` gives them, and the ratio of each figure that both have."""
    return {
        "schema": 1,
        "verdict": verdict(first, second),
        "machines": [machine_text.machine_document(first), machine_text.machine_document(second)],
        "ratios": {pair.name: pair.ratio for pair in pairs(first, second) if pair.ratio is not None},
    }

"""Two machines side by side: what moving to the second changes for each kind of work, then every figure of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from ridgepole import units
from ridgepole.machine.model import Figure, Machine
from ridgepole.report import machine_text, table


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
    """Every figure that either has, the first's order first."""
    mine, other = dict(machine_text.figures(first)), dict(machine_text.figures(second))
    return tuple(Pair(name, mine.get(name), other.get(name)) for name in {**mine, **other})


def verdict(first: Machine, second: Machine) -> str:
    """What work gains on the second, by what limits it."""
    known = {pair.name: pair.ratio for pair in pairs(first, second)}
    said = [f"memory-bound work {second.bandwidth / first.bandwidth:.2f}x"]
    for name, key in (("bf16 products", "peak tensor bfloat16"), ("fp32 work", "peak vector float32")):
        ratio = known.get(key)
        if ratio is not None:
            said.append(f"{name} {ratio:.2f}x")
    mine, other = (m.overheads.dispatch.value + m.overheads.launch.value for m in (first, second))
    if other > 0:
        said.append(f"launch-bound work {mine / other:.2f}x")
    return f"On {second.name}, against {first.name}: " + ", ".join(said) + "."


def render(first: Machine, second: Machine, *, width: int = 100, color: bool = False) -> str:
    """The verdict, and the table; behind each figure a mark of where it is from."""
    rows = [
        [Text(pair.name), Text(_shown(pair.first)), Text(_shown(pair.second)), Text(_ratio(pair.ratio))]
        for pair in pairs(first, second)
    ]
    for name, one, other in _ridges(first, second):
        ratio = other / one if one and other else None
        rows.append([Text(name), Text(_ridge(one)), Text(_ridge(other)), Text(_ratio(ratio))])
    names = ["figure", first.name, second.name, "ratio"]
    legend = Text("d datasheet · m measured · ~ derived · ? assumed; ratio: second over first", style="dim")
    parts: list[Any] = [
        Text(verdict(first, second), style="bold"),
        Text(""),
        table.fitted(names, rows, left={"figure"}),
        legend,
    ]
    return table.render(parts, width=width, color=color)


MARKS: Mapping[str, str] = {"datasheet": "d", "measured": "m", "derived": "~", "assumed": "?"}


def _shown(figure: Figure | None) -> str:
    return "-" if figure is None else f"{machine_text.value(figure)} {MARKS[figure.source.kind]}"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}x" if ratio < 100 else f"{ratio:,.0f}x"


def _ridge(value: float | None) -> str:
    return "-" if value is None else f"{units.number(value)} FLOP/B"


def _ridges(first: Machine, second: Machine) -> Iterator[tuple[str, float | None, float | None]]:
    for unit, dtype in {**first.peaks, **second.peaks}:
        both = (m.peaks[unit, dtype].value / m.bandwidth if (unit, dtype) in m.peaks else None for m in (first, second))
        yield f"ridge {unit} {dtype}", next(both), next(both)


def document(first: Machine, second: Machine) -> dict[str, Any]:
    """Both machines as `machine show --json` gives them, and the ratio of each figure that both have."""
    return {
        "schema": 1,
        "verdict": verdict(first, second),
        "machines": [machine_text.machine_document(first), machine_text.machine_document(second)],
        "ratios": {pair.name: pair.ratio for pair in pairs(first, second) if pair.ratio is not None},
    }

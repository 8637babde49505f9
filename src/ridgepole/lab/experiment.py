"""What an experiment is: a question, rows that answer it, what they mean, and a picture of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ridgepole.registry import Registry

if TYPE_CHECKING:
    from ridgepole.lab.bench import Bench

Value = float | int | str | bool | None
Row = Mapping[str, Value]
"""One measurement: plain values by column key, SI units. None: not known, or not run; "note" says why."""

ColumnUnit = Literal["text", "count", "number", "share", "s", "B", "B/s", "FLOP/s", "FLOP/B", "Hz", "cycles", "ratio"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table: the key of its values, its heading and their unit.

    `bar`: drawn as a bar as well. `extra`: the first to go where a terminal is narrow.
    """

    key: str
    heading: str
    unit: ColumnUnit
    bar: bool = False
    extra: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one kind. `x` may be words, for bars. `style`: how they are drawn; `names`: written at the points."""

    label: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    style: Literal["line", "points", "steps", "bars"] = "line"
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Axis:
    """`unit` as in Column; `log`: of base `log`, 0 for linear."""

    label: str
    unit: ColumnUnit
    log: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """What to draw, as data. `marks`: named vertical lines by x."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """A finished or interrupted experiment. `stopped`: why it ended early, "" where it did not."""

    experiment: str
    question: str
    machine: Mapping[str, Value]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    meaning: str
    conditions: Mapping[str, Value | Mapping[str, str]]
    picture: Picture | None = None
    stopped: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """One question to a machine.

    `rows(bench)` yields each row as it is measured, so that what is known survives an interruption.
    `meaning(rows, bench)` and `picture(rows, bench)` say and draw what the rows show, of however many there are
    (at least one). `refuse(bench)`: why it has no meaning on that device, "" where it has.
    """

    name: str
    question: str
    columns: tuple[Column, ...]
    rows: Callable[[Bench], Iterator[Row]]
    meaning: Callable[[Sequence[Row], Bench], str]
    picture: Callable[[Sequence[Row], Bench], Picture | None] = lambda rows, bench: None
    refuse: Callable[[Bench], str] = lambda bench: ""
    notes: tuple[str, ...] = field(default=())


experiments: Registry[Experiment] = Registry("experiment", "ridgepole.lab.experiments")


def register(experiment: Experiment) -> Experiment:
    """Add an experiment under its own name."""
    return experiments(experiment.name)(experiment)

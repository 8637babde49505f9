"""An experiment for people: what it means first, then its table with a bar, then how it was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.text import Text

from ridgepole import units
from ridgepole.lab.experiment import Column, Experiment, Result, Value
from ridgepole.report import table

BAR, LEAST_BAR = 24, 4
"""Columns of a full bar, where there is room and where there is none."""
GAP = 2
"""Columns between two of the table."""
NOTE = "note"
"""The key of the column that says what its row cannot."""
EIGHTHS = " ▏▎▍▌▋▊▉█"


def render(result: Result, *, width: int = 100, color: bool = False) -> str:
    """The whole report, for a terminal of `width` columns."""
    parts: list[Any] = [
        Text(f"{result.experiment}: {result.question}", style="bold"),
        Text(f"{result.machine['name']} · {result.machine['backend']} · {result.conditions['driver']}", style="dim"),
        Text(""),
        Text(result.meaning),
    ]
    if result.rows:
        parts += [Text(""), *_table(result, width)]
    if result.stopped:
        parts.append(Text(f"stopped: {result.stopped}; what was measured until then is above", style="yellow"))
    parts += [Text(f"note: {line}", style="dim") for line in result.notes]
    parts.append(Text(_conditions(result.conditions), style="dim"))
    return table.render(parts, width=width, color=color)


def _table(result: Result, width: int) -> list[Any]:
    """The table, and under it the notes that had no room in it, and how many columns had none."""
    shown = [column for column in result.columns if any(row.get(column.key) not in (None, "") for row in result.rows)]
    cells = {column.key: [cell(row.get(column.key), column) for row in result.rows] for column in shown}
    below: list[Any] = []
    noted = [column for column in shown if column.key == NOTE]
    shown = [column for column in shown if column.key != NOTE]
    if noted and _wide(shown, cells) + max(map(len, cells[NOTE])) >= width:
        numbers = {text: i + 1 for i, text in enumerate(dict.fromkeys(filter(None, cells[NOTE])))}
        cells[NOTE] = [f"[{numbers[text]}]" if text else "" for text in cells[NOTE]]
        below = [Text(f"[{number}] {text}", style="dim") for text, number in numbers.items()]
    room = width - (max(map(len, cells[NOTE])) + GAP if noted else 0)
    fitting = _fitting(shown, cells, room)
    if len(fitting) < len(shown):
        left_out = ", ".join(column.heading for column in shown if column not in fitting)
        below.append(Text(f"no room for: {left_out}; a wider terminal, -o and --json have them", style="dim"))
    bars = sum(column.bar for column in fitting)
    length = LEAST_BAR + max(0, min(BAR - LEAST_BAR, (room - _wide(fitting, cells)) // max(1, bars)))
    names, columns = [], []
    for column in [*fitting, *noted]:
        names.append("" if column.key == NOTE else column.heading)
        columns.append([Text(text) for text in cells[column.key]])
        if column.bar:
            names.append("")
            most = _most(result, column)
            columns.append([Text(bar(row.get(column.key), most, length)) for row in result.rows])
    left = {c.heading for c in fitting if c.unit == "text"} | {""}
    return [table.fitted(names, list(zip(*columns, strict=True)), left=left), *below]


def _wide(columns: Sequence[Column], cells: Mapping[str, Sequence[str]]) -> int:
    """Columns of the terminal that these take, with the shortest bars."""
    texts = sum(GAP + max(map(len, (*cells[column.key], column.heading))) for column in columns)
    return texts + sum((LEAST_BAR + GAP) for column in columns if column.bar)


def _fitting(columns: Sequence[Column], cells: Mapping[str, Sequence[str]], room: int) -> list[Column]:
    """What fits in `room`: those marked `extra` give way first, the last before the first, then the last of the rest.

    A cut figure would be another figure, so a column is shown whole or not at all.
    """
    kept = list(columns)
    giving = [column for column in reversed(columns) if column.extra]
    giving += [column for column in reversed(columns[1:]) if not column.extra and not column.bar]
    for column in giving:
        if _wide(kept, cells) <= room:
            break
        kept.remove(column)
    return kept


def _most(result: Result, column: Column) -> float:
    return max((float(v) for row in result.rows if isinstance(v := row.get(column.key), int | float)), default=0.0)


def bar(value: Value, most: float, length: int = BAR) -> str:
    """A bar of at most `length` columns, in eighths of one."""
    if not isinstance(value, int | float) or most <= 0:
        return ""
    eighths = round(float(value) / most * length * 8)
    return EIGHTHS[8] * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")


def cell(value: Value, column: Column) -> str:
    """A value as its column's unit is written; "-" for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    write: Callable[[float], str] = {
        "s": units.seconds,
        "B": units.nbytes,
        "B/s": units.rate_bytes,
        "FLOP/s": units.rate_flops,
        "Hz": units.hertz,
        "share": units.percent,
        "FLOP/B": lambda v: f"{v:.3g}",
        "ratio": lambda v: f"{v:.2f}x",
        "cycles": lambda v: f"{v:,.0f}",
        "count": lambda v: f"{v:,.0f}",
    }.get(column.unit, lambda v: f"{v:.4g}")
    return write(value)


def _conditions(conditions: Mapping[str, Any]) -> str:
    versions = conditions.get("versions", {})
    said = [str(conditions["date"]), f"clocks {conditions['clocks']}"]
    said += [f"{name} {number}" for name, number in versions.items() if name in ("torch", "ridgepole")]
    if conditions.get("load"):
        said.append(str(conditions["load"]))
    return " · ".join(said)


def document(result: Result) -> dict[str, Any]:
    """The result as plain JSON values."""
    return {
        "schema": 1,
        "experiment": result.experiment,
        "question": result.question,
        "machine": dict(result.machine),
        "columns": [{"key": c.key, "heading": c.heading, "unit": c.unit} for c in result.columns],
        "rows": [dict(row) for row in result.rows],
        "meaning": result.meaning,
        "conditions": dict(result.conditions),
        "stopped": result.stopped,
        "notes": list(result.notes),
    }


def render_list(experiments: Sequence[Experiment], *, width: int = 100, color: bool = False) -> str:
    """Every experiment with its question."""
    rows = [[Text(e.name), Text(e.question)] for e in experiments]
    return table.render([table.fitted(["experiment", "question"], rows, left={"experiment", "question"})],
                        width=width, color=color)  # fmt: skip


def render_markdown(result: Result) -> str:
    """Its table in Markdown, what it means above it, the conditions below."""
    shown = [column for column in result.columns if any(row.get(column.key) not in (None, "") for row in result.rows)]
    lines = [f"### {result.experiment}: {result.question}", "", result.meaning, ""]
    if result.rows:
        lines.append("| " + " | ".join(column.heading or " " for column in shown) + " |")
        lines.append("|" + "|".join("---" if column.unit == "text" else "---:" for column in shown) + "|")
        for row in result.rows:
            lines.append("| " + " | ".join(cell(row.get(c.key), c).replace("|", "\\|") for c in shown) + " |")
        lines.append("")
    if result.stopped:
        lines += [f"Stopped: {result.stopped}.", ""]
    lines.append(f"{result.machine['name']}, {result.conditions['driver']}; {_conditions(result.conditions)}")
    return "\n".join(lines) + "\n"

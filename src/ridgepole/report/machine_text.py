"""Machines for people: the catalog as a table, one machine with every figure's source, the memory ladder."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ridgepole import units
from ridgepole.machine import measured
from ridgepole.machine.doctor import Check
from ridgepole.machine.model import Figure, Machine


def _console(width: int, color: bool) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return (
        Console(file=out, width=width, force_terminal=color, no_color=not color, highlight=False, markup=False),
        out,
    )


def _trimmed(out: io.StringIO) -> str:
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def render_list(machines: Iterable[Machine], *, width: int = 100, color: bool = False) -> str:
    """One row a machine: memory, bandwidth, peaks, ridge point, SMs, confidence. Where it is narrow the name folds."""
    console, out = _console(width, color)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("machine", overflow="fold", min_width=8)
    rows = [_listed(machine) for machine in machines]
    for index, name in enumerate(COLUMNS):
        # Figures stay whole: a cut one is another figure.
        longest = max((len(line) for line in (*name.split("\n"), *(row[index + 1] for row in rows))), default=0)
        justify = "left" if name == "trust" else "right"
        table.add_column(name, justify=justify, no_wrap=True, min_width=longest)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    console.print(table)
    return _trimmed(out)


COLUMNS = ("memory\nGB", "bandwidth\nGB/s", "16-bit\nTFLOP/s", "fp32\nTFLOP/s", "ridge\nFLOP/B", "SMs", "trust")
"""After the name. 16-bit is the matrix units' peak where there are any, and the ridge is its; the last is how far a
datasheet's row is to be trusted, or that it was measured."""


def _listed(machine: Machine) -> tuple[str, ...]:
    half = machine.peak("tensor", "bfloat16") or machine.peak("tensor", "float16") or machine.peak("vector", "float16")
    plain = machine.peak("vector", "float32")
    dram = machine.level("dram")
    capacity = dram.capacity if dram is not None else None
    sms = machine.limits.sms
    return (
        machine.name,
        units.number(capacity.value / 1e9) if capacity else "-",
        units.number(machine.bandwidth / 1e9),
        units.number(half.value / 1e12) if half else "-",
        units.number(plain.value / 1e12) if plain else "-",
        units.number(half.value / machine.bandwidth) if half else "-",
        "-" if sms.source.kind == "assumed" else f"{sms.value:.0f}",
        "measured" if machine.measured_of else machine.confidence,
    )


def render_machine(machine: Machine, *, width: int = 100, color: bool = False) -> str:
    """Every figure of a machine with its source, the memory ladder and the ridge points."""
    console, out = _console(width, color)
    said = " ".join(word for word in (machine.vendor, machine.architecture, machine.compute) if word)
    console.print(Text(" · ".join(each for each in (machine.name, said, _standing(machine)) if each), style="bold"))
    if machine.aliases:
        console.print(Text("also: " + ", ".join(machine.aliases), style="dim"))
    # The verdict first: peaks with their ridge points and the ladder; then every figure, its source by number.
    console.print()
    console.print(_peaks(machine))
    console.print()
    console.print(_ladder(machine))
    console.print()
    numbers: dict[str, int] = {}
    listed = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    listed.add_column("figure", no_wrap=True)
    listed.add_column("value", justify="right", no_wrap=True)
    listed.add_column("source", overflow="fold")
    for name, figure in figures(machine):
        number = numbers.setdefault(str(figure.source), len(numbers) + 1)
        listed.add_row(name, value(figure), Text(f"{figure.source.kind} [{number}]", style="dim"))
    console.print(listed)
    console.print()
    sources = Table.grid(padding=(0, 1, 0, 0))
    for source, number in numbers.items():
        sources.add_row(Text(f"[{number}]", style="dim"), Text(source, style="dim"))
    console.print(sources)
    for note in machine.notes:
        console.print(Text(f"note: {note}", style="dim"))
    return _trimmed(out)


def _standing(machine: Machine) -> str:
    if not machine.measured_of:
        return f"{machine.confidence} confidence"
    day = measured.when(machine)
    return f"measured on {machine.measured_of}{f', {day}' if day else ''}"


def _peaks(machine: Machine) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("unit", "dtype", "peak", "ridge"):
        table.add_column(name, justify="left" if name in ("unit", "dtype") else "right", no_wrap=True)
    for (unit, dtype), figure in machine.peaks.items():
        ridge = f"{units.number(figure.value / machine.bandwidth)} FLOP/B"
        table.add_row(unit, dtype, units.rate_flops(figure.value), ridge)
    return table


def figures(machine: Machine) -> Iterable[tuple[str, Figure]]:
    """Every figure of a machine by the name it is shown under."""
    for (unit, dtype), figure in machine.peaks.items():
        yield f"peak {unit} {dtype}", figure
    for level in machine.memory:
        for what, found in (("capacity", level.capacity), ("bandwidth", level.bandwidth), ("latency", level.latency)):
            if found is not None:
                yield f"{level.name} {what}" + (" per SM" if level.scope == "sm" and what == "capacity" else ""), found
    for group in (machine.limits, machine.overheads):
        for name in group.__dataclass_fields__:
            found = getattr(group, name)
            if found is not None:
                yield name.replace("_", " "), found
    yield from (("link" if name == "link" else f"link {name}", figure) for name, figure in machine.links.items())
    yield from ((f"tuning {name}", figure) for name, figure in machine.tuning.items())
    if machine.power is not None:
        yield "power", machine.power


def value(figure: Figure) -> str:
    """A figure as its unit is written."""
    say = {
        "s": units.seconds,
        "B": units.nbytes,
        "B/s": units.rate_bytes,
        "FLOP/s": units.rate_flops,
        "Hz": units.hertz,
    }.get(figure.unit)
    if say is not None:
        return say(figure.value)
    if figure.unit == "1":
        return f"{figure.value:,.6g}"
    return f"{figure.value:,.6g} {figure.unit}"


def _ladder(machine: Machine) -> Table:
    """The levels, nearest first; the last column is how many of one instance the device memory would fill."""
    table = Table(title="memory ladder", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, title_justify="left")
    for name in ("level", "capacity", "whole device", "bandwidth", "latency", "memory holds"):
        table.add_column(name, justify="left" if name == "level" else "right", no_wrap=True)
    dram = machine.level("dram")
    memory = dram.capacity.value if dram is not None and dram.capacity is not None else None
    for level in machine.memory:
        capacity = level.capacity.value if level.capacity else None
        whole = capacity * machine.limits.sms.value if capacity and level.scope == "sm" else capacity
        table.add_row(
            f"{level.name} ({machine.memory_kind})" if level is dram and machine.memory_kind else level.name,
            units.nbytes(capacity) + ("/SM" if level.scope == "sm" else "") if capacity else "-",
            units.nbytes(whole) if whole else "-",
            units.rate_bytes(level.bandwidth.value) if level.bandwidth else "-",
            units.seconds(level.latency.value) if level.latency else "-",
            f"{memory / capacity:,.0f}x" if memory and capacity else "-",
        )
    return table


def render_doctor(checks: Iterable[Check], *, width: int = 100, color: bool = False) -> str:
    """What works on this machine, and why not."""
    console, out = _console(width, color)
    table = Table.grid(padding=(0, 2))
    for check in checks:
        mark, style = {True: ("PASS", "green"), False: ("FAIL", "red"), None: ("n/a", "dim")}[check.ok]
        table.add_row(Text(mark, style=style), check.name, Text(check.detail), Text(check.fix, style="dim"))
    console.print(table)
    return _trimmed(out)


def machine_document(machine: Machine) -> dict[str, Any]:
    """A machine as plain JSON values, each figure with unit and source."""
    known: Mapping[str, Figure] = dict(figures(machine))
    return {
        "schema": 1,
        "name": machine.name,
        "kind": machine.kind,
        "vendor": machine.vendor,
        "architecture": machine.architecture,
        "compute": machine.compute,
        "aliases": list(machine.aliases),
        "confidence": machine.confidence,
        "figures": {n: {"value": f.value, "unit": f.unit, "source": str(f.source)} for n, f in known.items()},
        "memory_kind": machine.memory_kind,
        "measured_of": machine.measured_of,
        "ridge": {f"{u} {d}": f.value / machine.bandwidth for (u, d), f in machine.peaks.items()},
        "notes": list(machine.notes),
    }

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
    """One row a machine: bandwidth, peaks, ridge points, confidence."""
    console, out = _console(width, color)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("machine", "memory", "bandwidth", "16-bit", "fp32", "ridge", "SMs", "trust"):
        table.add_column(name, justify="left" if name in ("machine", "trust") else "right", no_wrap=True)
    for machine in machines:
        half = (
            machine.peak("tensor", "bfloat16") or machine.peak("tensor", "float16") or machine.peak("vector", "float16")
        )
        plain = machine.peak("vector", "float32")
        dram = machine.level("dram")
        capacity = dram.capacity if dram is not None else None
        ridge = f"{half.value / machine.bandwidth:.0f}" if half else "-"
        table.add_row(
            machine.name,
            units.nbytes(capacity.value) if capacity else "-",
            units.rate_bytes(machine.bandwidth),
            units.rate_flops(half.value) if half else "-",
            units.rate_flops(plain.value) if plain else "-",
            ridge,
            f"{machine.limits.sms.value:.0f}",
            machine.confidence,
        )
    console.print(table)
    return _trimmed(out)


def render_machine(machine: Machine, *, width: int = 100, color: bool = False) -> str:
    """Every figure of a machine with its source, the memory ladder and the ridge points."""
    console, out = _console(width, color)
    console.print(
        Text(f"{machine.name} · {machine.vendor} {machine.architecture} {machine.compute}".strip(), style="bold")
    )
    if machine.aliases:
        console.print(Text("also: " + ", ".join(machine.aliases), style="dim"))
    # The verdict first: peaks with their ridge points and the ladder; then every figure, its source by number.
    console.print()
    console.print(_peaks(machine))
    console.print()
    console.print(_ladder(machine))
    console.print()
    numbers: dict[str, int] = {}
    figures = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    figures.add_column("figure", no_wrap=True)
    figures.add_column("value", justify="right", no_wrap=True)
    figures.add_column("source", overflow="fold")
    for name, figure in _figures(machine):
        number = numbers.setdefault(str(figure.source), len(numbers) + 1)
        figures.add_row(name, _value(figure), Text(f"{figure.source.kind} [{number}]", style="dim"))
    console.print(figures)
    console.print()
    sources = Table.grid(padding=(0, 1, 0, 0))
    for source, number in numbers.items():
        sources.add_row(Text(f"[{number}]", style="dim"), Text(source, style="dim"))
    console.print(sources)
    for note in machine.notes:
        console.print(Text(f"note: {note}", style="dim"))
    return _trimmed(out)


def _peaks(machine: Machine) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("unit", "dtype", "peak", "ridge"):
        table.add_column(name, justify="left" if name in ("unit", "dtype") else "right", no_wrap=True)
    for (unit, dtype), figure in machine.peaks.items():
        ridge = f"{figure.value / machine.bandwidth:,.0f} FLOP/B"
        table.add_row(unit, dtype, units.rate_flops(figure.value), ridge)
    return table


def _figures(machine: Machine) -> Iterable[tuple[str, Figure]]:
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


def _value(figure: Figure) -> str:
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
    table = Table(title="memory ladder", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, title_justify="left")
    for name in ("level", "capacity", "whole device", "bandwidth", "latency"):
        table.add_column(name, justify="left" if name == "level" else "right", no_wrap=True)
    for level in machine.memory:
        capacity = level.capacity.value if level.capacity else None
        whole = capacity * machine.limits.sms.value if capacity and level.scope == "sm" else capacity
        table.add_row(
            level.name,
            units.nbytes(capacity) + ("/SM" if level.scope == "sm" else "") if capacity else "-",
            units.nbytes(whole) if whole else "-",
            units.rate_bytes(level.bandwidth.value) if level.bandwidth else "-",
            units.seconds(level.latency.value) if level.latency else "-",
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
    figures: Mapping[str, Figure] = dict(_figures(machine))
    return {
        "schema": 1,
        "name": machine.name,
        "kind": machine.kind,
        "vendor": machine.vendor,
        "architecture": machine.architecture,
        "compute": machine.compute,
        "aliases": list(machine.aliases),
        "confidence": machine.confidence,
        "figures": {n: {"value": f.value, "unit": f.unit, "source": str(f.source)} for n, f in figures.items()},
        "ridge": {f"{u} {d}": f.value / machine.bandwidth for (u, d), f in machine.peaks.items()},
        "notes": list(machine.notes),
    }

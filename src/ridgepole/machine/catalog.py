"""The catalog: machines read from TOML, one file a family of GPUs, checked as they load.

A file has `[family]` tables that its `[[machine]]` rows share. A figure is a number in SI units, or a text such as
"3.35 TB/s", whose source is its table's `source`, or `{ value = …, source = "…" }`. A source is "kind: detail", kind
one of datasheet, measured, derived, assumed. `[machine.levels.NAME]` states the capacity, bandwidth and latency of a
memory level where no other key does, `[machine.links]` its links by name; `measured_of` names the machine that a file
of measured figures was measured on.
Users add machines as files of the same form in `$RIDGEPOLE_HOME/machines` (default `~/.config/ridgepole/machines`), or
name a file wherever a machine's name is asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

from ridgepole import dtypes, units
from ridgepole.errors import BadInput
from ridgepole.machine import match, measured, shape
from ridgepole.machine.model import Figure, Limits, Machine, MemoryLevel, Overheads, Source, SourceKind, Unit
from ridgepole.machine.validate import validate

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = Mapping[str, Any]

REGISTER_BYTES = 4
LADDER = ("registers", "shared", "l2", "llc", "dram")
"""Memory levels, nearest first."""
L2_BYTES_PER_CLOCK_AND_SM = 64
"""What one NVIDIA SM can take from L2 a clock: a bound, not a rate anything reaches."""


def load() -> Mapping[str, Machine]:
    """Every machine by name, ours and the user's own; a user's machine may replace ours.

    Raises BadInput for a user's file that does not load, naming it: left out in silence, its machine would be taken
    for another.
    """
    return _load(str(user_folder()))


@lru_cache(maxsize=4)
def _load(folder: str) -> Mapping[str, Machine]:
    shipped = sorted((Path(__file__).parent / "catalog").glob("*.toml"))
    machines = {machine.name: machine for path in shipped for machine in read(path)}
    own = _own(Path(folder))
    # "cpu-measured" is the user's CPU, not the one that was measured for the catalog.
    taken = {alias for machine in own for alias in machine.aliases}
    for name, machine in machines.items():
        if machine.measured_of and not taken.isdisjoint(machine.aliases):
            machines[name] = replace(machine, aliases=tuple(each for each in machine.aliases if each not in taken))
    machines.update((machine.name, machine) for machine in own)
    return MappingProxyType(machines)


def _own(folder: Path) -> list[Machine]:
    """The user's machines. Of two that share a name the last counts: measured ones are in the order they were made."""
    found = [(machine, path) for path in sorted(folder.glob("*.toml")) for machine in read(path)]

    def made(each: tuple[Machine, Path]) -> tuple[str, float]:
        machine, path = each
        if not machine.measured_of:
            return "", 0.0
        return measured.when(machine), path.stat().st_mtime if path.exists() else 0.0

    return [machine for machine, _ in sorted(found, key=made)]


def forget() -> None:
    """Read the files again when next asked: one was written."""
    _load.cache_clear()


def measured_here(name: str, sms: int | None = None) -> Machine | None:
    """The user's own measurement of the machine called `name` (with so many SMs, or threads of a CPU); None without.

    Of several the one made last: by the dates in its figures, and of one day by the file's.
    """
    own = [machine for machine in _own(user_folder()) if name and machine.measured_of == name]
    fitting = [machine for machine in own if sms is None or int(machine.limits.sms.value) == sms]
    return fitting[-1] if fitting else None


def datasheet(machine: Machine) -> Machine:
    """The machine that `machine` was measured on, as the catalog has it; itself where it is no measurement."""
    return load().get(machine.measured_of, machine)


def user_folder() -> Path:
    """Where the user's own machine files are."""
    if home := os.environ.get("RIDGEPOLE_HOME"):
        return Path(os.path.expanduser(home)) / "machines"
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(os.path.expanduser(config)) / "ridgepole" / "machines"


def find(name: str) -> Machine:
    """The machine called `name`, loosely but never wrongly; or the one machine of the file `name`.

    Raises BadInput with the nearest names where none or several fit.
    """
    if name.endswith(".toml"):
        found = read(Path(name))
        if len(found) != 1:
            raise BadInput(f"{name} holds {len(found)} machines: name a file with one")
        return found[0]
    return match.by_name(name, load())


def read(path: Path) -> tuple[Machine, ...]:
    """The machines of one file. Raises BadInput for what is not TOML, misses a figure or fails a range check."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        # A pipe or a device may never end.
        raise BadInput(f"machine file {path} cannot be read: it is not a regular file")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"machine file {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"machine file {path} is not TOML: {error}") from None
    rows = document.get("machine")
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"machine file {path} has no [[machine]] row")
    family = document.get("family", {})
    machines: list[Machine] = []
    for row in rows:
        said = ""
        try:
            shape.check(row, family)
            machine = _machine(row, family)
            said = next(iter(validate(machine)), "")
        except KeyError as error:
            said = f"misses {error}"
        except (TypeError, ValueError, AttributeError, OverflowError, BadInput) as error:
            said = str(error)
        if not said and any(machine.name == other.name for other in machines):
            said = "is there twice"
        if said:
            name = row.get("name", "a row without a name") if isinstance(row, Mapping) else "a row that is no table"
            raise BadInput(f"machine file {path}: {name}: {' '.join(said.split())}")
        machines.append(machine)
    return tuple(machines)


def _machine(row: Table, family: Table) -> Machine:
    source = str(row["source"])
    compute = str(row.get("compute", family.get("compute", "")))
    limits = _limits(row, family, source)
    return Machine(
        name=str(row["name"]),
        kind=cast('Literal["gpu", "cpu"]', row.get("kind", family.get("kind", "gpu"))),
        vendor=str(row.get("vendor", family.get("vendor", ""))),
        architecture=str(row.get("architecture", family.get("architecture", ""))),
        compute=compute,
        peaks=MappingProxyType({_peak_key(key): _figure(v, "FLOP/s", source) for key, v in row["peaks"].items()}),
        memory=_memory(row, family, limits, source),
        limits=limits,
        overheads=_overheads(row, family, source),
        links=MappingProxyType(
            {name: _figure(value, "B/s", source) for name, value in {**_link(row), **row.get("links", {})}.items()}
        ),
        power=_figure(row["power"], "W", source) if "power" in row else None,
        aliases=tuple(row.get("aliases", ())),
        confidence=row.get("confidence", "medium"),
        notes=tuple(row.get("notes", ())),
        memory_kind=str(row.get("memory_kind", "")),
        measured_of=str(row.get("measured_of", "")),
        tuning=MappingProxyType(
            {
                key: _figure(value, str(value.get("unit", "1")) if isinstance(value, Mapping) else "1", source)
                for key, value in {**family.get("tuning", {}), **row.get("tuning", {})}.items()
            }
        ),
    )


def _link(row: Table) -> Table:
    return {"link": row["link"]} if "link" in row else {}


def _peak_key(text: str) -> tuple[Unit, str]:
    unit, _, dtype = text.partition(" ")
    if unit not in ("tensor", "vector"):
        raise ValueError(f"peak {text!r} begins with neither tensor nor vector")
    if dtype != "tf32" and dtype not in ("float8", "float4"):
        dtype = dtypes.peak_key(dtypes.parse(dtype))
    return cast("Unit", unit), dtype


def _figure(value: Any, unit: str, source: str) -> Figure:
    if isinstance(value, Mapping):
        if unread := sorted(set(value) - {"value", "source", "unit"}):
            raise ValueError(f"{unread[0]!r} is none of value, unit, source")
        source = str(value.get("source", source))
        if value.get("unit", unit) != unit:
            raise ValueError(f"a figure in {value['unit']!r} must be in {unit!r}, without a prefix")
        value = value["value"]
    if isinstance(value, str) and unit != "1":
        value = units.parse_quantity(value, unit)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    return Figure(float(value), unit, _source(source))


def _source(text: str) -> Source:
    kind, _, detail = text.partition(":")
    if kind not in ("datasheet", "measured", "derived", "assumed"):
        raise ValueError(f"source {text[:60]!r} begins with none of datasheet:, measured:, derived:, assumed:")
    detail = detail.removeprefix(" ")
    return Source(cast(SourceKind, kind), detail if detail.strip() else "no measurement or document at hand")


def _limits(row: Table, family: Table, source: str) -> Limits:
    shared = family.get("limits", {})
    own = row.get("limits", {})
    shared_source, own_source = str(shared.get("source", source)), str(own.get("source", source))

    def one(name: str, unit: str = "1") -> Figure | None:
        if name in row:
            return _figure(row[name], unit, source)
        if name in own:
            return _figure(own[name], unit, own_source)
        return _figure(shared[name], unit, shared_source) if name in shared else None

    sms, warp = one("sms"), one("warp")
    if sms is None:
        sms = Figure(1.0, "1", Source("assumed", "number of SMs not known; geometry is not to be relied on"))
    if warp is None:
        raise KeyError("warp")
    return Limits(
        sms=sms,
        warp=warp,
        clock=one("clock", "Hz"),
        threads_per_block=one("threads_per_block"),
        threads_per_sm=one("threads_per_sm"),
        blocks_per_sm=one("blocks_per_sm"),
        registers_per_sm=one("registers_per_sm"),
        shared_per_sm=one("shared_per_sm", "B"),
        shared_per_block=one("shared_per_block", "B"),
    )


def _memory(row: Table, family: Table, limits: Limits, source: str) -> tuple[MemoryLevel, ...]:
    def capacity(name: str) -> Figure | None:
        return _figure(row[name], "B", source) if name in row else None

    def latency(name: str) -> Figure | None:
        table = family.get("latency", {})
        clock = limits.clock.value if limits.clock is not None else 0.0
        if name not in table or clock <= 0:
            return None
        cycles = _figure(table[name], "1", str(table.get("source", source)))
        kind: SourceKind = "assumed" if cycles.source.kind == "assumed" else "derived"
        return Figure(cycles.value / clock, "s", Source(kind, f"{cycles.value:g} cycles; {cycles.source}"))

    levels = []
    if limits.registers_per_sm is not None:
        held = limits.registers_per_sm
        size = Figure(
            held.value * REGISTER_BYTES, "B", Source("derived", f"{held.value:,.0f} registers of 4 B; {held.source}")
        )
        levels.append(MemoryLevel("registers", "sm", size, None, latency("registers")))
    if limits.shared_per_sm is not None:
        levels.append(MemoryLevel("shared", "sm", limits.shared_per_sm, None, latency("shared")))
    if "l2" in row:
        levels.append(
            MemoryLevel("l2", "device", capacity("l2"), _l2_bandwidth(row, family, limits, source), latency("l2"))
        )
    if "llc" in row:
        rate = _figure(row["llc_bandwidth"], "B/s", source) if "llc_bandwidth" in row else None
        levels.append(MemoryLevel("llc", "device", capacity("llc"), rate, latency("llc")))
    levels.append(
        MemoryLevel("dram", "device", capacity("memory"), _figure(row["bandwidth"], "B/s", source), latency("dram"))
    )
    return _stated(levels, row.get("levels", {}), source)


def _stated(levels: list[MemoryLevel], stated: Table, source: str) -> tuple[MemoryLevel, ...]:
    """`levels` with the figures of [machine.levels.NAME], which beat the family's, nearest level first."""
    known = {level.name: level for level in levels}
    for name, table in stated.items():
        level = known.get(name, MemoryLevel(name, "sm" if name in ("registers", "shared") else "device"))

        def one(what: str, unit: str, before: Figure | None, table: Table = table) -> Figure | None:
            return _figure(table[what], unit, source) if what in table else before

        known[name] = MemoryLevel(
            name,
            level.scope,
            one("capacity", "B", level.capacity),
            one("bandwidth", "B/s", level.bandwidth),
            one("latency", "s", level.latency),
        )
    return tuple(known[name] for name in LADDER if name in known)


def _l2_bandwidth(row: Table, family: Table, limits: Limits, source: str) -> Figure | None:
    if "l2_bandwidth" in row:
        return _figure(row["l2_bandwidth"], "B/s", source)
    if limits.clock is None:
        return None
    stated = family.get("l2_bandwidth")
    if stated is not None:
        each = _figure(stated["bytes_per_clock"], "B", str(stated["source"]))
        return Figure(each.value * limits.clock.value, "B/s", each.source)
    if family.get("vendor") != "NVIDIA":
        return None
    rate = L2_BYTES_PER_CLOCK_AND_SM * limits.sms.value * limits.clock.value
    return Figure(rate, "B/s", Source("derived", f"{L2_BYTES_PER_CLOCK_AND_SM} B a clock and SM, an upper bound"))


def _overheads(row: Table, family: Table, source: str) -> Overheads:
    merged = {**family.get("overheads", {}), **row.get("overheads", {})}
    return Overheads(
        dispatch=_figure(merged["dispatch"], "s", source),
        launch=_figure(merged["launch"], "s", source),
        floor=_figure(merged["floor"], "s", source),
        graph_gap=_figure(merged["graph_gap"], "s", source),
        round_trip=_figure(merged["round_trip"], "s", source),
        queue_depth=_figure(merged["queue_depth"], "1", source),
    )

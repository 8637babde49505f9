"""From the many names of a device to its machine: loose, but never another device's figures.

A name fits where all its words are a machine's or an alias's words, and it leaves out none that tell one part from
another: only the form factor, the size and kind of memory, and the count of cores may be left out. Vendor words and
decoration aside. Whole words are compared, so H20 never fits H200, RTX 2080 never RTX 2080 Ti, and a Laptop part
never the desktop one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ridgepole.errors import BadInput
from ridgepole.machine.model import Machine

_DECORATION = frozenset(
    {"nvidia", "amd", "intel", "apple", "instinct", "tesla", "geforce", "graphics", "gpu", "vf", "corporation"}
)
"""Words that name the maker or the line, never the part."""
_SPELLING = {"sxm2": "sxm", "sxm4": "sxm", "sxm5": "sxm", "oam": "", "edition": ""}
"""No sxm3: that V100's memory is faster than the SXM2's."""
_VARIANT = re.compile(r"sxm|pcie|nvl|\d+gb|\d+core|one|gcd|rtx")
"""Words of a machine's name that a name for it may lack, where only one such machine is left."""
_SLICE = frozenset({"mig", "grid"})
"""Words of a share of a GPU, whose SMs, bandwidth and memory are not the GPU's."""
MEMORY_SLACK = 0.12
"""Share by which reported memory may differ from the datasheet's: GB against GiB, and what the driver keeps."""


class Device(Protocol):
    """What a trace or a driver says of a device; 0, "" and None where it does not."""

    @property
    def name(self) -> str: ...
    @property
    def memory(self) -> int | None: ...
    @property
    def sms(self) -> int | None: ...
    @property
    def warp(self) -> int | None: ...
    @property
    def compute(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Match:
    """The machine that a device is, or None; `note` says how it was told, or why it was not."""

    machine: Machine | None
    note: str = ""


def words(name: str) -> frozenset[str]:
    """The telling words of a name: "NVIDIA A100-SXM4-80GB" → {a100, sxm, 80gb}."""
    lower = re.sub(r"(?<=\d)[- ]core\b", "core", re.sub(r"\brtx(?=\d)", "rtx ", name.lower()))
    parts = re.split(r"[^a-z0-9]+", lower)
    return frozenset(w for part in parts if (w := _SPELLING.get(part, part)) and w not in _DECORATION)


def _names(machine: Machine) -> tuple[frozenset[str], ...]:
    return tuple(words(name) for name in (machine.name, *machine.aliases))


def _exact(wanted: frozenset[str], machines: Mapping[str, Machine]) -> list[Machine]:
    return [m for m in machines.values() if wanted in _names(m)]


def _loose(wanted: frozenset[str], machine: Machine) -> bool:
    """Whether all words of a name are the machine's, and all that tell its part from others are in the name."""
    known = frozenset({machine.memory_kind.lower()}).union(*_names(machine))
    return wanted <= known and {w for w in words(machine.name) if not _VARIANT.fullmatch(w)} <= wanted


def by_name(name: str, machines: Mapping[str, Machine]) -> Machine:
    """The machine that `name` means. Raises BadInput with the nearest names where none does."""
    found = candidates(name, machines)
    if len(found) == 1:
        return found[0]
    if found:
        said = ", ".join(m.name for m in found)
        raise BadInput(f"{name!r} could be {said}: name one of them")
    known = {alias: m.name for m in machines.values() for alias in (m.name.lower(), *m.aliases)}
    near = difflib.get_close_matches(name.lower(), known, n=4, cutoff=0.5)
    hint = ", ".join(dict.fromkeys(known[n] for n in near))
    raise BadInput(
        f"no machine is called {name!r}" + (f"; near: {hint}" if hint else "") + "; `ridgepole machine list` has all"
    )


def candidates(name: str, machines: Mapping[str, Machine]) -> list[Machine]:
    """Machines that `name` may mean: an exact name or alias, else those all of whose telling words agree."""
    wanted = words(name)
    if not wanted:
        return []
    exact = _exact(wanted, machines)
    return exact if len(exact) == 1 else [m for m in machines.values() if _loose(wanted, m)] or exact


def match(device: Device, machines: Mapping[str, Machine] | None = None) -> Match:
    """The machine that a trace's device is, its own properties deciding between variants; None, with why, if unsure.

    Where the user has measured that machine (and no `machines` are given), it is the measured one.
    """
    if machines is not None:
        return _told(device, machines)
    from ridgepole.machine import catalog, measured

    found = _told(device, catalog.load())
    own = catalog.measured_here(found.machine.name) if found.machine is not None else None
    if own is None:
        return found
    day = measured.when(own)
    said = f"figures measured here{f' on {day}' if day else ''} ({own.name}), not the datasheet's"
    return Match(own, f"{found.note}; {said}" if found.note else said)


def _told(device: Device, everything: Mapping[str, Machine]) -> Match:
    # A measurement is of one machine in one place: it stands in for that machine only where its user says so.
    machines = {name: machine for name, machine in everything.items() if not machine.measured_of}
    if device.name:
        return _named(device, machines)
    agreeing = [m for m in machines.values() if _agrees(m, device)]
    if device.sms and device.memory and len(agreeing) == 1:
        machine = agreeing[0]
        return Match(
            machine, f"the device has no name; {device.sms} SMs and {device.memory / 1e9:.0f} GB are {machine.name}'s"
        )
    if device.sms is None and device.memory is None and not device.compute:
        return Match(None, "the trace does not describe its device: name it with --on, for example --on a100")
    return Match(None, "the device has no name and its properties fit no one machine: name it with --on")


def _named(device: Device, machines: Mapping[str, Machine]) -> Match:
    wanted = words(device.name)
    if wanted & _SLICE:
        return Match(None, f"{device.name} is a share of a GPU, not the whole: name a machine file for it with --on")
    same = _exact(wanted, machines)
    loose = [m for m in machines.values() if m not in same and _loose(wanted, m)]
    fitting = [m for m in same if _agrees(m, device)] or [m for m in loose if _agrees(m, device)]
    if len(fitting) > 1:
        fitting = _nearest(fitting, device)
    if len(fitting) == 1:
        cores = {w for w in words(fitting[0].name) if w.endswith("core")} - wanted
        guessed = f"{device.name} comes with several core counts; taken as {fitting[0].name}"
        return Match(fitting[0], guessed if cores and device.sms is None else "")
    said = ", ".join(m.name for m in (fitting or same or loose)[:4])
    if fitting:
        return Match(None, f"{device.name} could be {said}: name its machine with --on")
    if said:
        return Match(None, f"{device.name}: its properties differ from {said}: name its machine with --on")
    return Match(None, f"{device.name} is in no table: name a machine with --on, or add a machine file")


def _nearest(machines: list[Machine], device: Device) -> list[Machine]:
    if device.memory is None:
        return machines
    gap = {m.name: abs(_capacity(m) - device.memory) for m in machines}
    least = min(gap.values())
    return [m for m in machines if gap[m.name] == least]


def _capacity(machine: Machine) -> float:
    level = machine.level("dram")
    return level.capacity.value if level is not None and level.capacity is not None else 0.0


def _agrees(machine: Machine, device: Device) -> bool:
    """No property that both know differs."""
    limits = machine.limits
    if device.sms is not None and limits.sms.source.kind != "assumed" and device.sms != int(limits.sms.value):
        return False
    if device.warp is not None and device.warp != int(limits.warp.value):
        return False
    held = _capacity(machine)
    if device.memory is not None and held and abs(device.memory - held) > MEMORY_SLACK * held:
        return False
    return not device.compute or _compute(machine) in ("", device.compute)


def _compute(machine: Machine) -> str:
    """A machine's major and minor number, as torch and its traces give them: gfx942 is 9.4, gfx90a is 9.0."""
    found = re.fullmatch(r"gfx(\d+)([0-9a-f])[0-9a-f]", machine.compute)
    return f"{found[1]}.{found[2]}" if found else machine.compute

"""From the many names of a device to its machine: loose, but never another device's figures.

A name fits where all its words are a machine's or an alias's words, vendor words and decoration aside. Numbers are
words of their own, so H20 never fits H200, and a Laptop part never fits the desktop one.
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
_SPELLING = {
    "sxm2": "sxm",
    "sxm3": "sxm",
    "sxm4": "sxm",
    "sxm5": "sxm",
    "hbm2": "",
    "hbm2e": "",
    "hbm3": "",
    "hbm3e": "",
    "oam": "",
}
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
    parts = re.split(r"[^a-z0-9]+", name.lower())
    return frozenset(w for part in parts if (w := _SPELLING.get(part, part)) and w not in _DECORATION)


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
    exact = [m for m in machines.values() if any(words(a) == wanted for a in (m.name, *m.aliases))]
    if len(exact) == 1:
        return exact
    # "A100-SXM4-80GB-Something" is not an A100 80 GB: every word of the name must be a word of the machine's names.
    return [
        m
        for m in machines.values()
        if wanted <= frozenset().union(*(words(a) for a in (m.name, *m.aliases))) and wanted & words(m.name)
    ]


def match(device: Device, machines: Mapping[str, Machine] | None = None) -> Match:
    """The machine that a trace's device is, its own properties deciding between variants; None, with why, if unsure."""
    if machines is None:
        from ridgepole.machine import catalog

        machines = catalog.load()
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
    same = [m for m in machines.values() if any(words(a) == wanted for a in (m.name, *m.aliases))]
    loose = [m for m in machines.values() if m not in same and _part(wanted, m)]
    fitting = [m for m in same if _agrees(m, device)] or [m for m in loose if _agrees(m, device)]
    if len(fitting) > 1:
        fitting = _nearest(fitting, device)
    if len(fitting) == 1:
        return Match(fitting[0])
    if same or loose:
        said = ", ".join(m.name for m in (same or loose)[:4])
        return Match(None, f"{device.name}: its properties differ from {said}: name its machine with --on")
    return Match(None, f"{device.name} is in no table: name a machine with --on, or add a machine file")


def _part(wanted: frozenset[str], machine: Machine) -> bool:
    """Whether the name names the machine's part and says nothing that the machine's names do not."""
    known = frozenset().union(*(words(a) for a in (machine.name, *machine.aliases)))
    return wanted <= known and bool(wanted & words(machine.name))


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
    return not (
        device.compute and machine.vendor == "NVIDIA" and device.warp == 32 and device.compute != machine.compute
    )

"""Constants of the kernel models: a machine's own figure, else its architecture's, else the default.

`tuning.toml` holds them, each with its unit and source. An architecture's section applies to machines whose
architecture begins with its name; a `Machine.tuning` entry of the same key beats both.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module, resources
from typing import Any, get_args

from ridgepole.machine.model import Figure, Machine, Source, SourceKind

# Python 3.10 has no tomllib; its package is the same module under another name.
_toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def constant(machine: Machine, key: str) -> Figure:
    """The figure called `key` for `machine`. Raises KeyError for a key that no section has."""
    own = machine.tuning.get(key)
    return own if own is not None else _merged(machine.kind, machine.architecture.lower())[key]


def known(machine: Machine, key: str) -> bool:
    return key in machine.tuning or key in _merged(machine.kind, machine.architecture.lower())


@lru_cache(maxsize=64)
def _merged(kind: str, architecture: str) -> Mapping[str, Figure]:
    sections = load()
    figures = dict(sections["default"])
    for name in sorted(sections, key=len):
        if name != "default" and (name == kind or architecture.startswith(name)):
            figures.update(sections[name])
    return figures


@lru_cache(maxsize=1)
def load() -> Mapping[str, Mapping[str, Figure]]:
    """Every section of tuning.toml. Raises ValueError for a row that is not a positive figure with a source."""
    text = resources.files("ridgepole.price").joinpath("tuning.toml").read_text(encoding="utf-8")
    return {
        section: {key: _figure(f"{section}.{key}", row) for key, row in rows.items()}
        for section, rows in _toml.loads(text).items()
    }


def _figure(name: str, row: Mapping[str, Any]) -> Figure:
    kind, _, detail = str(row["source"]).partition(": ")
    if kind not in get_args(SourceKind) or not detail:
        raise ValueError(f"tuning.toml: {name} has no source of a known kind")
    value = float(row["value"])
    if not value >= 0:
        raise ValueError(f"tuning.toml: {name} is {value}")
    return Figure(value, str(row["unit"]), Source(kind, detail))  # type: ignore[arg-type]

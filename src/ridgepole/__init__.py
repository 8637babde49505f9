"""Ridgepole: where every microsecond of a PyTorch program goes, and what wins it back.

    import ridgepole as rp

    with rp.why() as w:                 # record and explain a block
        step()
    print(w.run)

    @rp.why                             # or every call of a function
    def step(): ...

    rp.read("trace.json.gz")            # explain a profiler trace
    rp.price(fn, *args, on="h100")      # price a function on a GPU you don't have
    rp.machine("h100")                  # what a device can do
    rp.launch_geometry(16_777_216, 256, rp.machine("h100"))

Importing it loads neither torch nor any other optional part: those load when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ridgepole.api import machine, price, read, why
    from ridgepole.errors import BadInput, Missing, RidgepoleError
    from ridgepole.machine.geometry import launch_geometry
    from ridgepole.machine.model import Machine
    from ridgepole.results import Explained
    from ridgepole.session import PriceRun, Run
    from ridgepole.timeline.step import step

_HOME = {
    "Explained": "ridgepole.results",
    "read": "ridgepole.api",
    "why": "ridgepole.api",
    "BadInput": "ridgepole.errors",
    "Missing": "ridgepole.errors",
    "RidgepoleError": "ridgepole.errors",
    "launch_geometry": "ridgepole.machine.geometry",
    "Machine": "ridgepole.machine.model",
    "PriceRun": "ridgepole.session",
    "Run": "ridgepole.session",
    "step": "ridgepole.timeline.step",
}

_CALLABLE_ROOMS = ("machine", "price")
"""Sub-packages that are called as functions too: `rp.machine("h100")`, `rp.price(fn, ...)`."""

__all__ = [
    "BadInput",
    "Explained",
    "Machine",
    "Missing",
    "PriceRun",
    "RidgepoleError",
    "Run",
    "launch_geometry",
    "machine",
    "price",
    "read",
    "step",
    "why",
]


def __getattr__(name: str) -> Any:
    if name in _CALLABLE_ROOMS:
        return import_module(f"ridgepole.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'ridgepole' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

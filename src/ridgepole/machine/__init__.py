"""What a device can do. Called as a function too: `ridgepole.machine("h100")` finds a machine by name."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """The package itself, callable: the public name `ridgepole.machine` is this package and that function."""

    def __call__(self, name: str) -> Any:
        return import_module("ridgepole.api").machine(name)


sys.modules[__name__].__class__ = _Room

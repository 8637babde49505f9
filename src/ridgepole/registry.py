"""The one registry shape: a decorator, duplicates raise, discovery by folder.

formula: Registry[Formula] = Registry("formula", "ridgepole.work.formulas")

@formula("aten::mm", "aten::addmm")
def matmul(call): ...

formula.find("aten::mm")     # imports every module of the folder once, then looks up
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Named things of one kind, each registered where it is defined.

    `folder` is the dotted package whose modules register the entries; they are imported on first
    look-up, so that adding an entry is adding one file. Raises ValueError on a second registration.
    """

    def __init__(self, kind: str, folder: str) -> None:
        self.kind = kind
        self.folder = folder
        self._entries: dict[str, T] = {}
        self._discovered = False

    def __call__(self, *names: str) -> Callable[[T], T]:
        def register(entry: T) -> T:
            for name in names:
                if name in self._entries:
                    raise ValueError(f"{self.kind} {name!r} is registered twice")
                self._entries[name] = entry
            return entry

        return register

    def find(self, name: str) -> T | None:
        self._discover()
        return self._entries.get(name)

    def all(self) -> Mapping[str, T]:
        self._discover()
        return MappingProxyType(self._entries)

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(self.folder)
        for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
            importlib.import_module(f"{self.folder}.{module}")

"""Machine x work -> timeline. Called as a function too: `ridgepole.price(fn, *args, on="h100")`."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """The package itself, callable: the public name `ridgepole.price` is this package and that function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return import_module("ridgepole.api").price(*args, **kwargs)


sys.modules[__name__].__class__ = _Room

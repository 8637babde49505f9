"""Python's cyclic garbage collector, held while much is made that all lives on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """No cyclic collection inside: reading a trace or capturing a model makes many small objects, and no garbage.

    Scanning them again and again took a quarter to a third of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

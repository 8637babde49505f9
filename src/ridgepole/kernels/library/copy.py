"""Copying: one load, one store, no arithmetic. Bytes 8 n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ridgepole.kernels.kernel import Expected, Kernel, Output, cover, register
from ridgepole.kernels.library.streams import BLOCK, ITEM, STREAMED, WIDE


def _make(random: Any, n: int) -> Sequence[Any]:
    return (random.standard_normal(n, dtype="float32"),)


def _reference(inputs: Sequence[Any], n: int) -> Sequence[Expected]:
    return (Expected(inputs[0]),)


def _copy(name: str, says: str, per_thread: int) -> Kernel:
    return Kernel(
        name=name,
        says=says,
        file="copy",
        entry=name,
        sizes=("n",),
        make=_make,
        outputs=(Output("float32", lambda n: (n,)),),
        launch=lambda n: cover(-(-n // per_thread), BLOCK),
        reference=_reference,
        bytes=lambda n: 2.0 * ITEM * n,
    )


register(_copy("copy", "out = a, one thread an element", 1))
register(_copy("copy_wide", "out = a, 4 elements a thread in one 16-byte access", WIDE))
register(_copy("copy_stream", "out = a, several 16-byte loads of a thread in flight at once", STREAMED))

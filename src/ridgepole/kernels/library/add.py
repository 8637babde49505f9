"""Vector addition: two loads, one add, one store. FLOPs n, bytes 12 n: nothing is more plainly about memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ridgepole.kernels.kernel import Expected, Kernel, Output, cover, register
from ridgepole.kernels.library.streams import BLOCK, ITEM, STREAMED, WIDE


def _make(random: Any, n: int) -> Sequence[Any]:
    return random.standard_normal(n, dtype="float32"), random.standard_normal(n, dtype="float32")


def _reference(inputs: Sequence[Any], n: int) -> Sequence[Expected]:
    a, b = inputs
    return (Expected(a.astype("float64") + b),)


def _add(name: str, says: str, per_thread: int) -> Kernel:
    return Kernel(
        name=name,
        says=says,
        file="add",
        entry=name,
        sizes=("n",),
        make=_make,
        outputs=(Output("float32", lambda n: (n,)),),
        launch=lambda n: cover(-(-n // per_thread), BLOCK),
        reference=_reference,
        flops=lambda n: float(n),
        bytes=lambda n: 3.0 * ITEM * n,
    )


register(_add("add", "out = a + b, one thread an element", 1))
register(_add("add_wide", "out = a + b, 4 elements a thread in one 16-byte access", WIDE))
register(_add("add_stream", "out = a + b, several 16-byte loads of a thread in flight at once", STREAMED))

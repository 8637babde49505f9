"""Vector addition: two loads, one add, one store; nothing a GPU does is more plainly about memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ridgepole.kernels.kernel import Expected, Kernel, Output, cover, register

BLOCK = 256
ITEM = 4
WIDE = 4
"""Elements a thread of the wide variants loads at once: 16 bytes, the widest load a GPU has."""


def _make(random: Any, n: int) -> Sequence[Any]:
    return random.standard_normal(n, dtype="float32"), random.standard_normal(n, dtype="float32")


def _reference(inputs: Sequence[Any], n: int) -> Sequence[Expected]:
    a, b = inputs
    return (Expected(a.astype("float64") + b),)


register(
    Kernel(
        name="add",
        says="out = a + b, one thread an element",
        file="add",
        entry="add",
        sizes=("n",),
        make=_make,
        outputs=(Output("float32", lambda n: (n,)),),
        launch=lambda n: cover(n, BLOCK),
        reference=_reference,
        flops=lambda n: float(n),
        bytes=lambda n: 3.0 * ITEM * n,
    )
)

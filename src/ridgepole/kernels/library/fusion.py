"""x * 2 + 1 as two kernels and as one. Bytes 8 n a kernel: the fused one moves half of what the two move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ridgepole.kernels.kernel import Expected, Kernel, Output, cover, register
from ridgepole.kernels.library.streams import BLOCK, ITEM


def _make(random: Any, n: int) -> Sequence[Any]:
    return (random.standard_normal(n, dtype="float32"),)


def _pointwise(name: str, says: str, factor: float, term: float, flops: float) -> Kernel:
    def reference(inputs: Sequence[Any], n: int) -> Sequence[Expected]:
        return (Expected(inputs[0].astype("float64") * factor + term),)

    return Kernel(
        name=name,
        says=says,
        file="fusion",
        entry=f"{name}_",
        sizes=("n",),
        make=_make,
        outputs=(Output("float32", lambda n: (n,)),),
        launch=lambda n: cover(n, BLOCK),
        reference=reference,
        flops=lambda n: flops * n,
        bytes=lambda n: 2.0 * ITEM * n,
    )


register(_pointwise("double", "out = x * 2", 2.0, 0.0, 1.0))
register(_pointwise("plus_one", "out = x + 1", 1.0, 1.0, 1.0))
register(_pointwise("double_plus_one", "out = x * 2 + 1", 2.0, 1.0, 2.0))

"""A copy that reads with a stride: out[i] = a[(i * stride) mod n]. Useful bytes 8 n; what moves depends on the stride.

n is a power of two and the stride odd, so that every element is read exactly once and the remainder is a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ridgepole.kernels.kernel import Expected, Kernel, Output, cover, register
from ridgepole.kernels.library.streams import BLOCK, ITEM

MOST = 1 << 31


def _make(random: Any, n: int, stride: int) -> Sequence[Any]:
    return (random.standard_normal(n, dtype="float32"),)


def _reference(inputs: Sequence[Any], n: int, stride: int) -> Sequence[Expected]:
    import numpy

    index = (numpy.arange(n, dtype=numpy.uint64) * stride) & numpy.uint64(n - 1)
    return (Expected(inputs[0][index]),)


def _refuse(n: int, stride: int) -> str:
    if n & (n - 1) or n > MOST:
        return f"n must be a power of two up to {MOST:,}, so that an odd stride reads each element once"
    if stride % 2 == 0:
        return "the stride must be odd, so that each element is read once"
    return ""


register(
    Kernel(
        name="strided_copy",
        says="out[i] = a[(i * stride) mod n], one thread an element",
        file="strided_copy",
        entry="strided_copy",
        sizes=("n", "stride"),
        make=_make,
        outputs=(Output("float32", lambda n, stride: (n,)),),
        launch=lambda n, stride: cover(n, BLOCK),
        reference=_reference,
        bytes=lambda n, stride: 2.0 * ITEM * n,
        refuse=_refuse,
    )
)

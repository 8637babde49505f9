"""Attention without the n x n matrix: tiles of keys and values in shared memory, the softmax kept as it goes.

out = softmax(q kᵀ / sqrt(DEPTH)) v for each head, [heads, n, DEPTH] row major, float32. FLOPs 4 heads n² DEPTH (half of
it where causal), bytes at least 16 heads n DEPTH: the scores, 4 heads n² bytes, never leave the chip.
The online softmax is Milakov and Gimelshein's (2018); using it in tiles is Dao et al.'s FlashAttention (2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from ridgepole.kernels.device import Launch
from ridgepole.kernels.kernel import Expected, Kernel, Output, register
from ridgepole.kernels.library.streams import ITEM

DEPTH = 64
QUERIES = 64
"""Queries of a block, one a thread."""
SAMPLE = 64
"""Queries of each head that are held to float64."""


def _make(random: Any, heads: int, n: int) -> Sequence[Any]:
    return tuple(random.standard_normal((heads, n, DEPTH), dtype="float32") for _ in range(3))


def _reference_of(causal: int) -> Any:
    def reference(inputs: Sequence[Any], heads: int, n: int) -> Sequence[Expected]:
        import numpy

        q, k, v = (array.astype("float64") for array in inputs)
        rows = numpy.unique(numpy.linspace(0, n - 1, min(n, SAMPLE)).astype(int))
        scores = q[:, rows] @ k.transpose(0, 2, 1) / DEPTH**0.5
        if causal:
            scores[:, numpy.arange(n)[None, :] > rows[:, None]] = -numpy.inf
        scores = numpy.exp(scores - scores.max(-1, keepdims=True))
        out = scores / scores.sum(-1, keepdims=True) @ v
        return (Expected(out, (slice(None), rows)),)

    return reference


def _attention(name: str, says: str, causal: int) -> Kernel:
    return Kernel(
        name=name,
        says=says,
        file="attention",
        entry="attention",
        sizes=("heads", "n"),
        make=_make,
        outputs=(Output("float32", lambda heads, n: (heads, n, DEPTH)),),
        launch=lambda heads, n: Launch((-(-n // QUERIES), heads, 1), (QUERIES, 1, 1)),
        reference=_reference_of(causal),
        flops=lambda heads, n: 4.0 * heads * n * n * DEPTH / (2 if causal else 1),
        bytes=lambda heads, n: 4.0 * ITEM * heads * n * DEPTH,
        defines=MappingProxyType({"DEPTH": DEPTH, "CAUSAL": causal}),
    )


register(_attention("attention", "softmax(q kᵀ / 8) v in tiles, every key", 0))
register(_attention("attention_causal", "softmax(q kᵀ / 8) v in tiles, keys up to the query's own", 1))

"""The rungs of a matrix product C = A B, A m x k and B k x n, row major, float32.

FLOPs 2 m n k, bytes at least 4 (m k + k n + m n). Each rung reads A and B less often: once for each output (naive), for
each 16th, for each 32nd (tiles in shared memory), for each 64th and from registers four at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ridgepole.kernels.device import Launch
from ridgepole.kernels.kernel import Expected, Kernel, Output, register
from ridgepole.kernels.library.streams import ITEM

SIDE = 16
"""Threads along each side of a naive or register block."""
REGISTER_TILE = 64
"""Side of the tile of C that a block of the register rung makes, 4 x 4 outputs a thread."""
SAMPLE = 256
"""Rows of a large product that are held to float64."""
MOST = 1 << 31
"""Elements of a matrix: offsets in it fit 32 bits."""


def _make(random: Any, m: int, n: int, k: int) -> Sequence[Any]:
    return random.standard_normal((m, k), dtype="float32"), random.standard_normal((k, n), dtype="float32")


def _reference(inputs: Sequence[Any], m: int, n: int, k: int) -> Sequence[Expected]:
    import numpy

    a, b = inputs
    rows = numpy.unique(numpy.linspace(0, m - 1, min(m, SAMPLE)).astype(int))
    return (Expected(a[rows].astype("float64") @ b.astype("float64"), rows),)


def _refuse(m: int, n: int, k: int) -> str:
    if max(m * n, m * k, k * n) > MOST:
        return f"a matrix of more than {MOST:,} elements does not fit the 32-bit offsets of this kernel"
    return ""


def _rung(name: str, says: str, file: str, tile: int, side: int, defines: Mapping[str, int]) -> Kernel:
    """A rung whose block of side x side threads makes a tile x tile part of C."""
    return Kernel(
        name=name,
        says=says,
        file=file,
        entry=file,
        sizes=("m", "n", "k"),
        make=_make,
        outputs=(Output("float32", lambda m, n, k: (m, n)),),
        launch=lambda m, n, k: Launch((-(-n // tile), -(-m // tile), 1), (side, side, 1)),
        reference=_reference,
        flops=lambda m, n, k: 2.0 * m * n * k,
        bytes=lambda m, n, k: float(ITEM) * (m * k + k * n + m * n),
        refuse=_refuse,
        defines=MappingProxyType(dict(defines)),
    )


RUNGS: tuple[tuple[str, str, str, int, int, Mapping[str, int]], ...] = (
    ("matmul_naive", "one thread an output, A and B from memory each time", "matmul_naive", SIDE, SIDE, {}),
    ("matmul_tiled16", "16 x 16 tiles, each element used 16 times", "matmul_tiled", 16, 16, {"TILE": 16}),
    ("matmul_tiled32", "32 x 32 tiles, each element used 32 times", "matmul_tiled", 32, 32, {"TILE": 32}),
    ("matmul_registers", "64 x 64 tiles, 4 x 4 outputs a thread, 16 deep", "matmul_registers", REGISTER_TILE, SIDE, {}),
)
"""Name, what it says, file, tile, side of its block of threads, macros."""

for _row in RUNGS:
    register(_rung(*_row))

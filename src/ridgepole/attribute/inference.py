"""What can be said of a kernel of which only the name, the grid and the time are known; and why it can be said.

Elementwise, norm, softmax, reduction, copy and gather kernels lie below every ridge whatever their shapes: they are
memory-bound by nature. Products are bound by tile and grid: C (m x n) = A B does at most 2 m n / (e (m + n)) FLOP a
byte of e-byte elements (the limit of deep k), and at least what the k that fits into its time allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, sqrt

from ridgepole import dtypes
from ridgepole.attribute.ledger import Bucket
from ridgepole.attribute.names import MATRIX, Named, named
from ridgepole.attribute.shares import Piece
from ridgepole.attribute.three_times import KERNEL_FLOOR, fits_in_time, ridges
from ridgepole.machine.model import Machine, Unit

NEAR_FLOOR = 1.5
"""Times the machine's floor up to which a kernel is its floor: the rest of its time is less than half of that."""
NARROW = 48
"""Widest narrow side of a tile that is only chosen for narrow products."""
NARROW_TILES = 4
"""Tiles that a product computed with narrow tiles may be wide: libraries take a wider tile beyond."""
LEAST_EFFICIENCY = 0.25
"""Share of its roof below which no library product of any size is taken to run."""
SWIZZLES = (1, 2, 4, 8, 16)
"""Column tiles that CUTLASS folds into the x axis of a grid (ThreadblockSwizzle)."""

WORST_OF_CONV = 0.8
"""How near the ridge a convolution's worst case may stay below it and still be taken for compute: that case is a 1x1
filter, the flattest shape and a quarter of the peak all at once, and a 3x3 filter has up to nine times as much."""
MOST_CHANNELS = 8192
"""Channels that no convolution exceeds."""

_DECODE = re.compile(r"paged_attention|decode|split_?kv|attention_3d|ll4mi", re.I)
_PERSISTENT = re.compile(r"nvjet|segment_k|persistent|stream_?k|warpspecialized|_sk_|coop", re.I)
_ARRAYS = re.compile(r"array<char\s*\*,\s*(\d+)", re.I)
_VECTORIZED = re.compile(r"vectorized_elementwise_kernel<(\d+)|19vectorized_elementwise_kernelILi(\d+)")


@dataclass(frozen=True, slots=True)
class Inferred:
    """A bucket with its cause, what bytes and FLOPs are known, and why."""

    bucket: Bucket
    cause: str
    reason: str
    bytes: int | None = None
    flops: int | None = None
    dtype: str = ""


def infer(piece: Piece, machine: Machine | None, among: frozenset[str] = frozenset()) -> Inferred:
    """The bucket of a kernel by name, grid and time; "unknown", with the reason, where they do not tell.

    `among`: the architectures that the device may be of, where the machine is not known.
    """
    name = named(piece.name)
    if name.family == "collective":
        return Inferred("communication", "exposed-communication", "a collective, by its name")
    floor = None if machine is None else machine.overheads.floor.value
    nbytes = _elementwise_bytes(piece, name)
    if nbytes is not None and machine is not None and piece.ns and not fits_in_time(nbytes, piece.ns, machine):
        nbytes = None
    if floor is not None and piece.ns is not None and piece.ns * 1e-9 <= NEAR_FLOOR * floor:
        why = f"its {piece.ns:,} ns are within {NEAR_FLOOR}x of the smallest kernel's: starting it is most of its time"
        return Inferred("overhead", KERNEL_FLOOR, why, nbytes, dtype=name.dtype)
    if name.family in MATRIX:
        return _matrix(piece, name, machine, among)
    if name.family == "other":
        return Inferred("unknown", "unknown", "neither an op nor its name says what it does")
    why = f"{name.family} kernel by its name: memory-bound by nature, whatever its shapes"
    if nbytes is not None:
        why = f"{why}; bytes from its grid, {name.dtype} elements and operands by its name"
        if floor is not None and machine is not None and nbytes / machine.bandwidth < floor:
            return Inferred("overhead", KERNEL_FLOOR, why, nbytes, dtype=name.dtype)
    return Inferred("memory", "memory", why, nbytes, dtype=name.dtype)


def _elementwise_bytes(piece: Piece, name: Named) -> int | None:
    """Bytes of a contiguous elementwise kernel, from its grid; None where elements a block are not sure.

    ATen's vectorized kernel of width 8 gives each thread 8 elements, and names its operands' number in its type.
    """
    width = _VECTORIZED.search(piece.name)
    arrays = _ARRAYS.search(piece.name)
    if width is None or arrays is None or piece.grid is None or piece.block is None or not name.dtype:
        return None
    if (width[1] or width[2]) != "8":
        return None
    elements = piece.grid[0] * piece.block[0] * 8
    return elements * int(arrays[1]) * dtypes.itemsize(name.dtype)


def _matrix(piece: Piece, name: Named, machine: Machine | None, among: frozenset[str]) -> Inferred:
    unit: Unit = name.unit or "tensor"
    dtype = name.math or name.dtype or "bfloat16"
    if machine is not None and machine.peaks:
        ridge = machine.ridge(dtype, unit)
        low = high = ridge if ridge is not None else 0.0
        rate = machine.rate(unit, dtype)
        peak = None if rate is None else rate.value
    else:
        (low, high), peak = ridges(unit, dtype, among), None
    if not low:
        return Inferred("unknown", "unknown", f"no peak of {dtype} is known", dtype=dtype)
    if name.family == "attention":
        if _DECODE.search(piece.name):
            why = "attention of few queries by its name: each key and value is read for a few FLOP"
            return Inferred("memory", "memory", why, dtype=name.dtype)
        return Inferred("unknown", "unknown", "attention whose lengths are not known", dtype=name.dtype)
    element = dtypes.itemsize(name.dtype) if name.dtype else 2
    if unit == "vector" and "gemv" in piece.name.lower():
        return Inferred("memory", "memory", "matrix times vector by its name: 2 FLOP an element read", dtype=name.dtype)
    if name.tile is None:
        return Inferred("unknown", "unknown", "a product whose shape is not known", dtype=name.dtype)
    narrow = min(name.tile)
    most = NARROW_TILES * narrow * 2 / element
    if name.family == "matmul" and narrow <= NARROW and most < low:
        tile = f"{name.tile[0]}x{name.tile[1]}"
        why = (
            f"tile {tile} by its name: chosen for products at most a few tiles wide, so at most "
            f"{most:.3g} FLOP/B, below the ridge of {low:.3g}"
        )
        return Inferred("memory", "memory", why, dtype=name.dtype)
    if piece.grid is None or _PERSISTENT.search(piece.name):
        return Inferred("unknown", "unknown", "a product whose grid does not tell its shape", dtype=name.dtype)
    return _by_grid(piece, name, element, (low, high), peak)


def _by_grid(piece: Piece, name: Named, element: int, ridge: tuple[float, float], peak: float | None) -> Inferred:
    """Memory or compute where every output shape that tile and grid allow says so."""
    shapes = list(_outputs(piece, name))
    if not shapes:
        return Inferred("unknown", "unknown", "a product whose grid does not tell its shape", dtype=name.dtype)
    ceilings = [2 * m * n / (element * (m + n)) for m, n in shapes]
    said = f"tile {_x(name.tile)} and grid {_x(piece.grid)}"
    if name.family == "matmul" and max(ceilings) < ridge[0]:
        why = f"{said} bound it to {max(ceilings):.3g} FLOP/B, below the ridge of {ridge[0]:.3g}"
        return Inferred("memory", "memory", why, dtype=name.dtype)
    if peak is not None and piece.ns:
        # The k that its time allows at a quarter of the peak; deeper k only raises the intensity.
        depths = [LEAST_EFFICIENCY * peak * piece.ns * 1e-9 / (2 * m * n) for m, n in shapes]
        floors = [2 * m * n * k / (element * (m * k + k * n + m * n)) for (m, n), k in zip(shapes, depths, strict=True)]
        conv = name.family == "conv"
        if min(floors) > ridge[1] * (WORST_OF_CONV if conv else 1.0):
            least = f"at least {min(floors):.3g} FLOP/B even at {LEAST_EFFICIENCY:.0%} of the peak"
            as_if = " and if its filter were 1x1" if conv else ""
            where = "above" if min(floors) > ridge[1] else f"within {1 - WORST_OF_CONV:.0%} of"
            why = f"{said}: {least}{as_if}, {where} the ridge of {ridge[1]:.3g}"
            return Inferred("compute", "compute", why, dtype=name.dtype)
    why = f"{said} allow shapes on both sides of the ridge"
    return Inferred("unknown", "unknown", why, dtype=name.dtype)


def _x(numbers: tuple[int, ...] | None) -> str:
    return "x".join(map(str, numbers or ()))


def _outputs(piece: Piece, name: Named) -> Iterator[tuple[float, float]]:
    """Extreme output sizes (m, n) that the grid allows."""
    assert piece.grid is not None and name.tile is not None
    x, y, _ = piece.grid
    tall, wide = name.tile
    lower = piece.name.lower()
    if "cijk_" in lower or "igemm" in lower:
        # AMD's grids count threads, and lay the tiles out flat.
        tiles = max(1, ceil(x / (piece.block[0] if piece.block is not None else 256)))
        if "igemm" in lower:
            yield from _channels(tiles, tall, wide, tall_side="_wrw_" in lower)
        else:
            yield from _flat(tiles, tall, wide)
        return
    if "cutlass" in lower:
        for fold in SWIZZLES:
            # Folding by f is chosen for more than f / 2 column tiles; a second row of the grid needs the full fold.
            if x % fold or (y > 1 and fold < 8):
                continue
            least = (y - 1) * fold + 1 if y > 1 else max(1, fold // 2 + 1) if fold > 1 else 1
            for columns in {least, y * fold}:
                yield x // fold * tall, columns * wide
                yield x // fold * wide, columns * tall
        return
    yield x * tall, y * wide
    yield x * wide, y * tall


def _channels(tiles: int, tall: int, wide: int, *, tall_side: bool) -> Iterator[tuple[float, float]]:
    """MIOpen's implicit products: channels on one side (the tall one of a weight gradient, else the wide one)."""
    for down in range(1, tiles + 1):
        if tiles % down:
            continue
        rows, columns = down * tall, tiles // down * wide
        if (rows if tall_side else columns) <= MOST_CHANNELS:
            yield rows, columns


def _flat(tiles: int, tall: int, wide: int) -> Iterator[tuple[float, float]]:
    yield tall, wide * tiles
    yield tall * tiles, wide
    side = sqrt(tall * wide * tiles)
    if side >= max(tall, wide):
        yield side, side

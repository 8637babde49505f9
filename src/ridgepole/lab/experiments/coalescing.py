"""What does a scattered read cost? out[i] = a[(i * stride) mod n]: the same reads, every element once, in other orders.

Floor: 8 n useful bytes. A warp's 128 bytes come in 4 sectors of 32 bytes at stride 1, 12 at stride 3, 32 from stride 9
on, so 8 times the bytes are read; with the stores, 4.5 times the bytes move. A CPU has no warps: there 32 elements in a
row take 2 lines of 64 bytes, or up to 32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ridgepole import units
from ridgepole.kernels.library.streams import ITEM
from ridgepole.lab import arrays
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.values import amount
from ridgepole.machine import geometry

STRIDES = (1, 3, 9, 33, 1025)
SMALL = 1 << 13
"""A size at which each stride is checked whole."""
COUNTED = 1 << 20
"""The size at which the hardware counts: what a warp asks for does not depend on it."""
LEAST, MOST, PAST_CACHE = 1 << 22, 1 << 27, 4
"""The array holds so many last-level caches (quick: one), between 16 and 512 MiB."""
LINE = 64
"""Bytes of a CPU's cache line."""


def elements(bench: Bench) -> int:
    """A power of two, well past the last-level cache."""
    wanted = (1 if bench.quick else PAST_CACHE) * bench.last_cache // ITEM
    return min(MOST, 1 << max(LEAST, wanted - 1).bit_length()) if wanted > LEAST else LEAST


def pieces(stride: int, grain: int, lanes: int = geometry.WARP) -> int:
    """Pieces of memory of `grain` bytes that `lanes` consecutive elements of the output read from: exact.

    >>> pieces(1, 32), pieces(3, 32), pieces(1025, 32), pieces(1, 64)
    (4, 12, 32, 2)
    """
    if grain == geometry.SECTOR:
        return geometry.strided_sectors(stride, ITEM, lanes)
    return len({lane * stride * ITEM // grain for lane in range(lanes)})


def moved(stride: int, grain: int, n: int) -> float:
    """Bytes that move: the pieces read, whole, and the outputs written."""
    return n / geometry.WARP * pieces(stride, grain) * grain + ITEM * n


def grain_of(bench: Bench) -> int:
    """Bytes that the memory moves at least."""
    return LINE if bench.on_cpu else geometry.SECTOR


def _rows(bench: Bench) -> Iterator[Row]:
    n, grain = elements(bench), grain_of(bench)
    bench.note(f"{n:,} elements")
    counted, why = _counted_by_hardware(bench)
    shared = arrays.make(bench.device, n, 1)
    straight = None
    for stride in STRIDES:
        bench.note(f"stride {stride}")
        ready = arrays.ready(shared, "strided_copy", (SMALL, stride), _wanted(n, stride), stride)
        timing = bench.time(ready.run)
        straight = straight or timing.seconds
        rate = moved(stride, grain, n) / timing.seconds
        yield {
            "stride": stride,
            "pieces": pieces(stride, grain),
            "counted": counted.get(stride),
            "useful": ready.bytes,
            "seconds": timing.seconds,
            "spread": timing.spread,
            "bandwidth": ready.bytes / timing.seconds,
            "moved": moved(stride, grain, n),
            "moving": rate,
            "slower": timing.seconds / straight,
            "expected": moved(stride, grain, n) / moved(1, grain, n),
            "note": gate(ready.bytes / timing.seconds, bench.most_bandwidth(), "bandwidth") or why,
        }
        del ready


def _counted_by_hardware(bench: Bench) -> tuple[dict[int, float], str]:
    """Sectors a request by stride, from the hardware's own counter; none, with the reason, where it cannot be had."""
    if bench.device.backend != "cuda":
        return {}, ""
    from ridgepole.kernels.cuda import counters

    bench.note("the hardware's counter of sectors, by ncu")
    found = counters.count(
        "strided_copy", *((COUNTED, stride) for stride in STRIDES), device=bench.device.torch or "cuda"
    )
    if isinstance(found, str):
        return {}, found
    return {stride: each.sectors_a_request for stride, each in zip(STRIDES, found, strict=True)}, ""


def _wanted(n: int, stride: int) -> arrays.Wanted:
    def wanted(inputs: tuple[Any, ...], start: int, stop: int) -> Any:
        import numpy

        index = (numpy.arange(start, stop, dtype="uint64") * numpy.uint64(stride)) & numpy.uint64(n - 1)
        return inputs[0][index].astype("float64")

    return wanted


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    worst = max(rows, key=lambda row: amount(row, "seconds"))
    straight = next((row for row in rows if row["stride"] == 1), None)
    said = [_from(straight, bench)] if straight is not None else []
    if worst is not straight:
        said.append(_from(worst, bench))
    first = "; ".join(said) + "."
    parts = [first[0].upper() + first[1:]]
    if worst is straight:
        parts.append(f"In order a copy has {units.rate_bytes(amount(worst, 'bandwidth'))}.")
    else:
        beside = f" instead of {units.rate_bytes(amount(straight, 'bandwidth'))}" if straight is not None else ""
        parts.append(
            f"Reading every element once at stride {worst['stride']} takes {amount(worst, 'slower'):.1f}x as long as "
            f"in order, where the bytes that move are {amount(worst, 'expected'):.1f}x: useful bandwidth "
            f"{units.rate_bytes(amount(worst, 'bandwidth'))}{beside}."
        )
    return " ".join(filter(None, (*parts, _beyond(worst), _counted(rows, bench))))


def _from(row: Row, bench: Bench) -> str:
    what, many = row["pieces"], row["stride"]
    if bench.on_cpu:
        return f"at stride {many} 32 elements in a row come from {what} lines of {LINE} bytes"
    return f"at stride {many} a warp reads {what} sectors of {geometry.SECTOR} bytes"


def _beyond(worst: Row) -> str:
    """What the bytes do not explain."""
    slower, expected = amount(worst, "slower"), amount(worst, "expected")
    if not expected or slower <= 1.25 * expected:
        return ""
    return (
        f"The other {slower / expected:.1f}x is not in this count: reads far apart also miss the TLB and the open rows "
        "of the memory, nothing is prefetched, and some memories move two sectors at a time."
    )


def _counted(rows: Sequence[Row], bench: Bench) -> str:
    if bench.on_cpu:
        return "A CPU has no warps, so there is no counter of sectors to compare with."
    seen = [row for row in rows if row["counted"] is not None]
    if not seen:
        return ""
    off = [row for row in seen if abs(amount(row, "counted") - amount(row, "pieces")) > 0.01 * amount(row, "pieces")]
    if not off:
        return f"The hardware's own counter agrees at {len(seen)} strides of {len(rows)}."
    told = ", ".join(
        f"{amount(r, 'counted'):.2f} at stride {r['stride']} where {r['pieces']} are computed" for r in off
    )
    return f"The hardware's own counter differs: {told}."


def _picture(rows: Sequence[Row], bench: Bench) -> Picture:
    names = tuple(f"stride {row['stride']}" for row in rows)
    return Picture(
        "The same bytes in other orders",
        Axis("", "text"),
        Axis("bandwidth", "B/s"),
        (
            Series("useful", names, tuple(amount(row, "bandwidth") for row in rows), "bars"),
            Series("moved, computed", names, tuple(amount(row, "moving") for row in rows), "bars"),
        ),
    )


register(
    Experiment(
        name="coalescing",
        question="What does a scattered read cost?",
        columns=(
            Column("stride", "stride", "count"),
            Column("pieces", "sectors (lines)", "count"),
            Column("counted", "counted", "number"),
            Column("seconds", "time", "s"),
            Column("spread", "spread", "share", extra=True),
            Column("bandwidth", "useful", "B/s", bar=True),
            Column("moved", "moves", "B"),
            Column("moving", "moving", "B/s"),
            Column("slower", "slower", "ratio"),
            Column("expected", "by bytes", "ratio"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
        notes=(
            "sectors of 32 bytes that the 32 reads of a warp touch; on a CPU lines of 64 bytes that 32 elements touch",
            "bytes that move are computed from these: a piece that a cache keeps until its next use moves only once",
        ),
    )
)

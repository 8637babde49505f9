"""How much shared memory can one block have? Each size is tried for real, in a process of its own.

No FLOPs; the kernel fills the memory and each thread sums words that others wrote, so that a size counts only where all
of it works. On Hopper expect 227 KB: 228 KB a SM, less 1 KB that the system keeps of each block. KB is 1,024 bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from ridgepole import units
from ridgepole.kernels import probe
from ridgepole.kernels.device import Device, backends
from ridgepole.lab.bench import Bench
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.machine import geometry

KB = 1024
SIZES = (1, 2, 4, 8, 16, 32, 48, 64, 96, 99, 100, 128, 160, 163, 164, 227, 228)
"""KB: powers of two, and what blocks and SMs have had since compute capability 7.0."""
QUICK_SIZES = (16, 32, 48, 64, 228)
WORD = 4
MOST_AT_ONCE = 8
"""Processes at once: most of one's time is starting up."""


def sizes(reported: int, quick: bool) -> list[int]:
    """Bytes to try: the usual ones, on to what the device reports, exactly that, one word more, and twice as much."""
    found = {kb * KB for kb in (QUICK_SIZES if quick else SIZES)}
    at = max(found)
    while not quick and at * 2 < reported:
        at = 1 << at.bit_length()
        found.add(at)
    reported -= reported % WORD
    return sorted(found | {reported, reported + WORD, 2 * reported} - {0})


def name_of(device: Device) -> str:
    """What `open_device` calls this device."""
    if device.backend == "cuda" and device.torch is not None:
        return device.torch
    names = backends.all()[device.backend].names()
    return f"{device.backend}:{names.index(device.name)}" if device.name in names else device.backend


def _rows(bench: Bench) -> Iterator[Row]:
    name, reported = name_of(bench.device), bench.device.limits.shared_per_block
    wanted = sizes(reported, bench.quick)
    bench.note(f"{len(wanted)} sizes, each in a process of its own")
    with ThreadPoolExecutor(max(1, min(MOST_AT_ONCE, os.cpu_count() or 1))) as pool:
        try:
            for found in pool.map(lambda size: probe.largest_shared(name, [size]), wanted):
                size, accepted, said = found[0]
                yield {
                    "bytes": size,
                    "kb": size / KB,
                    "accepted": accepted,
                    "within": size <= reported,
                    "note": "" if accepted else said,
                }
        finally:
            pool.shutdown(cancel_futures=True)


def largest(rows: Sequence[Row]) -> int:
    """The largest size below which none was refused; 0 where the smallest was."""
    most = 0
    for row in sorted(rows, key=lambda row: float(row["bytes"] or 0)):
        if not row["accepted"]:
            break
        most = int(row["bytes"] or 0)
    return most


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    most, reported = largest(rows), bench.device.limits.shared_per_block
    refused = next((r for r in sorted(rows, key=lambda r: float(r["bytes"] or 0)) if not r["accepted"]), None)
    if not most:
        return f"No block got any: {refused['note'] if refused is not None else 'nothing was tried'}."
    first = f"A block gets up to {_kb(most)} of shared memory, all of it working"
    if refused is None:
        return f"{first}; nothing larger was tried. The device reports {_kb(reported)}."
    parts = [f"{first}; {_kb(int(refused['bytes'] or 0))} is not had ({refused['note']})."]
    if most == reported:
        parts.append("That is exactly what the device reports.")
    elif most < reported:
        parts.append(f"The device reports {_kb(reported)}, which it does not give.")
    else:
        parts.append(f"The device reports {_kb(reported)} and gives more: do not count on it.")
    return " ".join((*parts, _bound(bench, most)))


def _bound(bench: Bench, most: int) -> str:
    """What the limit comes from."""
    if bench.on_cpu:
        return (
            "A CPU has no shared memory of its own: it is ordinary memory in a core's cache, and the limit is what the "
            "OpenCL runtime chose."
        )
    held = bench.machine.limits.shared_per_sm if bench.machine is not None else None
    if held is None:
        return "What a whole SM has is not known here."
    kept = int(held.value) - most
    if kept == geometry.RESERVED_SHARED:
        return f"The bound is the SM's {_kb(int(held.value))}, of which the system keeps {_kb(kept)} for each block."
    if kept == 0:
        return f"A SM has {_kb(int(held.value))}: one block can take it all."
    return f"A SM has {_kb(int(held.value))}; a block is bound to {units.percent(most / held.value)} of it."


def _kb(size: int) -> str:
    return f"{size // KB:,} KB" if size % KB == 0 else f"{size:,} B"


def _picture(rows: Sequence[Row], bench: Bench) -> Picture:
    names = tuple(_kb(int(row["bytes"] or 0)) for row in rows)
    given = tuple(float(row["bytes"] or 0) if row["accepted"] else 0.0 for row in rows)
    refused = tuple(0.0 if row["accepted"] else float(row["bytes"] or 0) for row in rows)
    return Picture(
        "Shared memory of one block",
        Axis("asked", "text"),
        Axis("bytes", "B"),
        (Series("given", names, given, "bars"), Series("refused", names, refused, "bars")),
    )


register(
    Experiment(
        name="shared-memory",
        question="How much shared memory can one block have?",
        columns=(
            Column("kb", "KB", "number"),
            Column("bytes", "bytes", "count"),
            Column("accepted", "given", "text"),
            Column("within", "within the reported", "text"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
        notes=("KB is 1,024 bytes; a size counts where a kernel filled all of it and read back what others wrote",),
    )
)

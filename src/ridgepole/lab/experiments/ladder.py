"""What does each step of a matrix product's ladder win? Naive, tiled, registers, and the vendor's library.

FLOPs 2 n³, bytes at least 12 n²: at n = 4096 that is 683 FLOP/B, far past any ridge, so the floor is arithmetic. What a
rung asks of memory is another matter: 8/T bytes for each FLOP at a tile of T, and each rung asks less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ridgepole import units
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.rungs import RUNGS, TILE, VENDOR, Timed, rung, vendor, vendor_dtypes
from ridgepole.machine.geometry import tile_intensity

SIZES = (512, 1024, 2048, 4096)
QUICK_SIZES, QUICK_CPU_SIZES = (1024, 2048), (256, 512)
PATIENCE = 0.5
"""Seconds that one product may take: a slower rung is not run at this size."""
CHANGED = {
    "matmul_naive": "every output reads its row and column from memory",
    "matmul_tiled16": "16 x 16 tiles in shared memory: each read is used 16 times",
    "matmul_tiled32": "32 x 32 tiles: each read is used 32 times",
    "matmul_registers": "64 x 64 tiles, 4 x 4 outputs a thread: each shared read is used 4 times",
}


def _rows(bench: Bench) -> Iterator[Row]:
    sizes = SIZES if not bench.quick else QUICK_CPU_SIZES if bench.on_cpu else QUICK_SIZES
    dtypes = vendor_dtypes(bench)
    rates: dict[str, float] = {}
    for n in sizes:
        for name in RUNGS:
            bench.note(f"{name}, n = {n}")
            wanted = 2.0 * n**3 / rates[name] if name in rates else 0.0
            if wanted > PATIENCE:
                why = f"not run: a product would take more than {units.seconds(PATIENCE)}"
                yield {"n": n, "rung": name, "rate": None, "would_take": wanted, "note": why}
                continue
            timed = rung(bench, name, n)
            rates[name] = timed.rate
            yield _row(bench, timed, "float32")
        for dtype in dtypes:
            yield _row(bench, vendor(bench, n, dtype), dtype)


def _row(bench: Bench, timed: Timed, dtype: str) -> Row:
    unit = bench.unit(dtype)
    peak = bench.machine.rate(unit, dtype) if bench.machine is not None else None
    tile = TILE.get(timed.rung)
    return {
        "n": timed.n,
        "rung": timed.rung,
        "seconds": timed.timing.seconds,
        "spread": timed.timing.spread,
        "rate": timed.rate,
        "of_peak": timed.rate / peak.value if peak is not None else None,
        "intensity": tile_intensity(tile) if tile else None,
        "worst": timed.worst,
        "relative": timed.relative,
        "registers": timed.registers,
        "note": gate(timed.rate, bench.most_flops(unit, dtype), "rate"),
    }


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    run = [row for row in rows if row["rate"] is not None and not row["note"]]
    whole = [row["n"] for row in run if row["rung"] == RUNGS[-1]] or [row["n"] for row in run]
    if not whole:
        return "No rung ran."
    n = whole[-1]
    at = {str(row["rung"]): float(row["rate"] or 0) for row in run if row["n"] == n}
    said, before = [], 0.0
    for name in RUNGS:
        if name not in at:
            continue
        step = f", {at[name] / before:.1f}x" if before else ""
        said.append(f"{name.removeprefix('matmul_')} {units.rate_flops(at[name])}{step} ({CHANGED[name]})")
        before = at[name]
    if VENDOR in at and before:
        said.append(f"the vendor's library {units.rate_flops(at[VENDOR])}, {at[VENDOR] / before:.1f}x the last rung")
    worst = max(float(row["relative"] or 0) for row in run if row["rung"] in RUNGS) if before else 0.0
    return f"At n = {n}: " + "; ".join(said) + f". All rungs match float64 to {worst:.1g} of the norm."


def _picture(rows: Sequence[Row], bench: Bench) -> Picture:
    names = dict.fromkeys(str(row["rung"]) for row in rows if row["rate"] is not None)
    series = tuple(
        Series(
            name.removeprefix("matmul_"),
            tuple(float(row["n"] or 0) for row in rows if row["rung"] == name and row["rate"]),
            tuple(float(row["rate"]) for row in rows if row["rung"] == name and row["rate"]),
        )
        for name in names
    )
    return Picture("The ladder of a matrix product", Axis("n", "count", 2), Axis("rate", "FLOP/s", 10), series)


register(
    Experiment(
        name="ladder",
        question="What does each step of a matrix product's ladder win?",
        columns=(
            Column("n", "n", "count"),
            Column("rung", "rung", "text"),
            Column("seconds", "time", "s"),
            Column("spread", "spread", "share"),
            Column("rate", "rate", "FLOP/s", bar=True),
            Column("of_peak", "of peak", "share"),
            Column("intensity", "FLOP/B asked", "FLOP/B"),
            Column("worst", "worst error", "number"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
    )
)

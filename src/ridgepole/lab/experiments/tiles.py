"""How much of what tiles ask is left to the caches? Reads and intensity by arithmetic, then the rungs' own times.

A T x T tile reads 2n/T elements an output: T/4 FLOP/B in float32. Time then says how many bytes a second were asked:
where that is more than device memory has, caches supplied the rest. Expect much more for a tile of 1, less for 64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ridgepole import units
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.patience import patience
from ridgepole.lab.rungs import RUNGS, TILE, rung
from ridgepole.lab.values import believed, number
from ridgepole.machine.geometry import tile_intensity, tile_reads

SIDE, QUICK_SIDE = 4096, 2048
CPU_SIDE, QUICK_CPU_SIDE = 512, 256
ITEM = 4


def side(bench: Bench) -> int:
    """n of the product: on a GPU its matrices are past the caches, on a CPU as large as one waits for."""
    if bench.on_cpu:
        return QUICK_CPU_SIDE if bench.quick else CPU_SIDE
    return QUICK_SIDE if bench.quick else SIDE


def _rows(bench: Bench) -> Iterator[Row]:
    n = side(bench)
    limit, flops = patience(bench), 2.0 * n**3
    trial = n // 4
    for name in RUNGS:
        tile = TILE[name]
        row: dict[str, float | int | str | bool | None] = {
            "tile": tile,
            "rung": name,
            "n": n,
            "reads": tile_reads(tile, n),
            "intensity": tile_intensity(tile),
            "asked": asked(tile, n),
        }
        bench.note(f"{name}, n = {n}")
        limit.learn(name, 2.0 * trial**3, rung(bench, name, trial).timing.low)
        why = limit.why_not(name, flops)
        if why:
            yield {**row, "would_take": limit.predicted(name, flops), "note": why}
            continue
        yield {**row, **_measured(bench, name, n)}


def asked(tile: int, n: int) -> float:
    """Bytes that the threads of an n x n product in such tiles load from memory: 2n/T elements for each of n²."""
    return tile_reads(tile, n) * n * n * ITEM


def _measured(bench: Bench, name: str, n: int) -> Row:
    timed = rung(bench, name, n)
    rate = asked(TILE[name], n) / timed.timing.seconds
    memory = bench.machine.bandwidth if bench.machine is not None else None
    factor = rate / memory if memory else None
    return {
        "seconds": timed.timing.seconds,
        "spread": timed.timing.spread,
        "rate": timed.rate,
        "asked_rate": rate,
        "factor": factor,
        "cached": max(0.0, 1 - 1 / factor) if factor else None,
        "note": gate(timed.rate, bench.most_flops("vector", "float32"), "rate"),
    }


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    run = [row for row in rows if believed(row, "asked_rate")]
    memory = bench.machine.bandwidth if bench.machine is not None else None
    arithmetic = "; ".join(
        f"{row['tile']} → {number(row, 'reads') or 0:,.0f} reads an output, {number(row, 'intensity') or 0:g} FLOP/B"
        for row in rows
    )
    if not run or memory is None:
        why = "none was timed" if not run else "this device's memory bandwidth is not known"
        return f"By arithmetic, tile by tile: {arithmetic}; {why}, so nothing is said of the caches."
    spared = [row for row in run if (number(row, "factor") or 0) > 1]
    said = [_caches(row) for row in spared]
    alone = [row for row in run if row not in spared]
    if alone:
        rates = ", ".join(units.rate_bytes(number(row, "asked_rate") or 0) for row in alone)
        tiles = ", ".join(str(row["tile"]) for row in alone)
        said.append(f"tile{'s' if len(alone) > 1 else ''} of {tiles} asked {rates}, which memory alone could give")
    ridge = bench.machine.ridge("float32", "vector") if bench.machine is not None else None
    past = [row for row in rows if ridge and (number(row, "intensity") or 0) >= ridge]
    end = ""
    if ridge:
        end = f" The ridge here is {ridge:.3g} FLOP/B: " + (
            f"from a tile of {past[0]['tile']} on, arithmetic and not memory is the limit even without caches."
            if past
            else "every one of these tiles lies below it, and leans on caches for the rest."
        )
    return (
        f"At n = {number(run[0], 'n') or 0:,.0f}, against {units.rate_bytes(memory)} of memory: {'; '.join(said)}."
        f" By arithmetic: {arithmetic}.{end}"
    )


def _caches(row: Row) -> str:
    """What one tile asked a second that memory cannot have given."""
    rate, factor, cached = (number(row, key) or 0.0 for key in ("asked_rate", "factor", "cached"))
    return (
        f"a tile of {row['tile']} asked {units.rate_bytes(rate)}, {factor:.1f}x as much, so that caches gave "
        f"{units.percent(cached)} of it at least"
    )


def _picture(rows: Sequence[Row], bench: Bench) -> Picture | None:
    run = [row for row in rows if believed(row, "asked_rate")]
    if not run:
        return None
    x = tuple(float(number(row, "tile") or 0) for row in run)
    series = [Series("asked by the tiles", x, tuple(number(row, "asked_rate") or 0.0 for row in run),
                     "line" if len(run) > 1 else "points")]  # fmt: skip
    if bench.machine is not None and len(run) > 1:
        series.append(Series("device memory", (x[0], x[-1]), (bench.machine.bandwidth,) * 2))
    return Picture("Bytes a second that tiles ask", Axis("tile", "count", 2), Axis("asked", "B/s", 10), tuple(series))


register(
    Experiment(
        name="tiles",
        question="What do tiles spare memory, and what do the caches?",
        columns=(
            Column("tile", "tile", "count"),
            Column("rung", "rung", "text"),
            Column("reads", "reads/output", "count"),
            Column("intensity", "FLOP/B", "FLOP/B"),
            Column("asked", "asks", "B"),
            Column("seconds", "time", "s"),
            Column("asked_rate", "asks a second", "B/s", bar=True),
            Column("factor", "of memory", "ratio"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
        notes=(
            "what is asked counts every thread's load; where threads of a warp ask for one address it is loaded once, "
            "which for a tile of 1 is part of the factor",
        ),
    )
)

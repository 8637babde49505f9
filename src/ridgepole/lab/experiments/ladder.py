"""What does each rung of a matrix product win? Naive, tiled, registers, and the vendor's library.

FLOPs 2 n³, bytes at least 12 n²: at n = 4096 that is 683 FLOP/B, far past any ridge, so the floor is arithmetic. What a
rung asks of memory is another matter: 4/T bytes for each FLOP at a tile of T, and each rung asks less. Expect the rungs
in order on a GPU; on a CPU, whose caches hold the tiles anyway, less of a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ridgepole import units
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.patience import patience
from ridgepole.lab.rungs import RUNGS, SHARED_READS, TILE, VENDOR, Timed, first_line, rung, vendor, vendor_dtypes
from ridgepole.lab.values import believed, number
from ridgepole.machine.geometry import tile_intensity, tile_reads

SIZES = (512, 1024, 2048, 4096)
QUICK_SIZES, QUICK_CPU_SIZES = (1024, 2048), (256, 512)


def _rows(bench: Bench) -> Iterator[Row]:
    sizes = SIZES if not bench.quick else QUICK_CPU_SIZES if bench.on_cpu else QUICK_SIZES
    limit = patience(bench)
    for n in sizes:
        flops = 2.0 * n**3
        roof: float | None = None
        # The roof first: the rungs are shares of it.
        for dtype in vendor_dtypes(bench):
            name = VENDOR if dtype == "float32" else f"{VENDOR}, {dtype}"
            bench.note(f"{name}, n = {n}")
            why = limit.why_not(name, flops)
            if why:
                yield _not_run(n, name, why, limit.predicted(name, flops))
                continue
            try:
                timed = vendor(bench, n, dtype)
            except RuntimeError as error:  # torch's own: no room, or no such product here
                yield _not_run(n, name, f"not run: {first_line(error)}")
                continue
            limit.learn(name, flops, timed.timing.low)
            row = _row(bench, timed, dtype, roof)
            roof = roof or (timed.rate if believed(row, "rate") else None)
            yield row
        for name in RUNGS:
            bench.note(f"{name}, n = {n}")
            why = limit.why_not(name, flops)
            if why:
                yield _not_run(n, name, why, limit.predicted(name, flops))
                continue
            timed = rung(bench, name, n)
            limit.learn(name, flops, timed.timing.low)
            yield _row(bench, timed, "float32", roof)


def _not_run(n: int, name: str, why: str, would_take: float | None = None) -> Row:
    return {"n": n, "rung": name, "rate": None, "would_take": would_take, "note": why}


def _row(bench: Bench, timed: Timed, dtype: str, roof: float | None) -> Row:
    unit = bench.unit(dtype)
    peak = bench.machine.rate(unit, dtype) if bench.machine is not None else None
    tile = TILE.get(timed.rung)
    return {
        "n": timed.n,
        "rung": timed.rung,
        "seconds": timed.timing.seconds,
        "spread": timed.timing.spread,
        "rate": timed.rate,
        "of_vendor": timed.rate / roof if roof else None,
        "of_peak": timed.rate / peak.value if peak is not None else None,
        "reads": tile_reads(tile, timed.n) if tile else None,
        "bytes_per_flop": 1 / tile_intensity(tile) if tile else None,
        "worst": timed.worst,
        "relative": timed.relative,
        "registers": timed.registers,
        "note": gate(timed.rate, bench.most_flops(unit, dtype), "rate"),
    }


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    run = [row for row in rows if believed(row, "rate")]
    ladder = [row for row in run if row["rung"] in RUNGS]
    if not ladder:
        return "No rung gave a figure to be believed: the notes say why."
    # The largest n at which the most rungs ran.
    counts = {n: sum(row["n"] == n for row in ladder) for n in (number(row, "n") or 0.0 for row in ladder)}
    n = max(counts, key=lambda size: (counts[size], size))
    at = {str(row["rung"]): row for row in run if row["n"] == n}
    rates = {name: number(at[name], "rate") or 0.0 for name in RUNGS if name in at}
    best = max(rates, key=lambda name: rates[name])
    said = [f"At n = {n:.0f} the fastest rung, {_short(best)}, runs {units.rate_flops(rates[best])}"]
    roof = number(at[VENDOR], "rate") if VENDOR in at else None
    if roof:
        said[0] += f", {units.percent(rates[best] / roof)} of the vendor library's {units.rate_flops(roof)}"
    share = number(at[best], "of_peak")
    peak = "fp32 rate measured of this CPU" if bench.on_cpu else "fp32 peak"
    said[0] += f" ({units.percent(share)} of the {peak})." if share is not None else "."
    said.append("Rung by rung: " + "; ".join(_steps(rates, int(n))) + ".")
    said.append(_order(rates, bench))
    errors = [number(row, "relative") for row in ladder]
    worst = max((error for error in errors if error is not None), default=None)
    if worst is not None:
        said.append(f"Every rung matches float64 to {worst:.1g} of the norm.")
    return " ".join(part for part in said if part)


def _steps(rates: dict[str, float], n: int) -> Iterator[str]:
    """Each rung with its ratio to the one before, and what it changed."""
    before = None
    for name, rate in rates.items():
        tile = TILE[name]
        asked = f"{tile_reads(tile, n):,.0f} reads an output (2n{f'/{tile}' if tile > 1 else ''})"
        if name in SHARED_READS:
            asked += f" and {SHARED_READS[name]:g} of shared memory a multiply-add"
        ratio = f"{rate / before:.2f}x with" if before else f"{units.rate_flops(rate)} with"
        yield f"{_short(name)} {ratio} {asked}"
        before = rate


def _order(rates: dict[str, float], bench: Bench) -> str:
    values = list(rates.values())
    if len(values) < 2:
        return ""
    if values == sorted(values):
        return "The rungs are in order."
    why = " On a CPU shared memory is its cache, which held the matrices' tiles before anyone asked."
    return "The rungs are not in order here." + (why if bench.on_cpu else "")


def _short(name: str) -> str:
    return name.removeprefix("matmul_")


def _picture(rows: Sequence[Row], bench: Bench) -> Picture:
    series = []
    for name in dict.fromkeys(str(row["rung"]) for row in rows):
        points = [(number(row, "n") or 0.0, number(row, "rate") or 0.0) for row in rows if row["rung"] == name]
        points = [point for point in points if point[1] > 0]
        if points:
            x, y = zip(*points, strict=True)
            series.append(Series(_short(name), x, y, "line" if len(points) > 1 else "points"))
    return Picture("The ladder of a matrix product", Axis("n", "count", 2), Axis("rate", "FLOP/s", 10), tuple(series))


register(
    Experiment(
        name="ladder",
        question="What does each rung of a matrix product win?",
        columns=(
            Column("n", "n", "count"),
            Column("rung", "rung", "text"),
            Column("seconds", "time", "s"),
            Column("rate", "rate", "FLOP/s", bar=True),
            Column("of_vendor", "of vendor", "share"),
            Column("of_peak", "of peak", "share"),
            Column("bytes_per_flop", "B/FLOP", "number"),
            Column("worst", "worst error", "number"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
        notes=(
            "B/FLOP: what a rung's threads ask of memory, before caches and before a warp's equal addresses are merged",
            "worst error: the largest difference from float64 of any element looked at; a narrower dtype is held to "
            "the product of the inputs it was given",
        ),
    )
)

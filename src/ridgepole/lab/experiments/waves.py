"""How do blocks fill a device? In waves: as many at once as fit, and the last one costs as much as a full one.

The table is arithmetic: 128 x 128 tiles of an n x n product on this device's SMs. The staircase is measured: `spin`
with a fixed number of rounds, one block an SM at a time. No bytes; expect time to step up by one wave as soon as there
is one block more than fits. On a GPU the library's products at the table's sizes are set beside what the tiles allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil

from ridgepole import units
from ridgepole.errors import BadInput, Missing
from ridgepole.kernels.device import Launch
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.rungs import first_line, vendor
from ridgepole.lab.values import believed, number
from ridgepole.machine.geometry import tile_waves

TILES, STAIRS, PRODUCT = "tiles", "staircase", "bf16 product"
TILE = 128
SIDES = (1024, 1408, 1536, 4096, 4097, 4224)
WAVES = 3
"""The staircase goes so many waves up."""
BLOCK = 128
"""Threads of a block: a warp for each scheduler of an SM, so that none waits for another's turn."""
WAVE_SECONDS, CPU_WAVE_SECONDS = 200e-6, 10e-3
"""A wave's length: long against launching and against how long blocks, or a CPU's threads, take to start."""
TRIAL_ROUNDS = 20_000
LEAST_ROUNDS = 1000
STEPPED = 1.15
"""How much more than its share of the work one block past a full wave costs at least, where there are waves."""
ALIGNED = 16
"""Bytes at which rows must start for the tensor units' widest loads."""
BF16 = 2
"""Bytes of an element."""


def _rows(bench: Bench) -> Iterator[Row]:
    for n in SIDES:
        yield tiling(n, bench.device.limits.sms)
    yield from _staircase(bench)
    if bench.device.backend == "cuda":
        yield from _products(bench)


def tiling(n: int, sms: int) -> Row:
    """The row of the design's table: n x n in 128 x 128 tiles, one an SM at a time."""
    t = tile_waves(n, n, TILE, TILE, sms)
    return {
        "what": TILES,
        "n": n,
        "blocks": t.tiles,
        "waves": t.waves,
        "sm": t.sm_efficiency,
        "useful": t.useful,
        "overall": t.overall,
    }


def _staircase(bench: Bench) -> Iterator[Row]:
    each = resident(bench)
    if each is None:
        bench.note("no staircase: this backend does not say how many blocks an SM holds")
        return
    at_once = each * bench.device.limits.sms
    rounds = _rounds(bench, at_once)
    bench.note(f"{at_once} blocks of {BLOCK} threads fit at once; {rounds:,} rounds")
    wave = _spin(bench, at_once, rounds)
    for blocks in staircase(at_once, bench.quick):
        seconds = wave if blocks == at_once else _spin(bench, blocks, rounds)
        predicted = ceil(blocks / at_once) * wave
        yield {
            "what": STAIRS,
            "blocks": blocks,
            "waves": blocks / at_once,
            "seconds": seconds,
            "predicted": predicted,
            "ratio": seconds / predicted,
        }


def staircase(at_once: int, quick: bool) -> list[int]:
    """Block counts: within each wave, at its very end, and one past it."""
    found = {1}
    for wave in range(WAVES):
        parts = (1.0,) if quick else (0.25, 0.5, 0.75, 1.0)
        found |= {max(1, round((wave + part) * at_once)) for part in parts} | {(wave + 1) * at_once + 1}
    return sorted(found)


def _shared(bench: Bench) -> int:
    """Shared memory given to a block so that an SM holds just one: all there is, where it can be given at launch."""
    return bench.device.limits.shared_per_block if bench.device.backend == "cuda" else 0


def resident(bench: Bench) -> int | None:
    """Blocks of `spin` at once on one SM: by the driver where it says, one work-group a core on a CPU, else unknown."""
    ask = getattr(bench.device, "occupancy", None)
    if ask is not None:
        return max(1, int(ask(bench.kernel("spin", BLOCK, 1).program, BLOCK, _shared(bench))))
    return 1 if bench.on_cpu else None


def _rounds(bench: Bench, at_once: int) -> int:
    """Rounds that make a wave as long as wanted."""
    seconds = _spin(bench, at_once, TRIAL_ROUNDS)
    if seconds <= 0:
        raise BadInput("a spinning kernel took no time: the clock cannot be used")
    wanted = CPU_WAVE_SECONDS if bench.on_cpu else WAVE_SECONDS
    return max(LEAST_ROUNDS, round(TRIAL_ROUNDS * wanted / seconds))


def _spin(bench: Bench, blocks: int, rounds: int) -> float:
    """Seconds of `blocks` blocks: the lower quartile, since whatever disturbs them only slows them."""
    launch = Launch((blocks, 1, 1), (BLOCK, 1, 1), _shared(bench))
    return bench.time(bench.kernel("spin", blocks * BLOCK, rounds, launch=launch).run).low


def _products(bench: Bench) -> Iterator[Row]:
    """The library's bf16 products, beside what 128 x 128 tiles would allow."""
    for n in SIDES:
        row = {**tiling(n, bench.device.limits.sms), "what": PRODUCT}
        bench.note(f"torch's bf16 product, n = {n}")
        try:
            timed = vendor(bench, n, "bfloat16")
        except Missing as error:
            bench.note(str(error))
            return
        except RuntimeError as error:  # torch's own
            yield {**row, "note": f"not run: {first_line(error)}"}
            continue
        peak = bench.machine.rate("tensor", "bfloat16") if bench.machine is not None else None
        yield {
            **row,
            "seconds": timed.timing.seconds,
            "rate": timed.rate,
            "of_peak": timed.rate / peak.value if peak is not None else None,
            "note": gate(timed.rate, bench.most_flops("tensor", "bfloat16"), "rate"),
        }


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    said = [_stairs(rows), _tiled(rows, bench.device.limits.sms), _reached(rows)]
    return " ".join(part for part in said if part)


def _stairs(rows: Sequence[Row]) -> str:
    """How sharp the steps are."""
    measured = [row for row in rows if row["what"] == STAIRS]
    if not measured:
        return "No staircase was measured here."
    steps = _steps(rows)
    if not steps:
        return "The staircase was not measured up to its first step."
    full, past = steps[0]
    rises = "; ".join(_rise(a, b) for a, b in steps)
    if _seconds(past) / _seconds(full) > STEPPED * _count(past) / _count(full) or _coarse(full):
        return f"Blocks run in waves of {_count(full)}: {rises}."
    return f"No staircase shows here, for one block more costs no more than its share of the work: {rises}."


def _rise(full: Row, past: Row) -> str:
    """One step: measured, and as whole waves would have it."""
    waves, more = number(full, "waves") or 1.0, number(past, "waves") or 1.0
    return (
        f"{_count(full)} blocks take {units.seconds(_seconds(full))} and {_count(past)} take "
        f"{units.seconds(_seconds(past))}, {_seconds(past) / _seconds(full):.2f}x where waves say "
        f"{ceil(more) / waves:.2f}x"
    )


def _coarse(full: Row) -> bool:
    """Whether a wave is of one block, so that a step and a share of the work are the same thing."""
    return _count(full) < 2


def _tiled(rows: Sequence[Row], sms: int) -> str:
    tiles = [row for row in rows if row["what"] == TILES]
    if not tiles:
        return ""
    each = ", ".join(f"{row['n']} → {units.percent(number(row, 'overall') or 0.0)}" for row in tiles)
    return f"By arithmetic, {TILE} x {TILE} tiles on {sms} SMs do useful work, by n: {each}."


def _reached(rows: Sequence[Row]) -> str:
    """The library's products beside the tiles' arithmetic, and where something else than waves is the matter."""
    run = [row for row in rows if row["what"] == PRODUCT and believed(row, "of_peak")]
    if not run:
        return ""
    each = ", ".join(f"{row['n']} → {units.percent(number(row, 'of_peak') or 0.0)}" for row in run)
    said = f"The library's bf16 products reach of peak: {each}."
    worst = min(run, key=_kept)
    if _kept(worst) < max(_kept(row) for row in run) / 2:
        n = int(number(worst, "n") or 0)
        said += f" At {n} more than waves is the matter"
        misaligned = n * BF16 % ALIGNED != 0
        said += f": its rows of {n * BF16:,} B do not start at multiples of {ALIGNED} B." if misaligned else "."
    return said


def _kept(row: Row) -> float:
    """Share of what the tiles allow that was reached."""
    return (number(row, "of_peak") or 0.0) / (number(row, "overall") or 1.0)


def _steps(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Each full wave with the point one block past it."""
    measured = [row for row in rows if row["what"] == STAIRS and (number(row, "seconds") or 0) > 0]
    return [
        (a, b) for a, b in pairwise(measured) if (number(a, "waves") or 0.5).is_integer() and _count(b) == _count(a) + 1
    ]


def _count(row: Row) -> int:
    return int(number(row, "blocks") or 0)


def _seconds(row: Row) -> float:
    return number(row, "seconds") or 0.0


def _picture(rows: Sequence[Row], bench: Bench) -> Picture | None:
    measured = [row for row in rows if row["what"] == STAIRS]
    if not measured:
        return None
    x = tuple(float(_count(row)) for row in measured)
    wave = next((_seconds(a) for a, _ in _steps(rows)), number(measured[0], "predicted") or 0.0)
    at_once = next((_count(a) for a, _ in _steps(rows)), _count(measured[-1]))
    # Steps rise just past each full wave: a point there, whatever was measured.
    tops = range(ceil(x[-1] / at_once) + 1)
    predicted = Series(
        "predicted",
        tuple(float(top * at_once + 1) for top in tops),
        tuple((top + 1) * wave for top in tops),
        "steps",
    )
    points = Series("measured", x, tuple(_seconds(row) for row in measured), "points")
    return Picture("Time by blocks", Axis("blocks", "count"), Axis("time", "s"), (predicted, points))


register(
    Experiment(
        name="waves",
        question="How do blocks fill a device, and what does the last wave cost?",
        columns=(
            Column("what", "what", "text"),
            Column("n", "n", "count"),
            Column("blocks", "blocks", "count"),
            Column("waves", "waves", "number"),
            Column("sm", "SMs busy", "share"),
            Column("useful", "useful", "share"),
            Column("overall", "overall", "share"),
            Column("seconds", "time", "s", bar=True),
            Column("predicted", "predicted", "s"),
            Column("of_peak", "of peak", "share"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
    )
)

"""How do blocks fill a device? In waves: as many at once as fit, and the last one costs as much as a full one.

The table is arithmetic: 128 x 128 tiles of an n x n product on this device's SMs. The staircase is measured: `spin`
with a fixed number of rounds, its blocks so large that a known number fit at once. No bytes; expect time to step up by
one wave as soon as the blocks are one more than fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil

from ridgepole import units
from ridgepole.errors import BadInput
from ridgepole.kernels.device import Launch
from ridgepole.lab.bench import Bench
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.machine.geometry import tile_waves

TILE = 128
SIDES = (1024, 1408, 1536, 4096, 4097, 4224)
WAVES = 3
"""The staircase goes so many waves up."""
BLOCK = 1024
WAVE_SECONDS = 200e-6
"""A wave's length: long against launching and against how long blocks take to start."""
TRIAL_ROUNDS = 20_000


def _rows(bench: Bench) -> Iterator[Row]:
    sms = bench.device.limits.sms
    for n in SIDES:
        t = tile_waves(n, n, TILE, TILE, sms)
        yield {
            "what": "tiles",
            "n": n,
            "blocks": t.tiles,
            "waves": float(t.waves),
            "sm": t.sm_efficiency,
            "useful": t.useful,
            "overall": t.overall,
        }
    at_once = resident(bench) * sms
    rounds = _rounds(bench, at_once)
    bench.note(f"{at_once} blocks of {_block(bench)} threads fit at once; {rounds:,} rounds")
    one = None
    for blocks in staircase(at_once, bench.quick):
        seconds = _spin(bench, blocks, rounds)
        one = one or (seconds if blocks <= at_once else None)
        waves = blocks / at_once
        yield {
            "what": "staircase",
            "blocks": blocks,
            "waves": waves,
            "seconds": seconds,
            "predicted": ceil(waves) * one if one is not None else None,
        }


def staircase(at_once: int, quick: bool) -> list[int]:
    """Block counts: within each wave, at its very end, and one past it."""
    found = {1}
    for wave in range(WAVES):
        parts = (1,) if quick else (0.25, 0.5, 0.75, 1)
        found |= {max(1, round((wave + part) * at_once)) for part in parts} | {(wave + 1) * at_once + 1}
    return sorted(found)


def _block(bench: Bench) -> int:
    return min(BLOCK, bench.device.limits.threads_per_block)


def resident(bench: Bench) -> int:
    """Blocks of `spin` at once on one SM: by the driver where it says, one work-group a core on a CPU, else one."""
    ask = getattr(bench.device, "occupancy", None)
    if ask is None:
        return 1
    return max(1, int(ask(bench.kernel("spin", _block(bench), 1).program, _block(bench), 0)))


def _rounds(bench: Bench, at_once: int) -> int:
    """Rounds that make a wave WAVE_SECONDS long."""
    seconds = _spin(bench, at_once, TRIAL_ROUNDS)
    if seconds <= 0:
        raise BadInput("a spinning kernel took no time: the clock cannot be used")
    return max(TRIAL_ROUNDS // 10, round(TRIAL_ROUNDS * WAVE_SECONDS / seconds))


def _spin(bench: Bench, blocks: int, rounds: int) -> float:
    block = _block(bench)
    launch = Launch((blocks, 1, 1), (block, 1, 1))
    ready = bench.kernel("spin", blocks * block, rounds, launch=launch)
    return bench.time(ready.run).low


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    tiles = [row for row in rows if row["what"] == "tiles"]
    said = []
    if tiles:
        worst = min(tiles, key=lambda row: float(row["overall"] or 0))
        said.append(
            f"by arithmetic, 128 x 128 tiles at n = {worst['n']} keep {units.percent(float(worst['overall'] or 0))} of "
            f"{bench.device.limits.sms} SMs at useful work"
        )
    for full, past in _steps(rows):
        said.append(
            f"{full['blocks']} blocks take {units.seconds(float(full['seconds'] or 0))} and {past['blocks']} take "
            f"{units.seconds(float(past['seconds'] or 0))}, "
            f"{float(past['seconds'] or 0) / float(full['seconds'] or 1):.2f}x for {past['blocks']} / {full['blocks']} "
            "of the work"
        )
    if not _stepped(rows):
        said.append(
            "no staircase here: each block adds its own time, so blocks are handed out in runs and not in waves"
        )
    return "Blocks run in waves: " + "; ".join(said) + "."


def _stepped(rows: Sequence[Row]) -> bool:
    """Whether one block past the first wave cost clearly more than its share of the work."""
    steps = _steps(rows)
    if not steps:
        return True
    full, past = steps[0]
    share = _count(past) / _count(full)
    return float(past["seconds"] or 0) / float(full["seconds"] or 1) > STEPPED * share


STEPPED = 1.15
"""Between the share of the work (1.0) and a whole wave (2.0 over that share on a large device)."""


def _steps(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Each full wave with the point one block past it."""
    measured = [row for row in rows if row["what"] == "staircase"]
    return [(a, b) for a, b in pairwise(measured) if float(a["waves"] or 0).is_integer() and _count(b) == _count(a) + 1]


def _count(row: Row) -> int:
    return int(row["blocks"] or 0)


def _picture(rows: Sequence[Row], bench: Bench) -> Picture | None:
    measured = [row for row in rows if row["what"] == "staircase"]
    if not measured:
        return None
    x = tuple(float(row["blocks"] or 0) for row in measured)
    return Picture(
        "Time by blocks",
        Axis("blocks", "count"),
        Axis("time", "s"),
        (
            Series("predicted", x, tuple(float(row["predicted"] or 0) for row in measured), "steps"),
            Series("measured", x, tuple(float(row["seconds"] or 0) for row in measured), "points"),
        ),
    )


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
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
    )
)

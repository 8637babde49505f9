"""How long does a load take, from registers to DRAM? A pointer chase: every load waits for the one before.

No FLOPs; one line a load. Expect steps: flat while the working set fits a level, rising where it no longer does. What a
load takes beside its own latency, the arithmetic of its address, is measured too and taken off.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from ridgepole import units
from ridgepole.kernels.prepare import Prepared
from ridgepole.lab import levels
from ridgepole.lab.bench import Bench
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, Value, register

ITEM = 4
GPU_LINE, CPU_LINE = 128, 64
"""Bytes of a cache line."""
SMALLEST = 1 << 10
GPU_MOST, CPU_PAST = 1 << 30, 4
"""The largest working set: 1 GiB on a GPU; on a CPU so many last-level caches, or a quarter of its memory."""
WITHIN, NEAR = 4, 2
"""Working sets an octave within the last-level cache, and up to NEAR of them; beyond, one."""
STEPS, FEW_STEPS = 1 << 16, 1 << 18
"""Loads of one chase at least, and through few lines, where a load is short: launching must vanish in it."""
FEW_SLOTS, LAPS = 1 << 11, 200
"""A GPU empties its L1 before each kernel: up to so many lines go round so often that the first lap does not count."""
SEEN = 2
"""A chase that does not go all the way round visits lines of so many last-level caches, lest it finds them there."""
REPEATS, LONG = 5, 0.1
"""How often a chase is timed; only twice where it takes longer than LONG seconds."""
BUDGET, QUICK_BUDGET = 20.0, 4.0
"""Seconds from which no further working set is begun but the largest: without it there is no latency of memory."""
REGISTER_STEPS = 100_000
SHARED = 4096
"""Elements of the chase in shared memory."""
NAMES = {"cuda": ("L1", "L2", "HBM"), "metal": ("L1", "L2", "DRAM"), "opencl": ("L1", "L2", "L3", "DRAM")}


def sizes(least: int, most: int, last_cache: int, quick: bool) -> list[int]:
    """Working sets in bytes, multiples of every line: close together where caches end, further apart in memory."""
    found, at = [], least
    while at <= most:
        parts = WITHIN if at < last_cache else NEAR if at < NEAR * last_cache else 1
        parts = max(1, parts // 2) if quick else parts
        found += [size for part in range(parts) if (size := at + at * part // parts) <= most]
        at *= 2
    return found


def steps_for(slots: int, line: int, last_cache: int) -> int:
    """Loads of a chase through `slots` lines."""
    if slots <= FEW_SLOTS:
        return max(FEW_STEPS, LAPS * slots)
    return max(STEPS, min(slots, SEEN * last_cache // line))


def _rows(bench: Bench) -> Iterator[Row]:
    begun = time.monotonic()
    registers = _loads(bench, bench.kernel("chase_registers", REGISTER_STEPS), REGISTER_STEPS)
    # A CPU's load instruction works out its address itself, within the latency that everyone quotes.
    taken = (0.0, 0.0) if bench.on_cpu else (_float(registers["raw_seconds"]), _float(registers["cycles"]))
    yield {**registers, "level": "registers", "bytes": ITEM, "note": "one dependent multiply-add, as in an address"}
    if not bench.on_cpu:
        shared = bench.kernel("chase_shared", SHARED, 1, REGISTER_STEPS)
        yield {**_loads(bench, shared, REGISTER_STEPS), "level": "shared", "bytes": SHARED * ITEM, "note": ""}
    line = CPU_LINE if bench.on_cpu else GPU_LINE
    memory = bench.device.limits.memory
    most = min(CPU_PAST * bench.last_cache, memory // 4) if bench.on_cpu else min(GPU_MOST, memory // 8)
    budget = QUICK_BUDGET if bench.quick else BUDGET
    points: list[Row] = []
    chased = sizes(SMALLEST, most, bench.last_cache, bench.quick)
    for size in chased:
        if time.monotonic() - begun > budget and size != chased[-1]:
            note = f"not run: more than {units.seconds(budget)} had passed"
            yield {"level": None, "bytes": size, "seconds": None, "cycles": None, "raw_seconds": None, "note": note}
            continue
        bench.note(f"chasing through {units.nbytes(size)}")
        steps = steps_for(size // line, line, bench.last_cache)
        ready = bench.kernel("chase", size // ITEM, line // ITEM, steps)
        points.append({**_loads(bench, ready, steps, *taken), "level": None, "bytes": size, "note": ""})
        yield points[-1]
        del ready
    for name, level in named(points, bench.device.backend, bench.last_cache):
        yield {
            "level": name,
            "summary": True,
            "bytes": level.most,
            "least": level.least,
            "seconds": level.latency,
            "cycles": cycles_at(points, level),
            "raw_seconds": None,
            "note": f"median of the {level.points} working sets from {units.nbytes(level.least)} on",
        }


def _loads(bench: Bench, ready: Prepared, steps: int, address: float = 0.0, cycles: float = 0.0) -> Row:
    """Seconds and cycles of one load; `address` and `cycles` are what its address takes, and taken off.

    The check before was the warm lap. Whatever disturbs a chase only slows it, so the quickest counts.
    """
    clock = bench.device.limits.clock
    times: list[float] = []
    counts: list[int] = []
    while len(times) < (2 if times and times[0] > LONG else REPEATS):
        times.append(bench.device.elapsed(ready.run, 1))
        counts.append(int(ready.output()[1]))
    raw, counted = min(times) / steps, min(counts)
    beats = counted / steps if counted else raw * clock if clock else None
    return {
        "seconds": max(0.0, raw - address),
        "cycles": max(0.0, beats - cycles) if beats is not None else None,
        "raw_seconds": raw,
        "spread": (max(times) - min(times)) / min(times) if min(times) else 0.0,
        "counted": bool(counted),
        "steps": steps,
    }


def _float(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _points(rows: Sequence[Row]) -> list[Row]:
    """The measured points of the chase through memory."""
    return [row for row in rows if row["level"] is None and row["seconds"] is not None]


def found(rows: Sequence[Row]) -> tuple[levels.Level, ...]:
    """The levels of the chase through memory, by seconds."""
    return levels.find([(_float(row["bytes"]), _float(row["seconds"])) for row in _points(rows)])


def named(rows: Sequence[Row], backend: str, last_cache: int) -> list[tuple[str, levels.Level]]:
    """Levels with names: caches in order, and the memory last where the chase went past the caches.

    A cache may not show, so more than the names there are means that none can be given.
    """
    known = found(rows)
    *caches, memory = NAMES[backend]
    past = bool(known) and known[-1].most > last_cache
    inner = known[:-1] if past else known
    names = caches if len(inner) <= len(caches) else [f"level {i + 1}" for i in range(len(inner))]
    return [*zip(names, inner, strict=False), *([(memory, known[-1])] if past else [])]


def cycles_at(rows: Sequence[Row], level: levels.Level) -> float | None:
    """Median cycles of the points of a level."""
    held = sorted(
        float(r["cycles"])
        for r in _points(rows)
        if r["cycles"] is not None and level.least <= _float(r["bytes"]) <= level.most
    )
    return held[len(held) // 2] if held else None


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    said = []
    for row in rows:
        if row["level"] is not None and not row.get("summary"):
            said.append(f"{row['level']} {_both(float(row['seconds'] or 0), row['cycles'])}")
    for name, level in named(rows, bench.device.backend, bench.last_cache):
        cycles = cycles_at(rows, level)
        span = f"up to {units.nbytes(level.most)}" if name != NAMES[bench.device.backend][-1] else "beyond"
        said.append(f"{name} ({span}) {_both(level.latency, cycles)}{_published(bench, name, cycles)}")
    if not said:
        return "No level can be told from this: no working set was measured."
    return "A load that the next one waits for takes: " + "; ".join(said) + "."


def _both(seconds: float, cycles: object) -> str:
    return f"{units.seconds(seconds)}" + (f", {cycles:.0f} cycles" if isinstance(cycles, int | float) else "")


def _published(bench: Bench, name: str, cycles: float | None) -> str:
    """The catalog's figure beside ours, where it has one."""
    level = {"L1": "shared", "L2": "l2", "HBM": "dram"}.get(name)
    machine = bench.machine
    known = machine.level(level) if machine is not None and level is not None and not bench.on_cpu else None
    clock = machine.limits.clock if machine is not None else None
    if known is None or known.latency is None or clock is None or cycles is None:
        return ""
    return f" (published {known.latency.value * clock.value:.0f})"


def _picture(rows: Sequence[Row], bench: Bench) -> Picture:
    chased = _points(rows)
    line = Series("chase", tuple(_float(r["bytes"]) for r in chased), tuple(_float(r["seconds"]) for r in chased))
    marks = tuple(
        (f"{name} ends", level.most) for name, level in named(rows, bench.device.backend, bench.last_cache)[:-1]
    )
    return Picture("Latency by working set", Axis("working set", "B", 2), Axis("a load", "s", 10), (line,), marks)


register(
    Experiment(
        name="latency",
        question="How long does a load take, from registers to memory?",
        columns=(
            Column("level", "level", "text"),
            Column("bytes", "working set", "B"),
            Column("seconds", "a load", "s", bar=True),
            Column("cycles", "cycles", "cycles"),
            Column("raw_seconds", "with its address", "s"),
            Column("spread", "spread", "share", extra=True),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
        notes=(
            "cycles are the device's own count where it has one, else time x its highest clock",
            "a working set far past the last cache misses the TLB as well, and that is in the figure",
        ),
    )
)

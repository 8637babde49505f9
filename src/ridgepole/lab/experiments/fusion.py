"""What does fusing save? x * 2 then + 1 as two kernels, against one that does both, and torch's eager x * 2 + 1.

Two kernels move 16 n bytes and launch twice; one moves 8 n and launches once. Expect half the time wherever memory or
launching is the limit, which for 2 n FLOP is everywhere; more where the array between the two no longer fits a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ridgepole import units
from ridgepole.errors import Missing
from ridgepole.kernels.library.streams import ITEM
from ridgepole.lab import arrays
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, Value, register
from ridgepole.lab.timing import Method
from ridgepole.lab.values import amount

SMALL, STEP = 1 << 12, 1 << 4
"""The least elements, and how much more each size has."""
PAST_CACHE, MOST = 4, 1 << 28
"""The largest array holds so many last-level caches, 1 GiB at most."""
MEMORY_SHARE = 8
TWO, ONE, EAGER = "two kernels", "one kernel", "torch, x * 2 + 1"
MOVED = {TWO: 4.0 * ITEM, ONE: 2.0 * ITEM, EAGER: 4.0 * ITEM}
"""Bytes an element."""
EXPECTED = 2.0
"""Times that two kernels take as long as one, by bytes and by launches."""
NEAR = 0.15
"""A gain this close to what is expected, as a share of it, is that."""
CHECKED = 1003
"""A size that is no multiple of anything, at which each kernel is checked whole."""


def sizes(bench: Bench) -> list[int]:
    """Elements, from a few KB, where launching is all, to well past the last cache."""
    room = bench.device.limits.memory // MEMORY_SHARE // ITEM
    past = 1 if bench.quick else PAST_CACHE
    wanted = min(MOST, past * bench.last_cache // ITEM, room)
    found = [1 << (max(SMALL, wanted) - 1).bit_length()]
    while found[-1] // STEP >= SMALL:
        found.append(found[-1] // STEP)
    return found[::-1]


def _rows(bench: Bench) -> Iterator[Row]:
    methods: tuple[Method, ...] = ("queued", "graph") if bench.device.backend == "cuda" else ("queued",)
    for n in sizes(bench):
        bench.note(f"{n:,} elements")
        runs = _runs(bench, n)
        for method in methods:
            two = None
            for name, run in runs.items():
                row = _row(bench, n, name, run, method)
                two = row["seconds"] if name == TWO else two
                yield {**row, "gain": _ratio(two, row["seconds"]) if name == ONE else None}
        del runs


def _runs(bench: Bench, n: int) -> dict[str, Callable[[int], object]]:
    """The ways at n elements, by name; the second of two kernels reads what the first wrote."""
    shared = arrays.make(bench.device, n, 1)
    double, plus, fused = (
        arrays.ready(shared, name, (CHECKED,), arrays.elementwise(name))
        for name in ("double", "plus_one", "double_plus_one")
    )
    then = bench.device.bind(plus.program, plus.launch, (double.sets[0][-1], plus.sets[0][-1]), plus.sizes)

    def two(i: int) -> None:
        double.run(i)
        then()

    runs: dict[str, Callable[[int], object]] = {TWO: two, ONE: fused.run}
    try:
        x = bench.torch.randn(n, device=bench.device.torch)
        runs[EAGER] = bench.framework(lambda: x * 2 + 1)
    except Missing as error:
        bench.note(str(error))
    return runs


def _ratio(two: Value, one: Value) -> float | None:
    return float(two) / float(one) if two and one else None


def _row(bench: Bench, n: int, name: str, run: Callable[[int], object], method: Method) -> Row:
    timing = bench.time(run, method)
    rate = MOVED[name] * n / timing.seconds
    fits = MOVED[name] * n < 2 * bench.last_cache
    return {
        "elements": n,
        "way": name,
        "method": timing.method,
        "seconds": timing.seconds,
        "spread": timing.spread,
        "bandwidth": rate,
        "note": "" if fits else gate(rate, bench.most_bandwidth(), "bandwidth"),
    }


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    gains = [row for row in rows if amount(row, "gain") and not row["note"]]
    if not gains:
        return "Too little was measured to compare two kernels with one."
    largest, smallest = max(_n(row) for row in gains), min(_n(row) for row in gains)
    parts = []
    for n in dict.fromkeys((largest, smallest)):
        for row in (row for row in gains if _n(row) == n):
            parts.append(
                f"{n:,} elements {row['method']}: {_told(amount(row, 'seconds'), amount(row, 'gain'))}, "
                f"{_why(bench, n)}"
            )
    first = next(row for row in gains if _n(row) == largest)
    verdict = _verdict(amount(first, "gain"))
    text = f"{verdict} {'; '.join(parts)}."
    eager = next((row for row in rows if row["way"] == EAGER and _n(row) == largest), None)
    if eager is not None:
        ratio = amount(eager, "seconds") / amount(first, "seconds")
        text += f" torch's eager x * 2 + 1 takes {ratio:.1f}x the one kernel's time at {largest:,}"
        text += " elements, as it takes new memory for both results." if ratio > EXPECTED * (1 + NEAR) else " elements."
    return text


def _n(row: Row) -> int:
    return int(row["elements"] or 0)


def _told(one: float, gain: float) -> str:
    return f"{units.seconds(one * gain)} as two, {units.seconds(one)} as one, {gain:.2f}x"


def _verdict(gain: float) -> str:
    if abs(gain - EXPECTED) <= NEAR * EXPECTED:
        return "Fusing halves the time, as it halves the bytes and the launches:"
    if gain > EXPECTED:
        return "Fusing saves more than half, so the array between the two costs more than its bytes:"
    return "Fusing saves less than the half that the bytes and launches are:"


def _why(bench: Bench, n: int) -> str:
    moved = MOVED[TWO] * n
    if moved < bench.last_cache:
        return "in cache, where launching counts"
    return "past the caches, where bytes count"


def _picture(rows: Sequence[Row], bench: Bench) -> Picture:
    series = []
    for method in dict.fromkeys(str(row["method"]) for row in rows):
        for way in dict.fromkeys(str(row["way"]) for row in rows):
            mine = [row for row in rows if row["way"] == way and row["method"] == method]
            x = tuple(float(_n(row)) for row in mine)
            if mine:
                series.append(Series(f"{way}, {method}", x, tuple(amount(row, "seconds") for row in mine)))
    return Picture("x * 2 + 1", Axis("elements", "count", 2), Axis("time", "s", 10), tuple(series))


register(
    Experiment(
        name="fusion",
        question="What does fusing two kernels into one save?",
        columns=(
            Column("elements", "elements", "count"),
            Column("way", "way", "text"),
            Column("method", "timed", "text"),
            Column("seconds", "time", "s", bar=True),
            Column("spread", "spread", "share", extra=True),
            Column("bandwidth", "bandwidth", "B/s"),
            Column("gain", "two / one", "ratio"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
    )
)

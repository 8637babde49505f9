"""What does fusing save? x * 2 then + 1 as two kernels, against one that does both.

Two kernels move 16 n bytes and launch twice; one moves 8 n and launches once. Expect half the time wherever memory or
launching is the limit, which for this much arithmetic is everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ridgepole import units
from ridgepole.errors import Missing
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.timing import Method

ITEM = 4
SMALL, STEP = 1 << 12, 1 << 5
"""The least elements, and how much more each size has."""
PAST_CACHE = 4
MOST = 1 << 28
TWO, ONE, EAGER = "two kernels", "one kernel", "torch, x * 2 + 1"
MOVED = {TWO: 4.0 * ITEM, ONE: 2.0 * ITEM, EAGER: 4.0 * ITEM}
"""Bytes an element."""


def sizes(bench: Bench) -> list[int]:
    """From a few KB, where launching is all, to well past the last cache."""
    past = 1 if bench.quick else PAST_CACHE
    most = min(MOST, 1 << (past * bench.last_cache // ITEM - 1).bit_length())
    found = [most]
    while found[-1] // STEP >= SMALL:
        found.append(found[-1] // STEP)
    return found[::-1]


def _rows(bench: Bench) -> Iterator[Row]:
    methods: tuple[Method, ...] = ("queued", "graph") if bench.device.backend == "cuda" else ("queued",)
    for n in sizes(bench):
        bench.note(f"{n:,} elements")
        double, plus, fused = (bench.kernel(name, n) for name in ("double", "plus_one", "double_plus_one"))

        def two(i: int, first: Callable[[int], object] = double.run, then: Callable[[int], object] = plus.run) -> None:
            first(i)
            then(i)

        runs: dict[str, Callable[[int], object]] = {TWO: two, ONE: fused.run}
        try:
            runs[EAGER] = _eager(bench, n)
        except Missing as error:
            bench.note(str(error))
        for method in methods:
            for name, run in runs.items():
                yield _row(bench, n, name, run, method)
        del double, plus, fused, runs, two


def _eager(bench: Bench, n: int) -> Callable[[int], object]:
    x = bench.torch.randn(n, device=bench.device.torch)
    return bench.framework(lambda: x * 2 + 1)


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
    said = []
    for n in dict.fromkeys(row["elements"] for row in rows):
        for method in dict.fromkeys(row["method"] for row in rows):
            at = {
                str(row["way"]): float(row["seconds"] or 0)
                for row in rows
                if row["elements"] == n and row["method"] == method
            }
            if at.get(TWO) and at.get(ONE):
                said.append(
                    f"{n:,} elements {method}: {units.seconds(at[TWO])} as two, {units.seconds(at[ONE])} as one, "
                    f"{at[TWO] / at[ONE]:.2f}x"
                )
    return "Fusing halves the bytes and the launches. " + "; ".join(said) + "." if said else "Too little was measured."


def _picture(rows: Sequence[Row], bench: Bench) -> Picture:
    series = []
    for way in dict.fromkeys(str(row["way"]) for row in rows):
        mine = [row for row in rows if row["way"] == way and row["method"] == "queued"]
        x = tuple(float(row["elements"] or 0) for row in mine)
        series.append(Series(way, x, tuple(float(row["seconds"] or 0) for row in mine)))
    return Picture("x * 2 + 1", Axis("elements", "count", 2), Axis("time, queued", "s", 10), tuple(series))


register(
    Experiment(
        name="fusion",
        question="What does fusing two kernels into one save?",
        columns=(
            Column("elements", "elements", "count"),
            Column("way", "way", "text"),
            Column("method", "timed", "text"),
            Column("seconds", "time", "s", bar=True),
            Column("spread", "spread", "share"),
            Column("bandwidth", "bandwidth", "B/s"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
    )
)

"""How fast does memory move? Addition and copying, plain, wide and streaming, beside the framework's copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ridgepole import units
from ridgepole.errors import Missing
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.timing import Timing

KERNELS = ("add", "add_wide", "add_stream", "copy", "copy_wide", "copy_stream")
ITEM = 4
PAST_CACHE = 4
"""One array holds at least this many last-level caches."""
MOST_ELEMENTS = 1 << 28
"""1 GiB of float32 an array."""


def elements(bench: Bench) -> int:
    """Elements of one array: past the caches, a power of two, at most 1 GiB."""
    wanted = (1 if bench.quick else PAST_CACHE) * bench.last_cache // ITEM
    if not bench.on_cpu and not bench.quick:
        wanted = MOST_ELEMENTS
    least = 1 << max(22, wanted - 1).bit_length() if wanted > 1 << 22 else 1 << 22
    return min(least, MOST_ELEMENTS)


def _rows(bench: Bench) -> Iterator[Row]:
    n = elements(bench)
    for name in KERNELS:
        bench.note(f"{name}: {n:,} elements")
        ready = bench.kernel(name, n)
        yield _row(bench, name, ready.bytes, bench.time(ready.run))
        del ready
    try:
        torch = bench.torch
    except Missing as error:
        bench.note(str(error))
        return
    x = torch.randn(n, device=bench.device.torch)
    y, z = torch.empty_like(x), torch.randn(n, device=bench.device.torch)
    yield _row(bench, "torch copy_", 2.0 * ITEM * n, bench.time(bench.framework(lambda: y.copy_(x))))
    yield _row(bench, "torch add", 3.0 * ITEM * n, bench.time(bench.framework(lambda: torch.add(x, z, out=y))))


def _row(bench: Bench, name: str, moved: float, timing: Timing) -> Row:
    rate = moved / timing.seconds
    sheet = None if bench.machine is None else bench.machine.bandwidth
    return {
        "kernel": name,
        "bytes": moved,
        "seconds": timing.seconds,
        "spread": timing.spread,
        "bandwidth": rate,
        "of_datasheet": rate / sheet if sheet else None,
        "note": gate(rate, bench.most_bandwidth(), "bandwidth"),
    }


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    sound = [row for row in rows if not row["note"]] or list(rows)
    best = max(sound, key=lambda row: float(row["bandwidth"] or 0))
    return f"the best, {best['kernel']}, moves {units.rate_bytes(float(best['bandwidth'] or 0))}"


def _picture(rows: Sequence[Row], bench: Bench) -> Picture:
    names = tuple(str(row["kernel"]) for row in rows)
    rates = tuple(float(row["bandwidth"] or 0) for row in rows)
    return Picture("Bandwidth", Axis("", "text"), Axis("bandwidth", "B/s"), (Series("measured", names, rates, "bars"),))


register(
    Experiment(
        name="bandwidth",
        question="How fast does memory move?",
        columns=(
            Column("kernel", "kernel", "text"),
            Column("bytes", "moves", "B"),
            Column("seconds", "time", "s"),
            Column("spread", "spread", "share"),
            Column("bandwidth", "bandwidth", "B/s", bar=True),
            Column("of_datasheet", "of known", "share"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
    )
)

"""A price on one screen: the price, then launch, spread and travel with their arithmetic; machines side by side."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from ridgepole import units
from ridgepole.report import table, words
from ridgepole.report.table import fitted
from ridgepole.report.text import COLOR
from ridgepole.session import Priced, PriceRun, Run

NO_ROOM = "does not fit"
"""How the note begins that belongs beside the price itself."""


def render(run: PriceRun, *, width: int = 100, top: int = 8, number: int | None = None, color: bool = False) -> str:
    """The price as text. `number`: the run's, where it was saved."""
    return table.render(_parts(run, top, number), width=width, color=color)


def _parts(run: PriceRun, top: int, number: int | None) -> Iterable[Text | Table]:
    yield Text(f"price of {run.target}", style="bold")
    if len(run.prices) > 1:
        yield _side_by_side(run.prices)
    for price, predicted in zip(run.prices, run.runs, strict=True):
        yield from _one(price, predicted, top)
    if number is not None:
        yield Text(f"saved as run {number} · ridgepole show {number} -o timeline.trace.json", style="dim")


def _side_by_side(prices: tuple[Priced, ...]) -> Table:
    rows = []
    for p in prices:
        bucket = max(p.buckets, key=lambda b: p.buckets[b], default="")
        said = [
            p.machine,
            p.mode,
            units.seconds(p.seconds),
            f"{units.seconds(p.low)} to {units.seconds(p.high)}",
            units.seconds(p.gpu_seconds),
            units.seconds(p.launch_seconds),
            units.seconds(p.travel_seconds),
            units.seconds(p.math_seconds),
            bucket,
        ]
        rows.append([Text(one) for one in said])
    names = ("machine", "mode", "price", "range", "GPU", "launch", "travel", "math", "mostly")
    return fitted(names, rows, left=("mode", "mostly"), giving=("machine",))


def _one(p: Priced, predicted: Run, top: int) -> Iterable[Text | Table]:
    yield Text()
    yield Text(f"{p.machine} · {p.mode}", style="bold")
    yield _lines(p, predicted)
    if len(p.ops) > 1:
        yield _ops(p, top)
    yield _gaps(p)


def _lines(p: Priced, predicted: Run) -> Table:
    """The price, then what it is made of: each under its label, long lines kept under their own start."""
    lines = _labelled()

    def add(label: str, *said: str | tuple[str, str]) -> None:
        lines.add_row(f"  {label}", Text.assemble(*said))

    whose = "CPU" if predicted.busiest.device == "cpu" else "GPU"
    price = (units.seconds(p.seconds), "bold")
    add(
        "price",
        price,
        f" ({units.seconds(p.low)} to {units.seconds(p.high)})   {whose} busy {units.seconds(p.gpu_seconds)}",
    )
    add("", (f"range: {p.range_source}", "dim"))
    for note in p.notes:
        if note.startswith(NO_ROOM):
            add("", (note, "bold red"))
    add("ledger", *_ledger(predicted))
    add("launch", _launch(p))
    for g in p.geometry[:3]:
        said = f"{g.op}: {g.elements:,} in {g.grid:,} blocks of {g.block}, {g.blocks_per_sm} an SM"
        add("spread", f"{said}: {words.waves(g.waves)} of {g.wave:,}")
    travel = f"{units.nbytes(p.bytes)} / {units.rate_bytes(p.bandwidth)} = {units.seconds(p.travel_seconds)}"
    add("travel", travel)
    add("math", f"{units.flops(p.flops)} / {units.rate_flops(p.math_rate)} = {units.seconds(p.math_seconds)}")
    if p.parameter_bytes:
        weights = f"{units.nbytes(p.parameter_bytes)} of weights = {units.seconds(p.parameter_bytes / p.bandwidth)}"
        add("memory", f"{weights} to read once   peak {units.nbytes(p.peak_memory_bytes)}")
    if p.fused is not None and p.fused.launches < p.launches:
        fewer = (
            f"{_kernels(p.fused.launches)} instead of {p.launches:,}: {units.seconds(p.fused.travel_seconds)} of travel"
        )
        add("fused", f"{fewer}, {units.seconds(p.fused.seconds)}   (--mode compiled)")
    for finding in predicted.findings[:2]:
        add("finding", finding.summary)
        if finding.fix_summary:
            add("", (f"fix: {finding.fix_summary}", "dim"))
    return lines


def _ledger(predicted: Run) -> list[str | tuple[str, str]]:
    said: list[str | tuple[str, str]] = []
    for bucket, ns in words.shown_buckets(predicted.busiest):
        share = units.percent(ns / (predicted.window_ns or 1))
        said += [(f"{bucket} {share} ({units.nanoseconds(ns)})", COLOR[bucket]), "   "]
    return said


def _launch(p: Priced) -> str:
    source = p.sources.get("launch", "").split(":")[0]
    if p.mode == "graph":
        return f"1 graph of {_kernels(p.launches)}: {units.seconds(p.launch_seconds)} on the CPU   {source}"
    each = f"{_kernels(p.launches)} x {units.seconds(p.launch_cost)}"
    return f"{each} on the CPU = {units.seconds(p.launch_seconds)}   {source}"


def _kernels(count: int) -> str:
    return f"{count:,} kernel{'s' if count != 1 else ''}"


def _gaps(p: Priced) -> Table:
    """What has no price, and what was assumed."""
    lines = _labelled()
    for u in p.unpriced[:5]:
        said = f"{u.op} x {u.count:,} ({units.percent(u.share)} of launches): {u.reason}"
        lines.add_row(Text("  unpriced", style="yellow"), Text(said, style="yellow"))
    if len(p.unpriced) > 5:
        more = f"{len(p.unpriced) - 5} more operators (see --json)"
        lines.add_row(Text("  unpriced", style="yellow"), Text(more, style="yellow"))
    for note in p.notes:
        if not note.startswith(NO_ROOM):
            lines.add_row(Text("  note", style="dim"), Text(note, style="dim"))
    return lines


def _labelled() -> Table:
    lines = Table.grid(padding=(0, 2, 0, 0))
    lines.add_column(no_wrap=True, min_width=10)
    lines.add_column()
    return lines


def _ops(p: Priced, top: int) -> Table:
    ordered = sorted(p.ops, key=lambda o: -o.seconds)
    rows = [
        [
            Text(o.op),
            Text(f"{o.count:,}"),
            Text(units.seconds(o.seconds)),
            Text(words.intensity(o.flops / o.bytes) if o.bytes else "-"),
            Text(o.limit),
            Text(o.where),
        ]
        for o in ordered[:top]
    ]
    if len(ordered) > top:
        rest = sum(o.seconds for o in ordered[top:])
        rows.append([Text(f"{len(ordered) - top} more"), Text(), Text(units.seconds(rest)), Text(), Text(), Text()])
    names = ("op", "calls", "time", "FLOP/B", "limit", "where")
    return fitted(names, rows, left=("limit",), giving=("op", "where"))

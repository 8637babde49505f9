"""A price on one screen: launch, spread, travel, price; the arithmetic visible; machines side by side."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from ridgepole import units
from ridgepole.report import table, words
from ridgepole.report.table import fitted
from ridgepole.report.text import COLOR
from ridgepole.session import Priced, PriceRun, Run


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
    yield Text(
        f"  launch    {p.launches:,} kernel{'s' if p.launches != 1 else ''} x {units.seconds(p.launch_cost)} "
        f"on the CPU = {units.seconds(p.launch_seconds)}   {p.sources.get('launch', '').split(':')[0]}"
    )
    for g in p.geometry[:3]:
        yield Text(
            f"  spread    {g.elements:,} elements · {g.grid:,} blocks of {g.block} · {g.blocks_per_sm} a SM · "
            f"{g.wave:,} a wave · {g.waves:.1f} waves   {g.op}"
        )
    yield Text(
        f"  travel    {units.nbytes(p.bytes)} / {units.rate_bytes(p.bandwidth)} = {units.seconds(p.travel_seconds)}"
        f"    math {units.flops(p.flops)} / {units.rate_flops(p.math_rate)} = {units.seconds(p.math_seconds)}"
    )
    if p.parameter_bytes:
        yield Text(
            f"  memory    {units.nbytes(p.parameter_bytes)} of weights = "
            f"{units.seconds(p.parameter_bytes / p.bandwidth)} to read once   peak {units.nbytes(p.peak_memory_bytes)}"
        )
    yield Text.assemble(
        ("  price     ", ""),
        (units.seconds(p.seconds), "bold"),
        f" ({units.seconds(p.low)} to {units.seconds(p.high)}, {p.range_source})",
        f"   GPU busy {units.seconds(p.gpu_seconds)}",
    )
    if p.fused is not None and p.fused.launches < p.launches:
        yield Text(
            f"  fused     {p.fused.launches:,} kernel{'s' if p.fused.launches != 1 else ''} instead of {p.launches:,}: "
            f"{units.seconds(p.fused.travel_seconds)} of travel, {units.seconds(p.fused.seconds)}   (--mode compiled)"
        )
    parts = [
        (f"{bucket} {units.percent(ns / (predicted.window_ns or 1))} ({units.nanoseconds(ns)})", COLOR[bucket])
        for bucket, ns in words.shown_buckets(predicted.busiest)
    ]
    yield Text.assemble("  ledger    ", *[piece for part in parts for piece in (part, "   ")])
    for finding in predicted.findings[:2]:
        yield Text(f"  finding   {finding.summary}")
        if finding.fix_summary:
            yield Text(f"            fix: {finding.fix_summary}", style="dim")
    if len(p.ops) > 1:
        yield _ops(p, top)
    for u in p.unpriced[:5]:
        yield Text(
            f"  unpriced  {u.op} x {u.count:,} ({units.percent(u.share)} of launches): {u.reason}", style="yellow"
        )
    if len(p.unpriced) > 5:
        yield Text(f"  unpriced  {len(p.unpriced) - 5} more operators (see --json)", style="yellow")
    for note in p.notes:
        yield Text(f"  note: {note}", style="dim")


def _ops(p: Priced, top: int) -> Table:
    ordered = sorted(p.ops, key=lambda o: -o.seconds)
    rows = [
        [
            Text(o.op),
            Text(f"{o.count:,}"),
            Text(units.seconds(o.seconds)),
            Text(f"{o.flops / o.bytes:.3g}" if o.bytes else "-"),
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

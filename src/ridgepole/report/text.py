"""A run on one screen of a terminal: the verdict first, the arithmetic visible, the next command to type."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from ridgepole import units
from ridgepole.attribute.causes import CAUSES
from ridgepole.attribute.ledger import Bucket, DeviceLedger, OpRow
from ridgepole.attribute.short import short
from ridgepole.explain.finding import Finding
from ridgepole.report import table, words
from ridgepole.report.table import cut, fitted
from ridgepole.session import Run

COLOR: dict[Bucket, str] = {
    "compute": "green",
    "memory": "blue",
    "transfer": "cyan",
    "communication": "magenta",
    "overhead": "red",
    "unknown": "yellow",
}
MOST_FINDINGS = 5
SMALL_CAUSE = 0.005
"""Share of the window under which a cause is not worth its own line."""


def render(run: Run, *, width: int = 100, top: int = 10, number: int | None = None, color: bool = False) -> str:
    """The report as text. `number`: the run's, where it was saved. `color`: with ANSI colours."""
    return table.render(_parts(run, width, top, number), width=width, color=color)


def _parts(run: Run, width: int, top: int, number: int | None) -> Iterable[Text | Table]:
    yield Text(words.headline(run), style="bold")
    yield Text(f"{run.target} · {run.window_rule}" if run.target else run.window_rule, style="dim")
    yield Text()
    yield _ledger(run, width)
    yield Text("  " + words.utilization(run), style="dim")
    if said := words.inflation(run):
        yield Text(f"  {said}", style="dim")
    yield Text()
    yield _findings(run)
    yield _ops(run.busiest, top, width)
    yield Text(words.known(run.busiest), style="dim")
    for device in run.devices[1:]:
        yield Text(words.summary(device, run.window_ns), style="dim")
    for note in run.notes:
        yield Text(f"note: {note}", style="dim")
    if number is not None:
        yield Text(f"saved as run {number} · ridgepole show {number} -o report.html", style="dim")


def _ledger(run: Run, width: int) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    cells = max(10, min(36, width - 72))
    window = run.window_ns or 1
    for bucket, ns in words.shown_buckets(run.busiest):
        share = ns / window
        table.add_row(
            Text(f"  {bucket}", style=f"bold {COLOR[bucket]}"),
            Text(words.bar(share, cells).ljust(cells), style=COLOR[bucket]),
            units.percent(share),
            units.nanoseconds(ns),
            cut(Text(words.MEANING[bucket], style="dim")),
        )
        _causes(table, run, bucket, window)
    return table


def _causes(table: Table, run: Run, bucket: Bucket, window: int) -> None:
    entries = sorted((e for e in run.busiest.entries if e.bucket == bucket), key=lambda e: -e.ns)
    if len(entries) == 1 and entries[0].cause == bucket:
        return
    for entry in entries:
        if entry.ns / window < SMALL_CAUSE:
            continue
        table.add_row(
            "",
            Text(f"  {entry.cause}", style=COLOR[bucket]),
            units.percent(entry.ns / window),
            units.nanoseconds(entry.ns),
            cut(Text(CAUSES.get(entry.cause, ""), style="dim")),
        )


def _findings(run: Run) -> Table:
    """Each finding with its fix, the reason and what to type, long lines kept under their own start."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column()
    for index, finding in enumerate(run.findings[:MOST_FINDINGS], start=1):
        table.add_row(Text(f"  {index}", style="bold"), Text(finding.summary))
        for label, said in (("fix", _fix(finding)), ("because", finding.arithmetic), ("how", finding.how)):
            if said:
                table.add_row(Text(f"    {label}", style="dim"), Text(said))
        table.add_row("", "")
    return table


def _fix(finding: Finding) -> str:
    if not finding.fix_summary or not finding.upper_bound:
        return finding.fix_summary
    slowed = ": recording slowed the CPU" if finding.fix == "cuda-graph" else ""
    return f"{finding.fix_summary}   (upper bound{slowed})"


def _ops(device: DeviceLedger, top: int, width: int) -> Table:
    wide = width >= 96
    ordered = sorted(device.ops, key=lambda r: -r.ns)
    busy = sum(row.ns for row in ordered) or 1
    cells = [_op_cells(row, busy, wide) for row in ordered[:top]]
    if len(ordered) > top:
        left = sum(row.ns for row in ordered[top:])
        rest = [Text(f"{len(ordered) - top} more", style="dim"), Text(), Text(units.nanoseconds(left))]
        cells.append([*rest, Text(units.percent(left / busy))])
    names = ["op", "calls", "time", "share", "bucket", "FLOP/B", *(["FLOP/s", "B/s"] if wide else []), "of roof"]
    if wide:
        names.append("where")
    return fitted(names, cells, left=("bucket",), giving=("op", "where"))


def _op_cells(row: OpRow, busy: int, wide: bool) -> list[Text]:
    mark = {"exact": "", "inferred": " ~", "unknown": " ?"}[row.quality]
    seconds = row.known_ns * 1e-9
    said = [
        short(row.op) + mark,
        f"{row.count:,}",
        units.nanoseconds(row.ns),
        units.percent(row.ns / busy),
        row.bucket,
        "-" if row.intensity is None else words.intensity(row.intensity),
    ]
    if wide:
        said.append(units.rate_flops(row.flops / seconds).removesuffix("FLOP/s") if row.flops and seconds else "-")
        said.append(units.rate_bytes(row.bytes / seconds).removesuffix("B/s") if row.bytes and seconds else "-")
    said.append("-" if row.efficiency is None else units.percent(row.efficiency))
    if wide:
        said.append(row.where or row.shapes)
    cells = [Text(one) for one in said]
    cells[4].stylize(COLOR[row.bucket])
    return cells

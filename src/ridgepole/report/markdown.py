"""A run as GitHub-style markdown, for a pull request or an issue."""

from __future__ import annotations

from ridgepole import units
from ridgepole.report import words
from ridgepole.session import PriceRun, Run


def render(run: Run, *, top: int = 15) -> str:
    """Ledger, findings and operators of the busiest device."""
    window = run.window_ns or 1
    lines = [f"## {_cell(words.headline(run))}", ""]
    if run.target:
        lines += [f"`{_code(run.target)}`", ""]
    lines += ["| bucket | share | time | |", "|---|---:|---:|---|"]
    for bucket, ns in words.shown_buckets(run.busiest):
        share = ns / window
        lines.append(f"| {bucket} | {units.percent(share)} | {units.nanoseconds(ns)} | {words.bar(share, 20)} |")
    lines += ["", words.utilization(run), ""]
    for index, finding in enumerate(run.findings, start=1):
        lines.append(f"{index}. **{_cell(finding.summary)}**")
        if finding.fix_summary:
            lines.append(f"   - fix: {_cell(finding.fix_summary)}{' (upper bound)' if finding.upper_bound else ''}")
        if finding.how:
            lines.append(f"   - how: `{_code(finding.how)}`")
    lines += ["", "| op | calls | time | bucket | FLOP/B | of roof | where |", "|---|---:|---:|---|---:|---:|---|"]
    for row in sorted(run.busiest.ops, key=lambda r: -r.ns)[:top]:
        intensity = "" if row.intensity is None else words.intensity(row.intensity)
        reached = "" if row.efficiency is None else units.percent(row.efficiency)
        lines.append(
            f"| `{_code(row.op)}` | {row.count:,} | {units.nanoseconds(row.ns)} | {row.bucket} | {intensity} "
            f"| {reached} | {_cell(row.where or row.shapes)} |"
        )
    lines += ["", words.known(run.busiest)]
    lines += ["", *(f"- {_cell(note)}" for note in run.notes)] if run.notes else []
    return "\n".join(lines) + "\n"


def render_price(run: PriceRun) -> str:
    """One row a machine and mode."""
    lines = [f"## Price of `{_code(run.target)}`", ""]
    lines += [
        "| machine | mode | price | range | GPU | launches | bytes | FLOP |",
        "|---|---|---:|---|---:|---:|---:|---:|",
    ]
    for p in run.prices:
        lines.append(
            f"| {_cell(p.machine)} | {p.mode} | {units.seconds(p.seconds)} | {units.seconds(p.low)} to "
            f"{units.seconds(p.high)} | {units.seconds(p.gpu_seconds)} | {p.launches:,} | {units.nbytes(p.bytes)} "
            f"| {units.flops(p.flops)} |"
        )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    plain = text.replace("|", "\\|").replace("\n", " ")
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _code(text: str) -> str:
    return text.replace("`", "'").replace("|", "\\|").replace("\n", " ")

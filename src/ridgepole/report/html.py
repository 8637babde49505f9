"""A run as one self-contained HTML page: works from disk, offline, with no script and no request to anywhere."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader

from ridgepole import units
from ridgepole.attribute.causes import CAUSES
from ridgepole.attribute.ledger import BUCKETS, OpRow
from ridgepole.attribute.short import short
from ridgepole.report import words
from ridgepole.session import Run

MOST_OPS = 200
"""Rows of the operator table; the rest is in the JSON and CSV."""


def render(run: Run) -> str:
    """The page. Every name from a trace is escaped: it appears as text."""
    page = Environment(loader=PackageLoader("ridgepole.report"), autoescape=True).get_template("report.html.j2")
    ops = sorted(run.busiest.ops, key=lambda row: -row.ns)
    busy = sum(row.ns for row in ops) or 1
    ledger = [_ledger_row(run, bucket, ns) for bucket, ns in words.shown_buckets(run.busiest)]
    return page.render(
        run=run,
        title=run.target,
        headline=words.headline(run),
        buckets=BUCKETS,
        ledger=ledger,
        spoken=", ".join(f"{row['bucket']} {row['percent']}" for row in ledger),
        utilization=words.utilization(run),
        inflation=words.inflation(run),
        known=words.known(run.busiest),
        ops=[_op_row(row, busy) for row in ops[:MOST_OPS]],
        others=[words.summary(device, run.window_ns) for device in run.devices[1:]],
    )


def _ledger_row(run: Run, bucket: Any, ns: int) -> dict[str, Any]:
    window = run.window_ns or 1
    causes = sorted((e for e in run.busiest.entries if e.bucket == bucket and e.ns), key=lambda e: -e.ns)
    return {
        "bucket": bucket,
        "share": ns / window,
        "percent": units.percent(ns / window),
        "time": units.nanoseconds(ns),
        "meaning": words.MEANING[bucket],
        "causes": [
            {
                "name": e.cause,
                "percent": units.percent(e.ns / window),
                "time": units.nanoseconds(e.ns),
                "meaning": CAUSES.get(e.cause, ""),
            }
            for e in causes
            if e.cause != bucket
        ],
    }


def _op_row(row: OpRow, busy: int) -> dict[str, str]:
    seconds = row.known_ns * 1e-9
    return {
        "op": short(row.op),
        "count": f"{row.count:,}",
        "time": units.nanoseconds(row.ns),
        "share": units.percent(row.ns / busy),
        "bucket": row.bucket,
        "intensity": "" if row.intensity is None else words.intensity(row.intensity),
        "flops": units.rate_flops(row.flops / seconds) if row.flops and seconds else "",
        "bytes": units.rate_bytes(row.bytes / seconds) if row.bytes and seconds else "",
        "roof": "" if row.efficiency is None else units.percent(row.efficiency),
        "quality": row.quality,
        "where": row.where or row.shapes,
    }

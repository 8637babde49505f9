"""A run as CSV: one row an operator; or a price: one row an operator of each machine and mode."""

from __future__ import annotations

import csv
import io

from ridgepole.session import PriceRun, Run


def render(run: Run) -> str:
    """Operators of the busiest device, after one row a bucket."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    write(["row", "name", "count", "ns", "bucket", "flops", "bytes", "intensity", "efficiency", "quality", "where"])
    for entry in run.busiest.entries:
        write(["cause", entry.cause, "", entry.ns, entry.bucket, "", "", "", "", "", ""])
    for r in run.busiest.ops:
        figures = [_or(r.flops), _or(r.bytes), _or(r.intensity), _or(r.efficiency)]
        write(["op", _safe(r.op), r.count, r.ns, r.bucket, *figures, r.quality, _safe(r.where or r.shapes)])
    return out.getvalue()


def render_price(run: PriceRun) -> str:
    """Operators of every price."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    write(["machine", "mode", "op", "count", "seconds", "bucket", "flops", "bytes", "limit", "where"])
    for p in run.prices:
        for o in p.ops:
            write(
                [
                    p.machine,
                    p.mode,
                    _safe(o.op),
                    o.count,
                    o.seconds,
                    o.bucket,
                    o.flops,
                    o.bytes,
                    o.limit,
                    _safe(o.where),
                ]
            )
    return out.getvalue()


def _or(value: float | int | None) -> float | int | str:
    return "" if value is None else value


def _safe(text: str) -> str:
    # A spreadsheet runs a cell that starts so as a formula; names come from other people's files.
    return "'" + text if text[:1] in "=+-@\t\r" else text

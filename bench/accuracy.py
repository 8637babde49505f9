"""How far prices are from measured kernel times, beside a plain roofline.

    python bench/accuracy.py FILE [FILE ...] --on MACHINE [--json] [--worst N]

Each line of FILE is one call: {"family", "call", "inputs": {name: {"shape", "dtype", "memory_format"?, "high"?}},
"seconds", "tf32"?}. A call goes the ordinary way: expression, capture, price as a graph (no launch gaps); its
device time is compared. An error is price / measured - 1; median, mean and p90 are of its size, bias of itself.
"in range" is the share of measured times between the price's own low and high.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ridgepole.errors import BadInput, RidgepoleError
from ridgepole.machine import catalog
from ridgepole.machine.model import Machine
from ridgepole.price.price import price


@dataclass(frozen=True, slots=True)
class Row:
    """One call: measured and priced seconds, the plain roofline's, and why the price is what it is."""

    family: str
    call: str
    shapes: str
    seconds: float
    priced: float
    low: float
    high: float
    roofline: float
    limit: str
    why: str

    @property
    def error(self) -> float:
        return self.priced / self.seconds - 1

    @property
    def roofline_error(self) -> float:
        return self.roofline / self.seconds - 1

    @property
    def in_range(self) -> bool:
        return self.low <= self.seconds <= self.high


def read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The rows of the files that have a measured time. Raises BadInput, naming the line, for one that is none."""
    rows = []
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}") from error
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if "error" in row:
                    continue
                row["inputs"], row["call"], row["seconds"] = (
                    dict(row["inputs"]),
                    str(row["call"]),
                    float(row["seconds"]),
                )
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise BadInput(f"{path}, line {number} is not a measured call: {error}") from error
            rows.append(row)
    return rows


def priced(row: dict[str, Any], machine: Machine) -> Row:
    """`row` put through the ordinary path. Raises RidgepoleError where a part of it has no price."""
    from ridgepole.work.targets import expression

    result = price(expression.from_row(row).capture(), machine, "graph", tf32=bool(row.get("tf32")))
    if result.unpriced:
        raise BadInput("no price: " + ", ".join(f"{u.operator} ({u.why})" for u in result.unpriced))
    if not result.ops:
        raise BadInput("no kernel: nothing was captured that runs on the device")
    main = result.ops[0].each
    shapes = " ".join("x".join(map(str, spec["shape"])) + f":{spec['dtype']}" for spec in row["inputs"].values())
    return Row(
        family=str(row.get("family", "other")),
        call=row["call"],
        shapes=shapes,
        seconds=row["seconds"],
        priced=result.gpu_seconds,
        low=sum(op.count * op.each.low for op in result.ops),
        high=sum(op.count * op.each.high for op in result.ops),
        roofline=sum(op.count * max(op.each.compute, op.each.memory) for op in result.ops),
        limit=main.limit,
        why=main.why,
    )


def summary(errors: Sequence[float]) -> dict[str, float]:
    """n, and of the errors: median, mean and 90th percentile of their size; bias, their own mean."""
    sizes = sorted(abs(error) for error in errors)
    return {
        "n": len(sizes),
        "median": statistics.median(sizes),
        "mean": statistics.fmean(sizes),
        "p90": sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))],
        "bias": statistics.fmean(errors),
    }


def report(rows: Sequence[Row], skipped: Counter[str]) -> dict[str, Any]:
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault(row.family, []).append(row)

    def both(group: Sequence[Row]) -> dict[str, Any]:
        figures: dict[str, Any] = summary([row.error for row in group])
        return {**figures, "in_range": statistics.fmean(row.in_range for row in group)}

    return {
        "schema": 1,
        "overall": both(rows),
        "families": {name: both(group) for name, group in sorted(families.items())},
        "roofline": {
            "overall": summary([row.roofline_error for row in rows]),
            "families": {
                name: summary([row.roofline_error for row in group]) for name, group in sorted(families.items())
            },
        },
        "skipped": [{"why": why, "count": count} for why, count in skipped.most_common()],
    }


def show(document: dict[str, Any], rows: Sequence[Row], machine: Machine, worst: int) -> None:
    head = f"{'family':<20}{'n':>6}{'median':>9}{'mean':>9}{'p90':>9}{'bias':>9}{'in range':>10}{'roofline':>10}"
    print(f"{machine.name}: price against measured\n{head}")
    roofline = document["roofline"]
    lines = [*document["families"].items(), ("overall", document["overall"])]
    for name, row in lines:
        plain = roofline["overall"] if name == "overall" else roofline["families"][name]
        print(
            f"{name:<20}{row['n']:>6}{row['median']:>9.1%}{row['mean']:>9.1%}{row['p90']:>9.1%}"
            f"{row['bias']:>+9.1%}{row['in_range']:>10.0%}{plain['mean']:>10.1%}"
        )
    print(f"\nworst {min(worst, len(rows))}")
    for row in sorted(rows, key=lambda row: -abs(row.error))[:worst]:
        print(
            f"{row.error:>+7.0%} {row.seconds * 1e6:>10.2f} µs, priced {row.priced * 1e6:.2f} [{row.limit}] {row.why}"
        )
        print(f"        {row.call}  {row.shapes}")
    for skip in document["skipped"]:
        print(f"skipped {skip['count']}: {skip['why']}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--on", required=True, metavar="MACHINE")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--worst", type=int, default=10, metavar="N", help="rows to show with their reason (10)")
    options = parser.parse_args()
    try:
        machine = catalog.find(options.on)
        calls = read(options.files)
    except RidgepoleError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    rows: list[Row] = []
    skipped: Counter[str] = Counter()
    for call in calls:
        try:
            rows.append(priced(call, machine))
        except RidgepoleError as error:
            skipped[f"{call.get('family', '')}: {error}"] += 1
    if not rows:
        print(f"none of {len(calls)} calls has a price: " + "; ".join(list(skipped)[:3]), file=sys.stderr)
        return 2
    document = report(rows, skipped)
    if options.json:
        print(json.dumps(document, indent=1))
    else:
        show(document, rows, machine, options.worst)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

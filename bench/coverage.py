"""How much of GPU time has a bucket, bytes and FLOPs, trace by trace, and what has not.

    python bench/coverage.py TRACE [TRACE ...] [--beside GRAPH=EAGER ...] [--missing 5] [--json] [--check]

A directory stands for the traces in it; without any, ../shared/traces. `--beside` names, for a trace that has only its
kernels, the trace of the same program that has their ops: it is then shown without and with it. Shares are of the
busiest device's busy time in the window, each nanosecond counted once. `--check` exits with 1 where a trace is below
its floor.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from ridgepole.attribute.attribute import attribute
from ridgepole.attribute.ledger import Coverage, Ledger
from ridgepole.errors import BadInput
from ridgepole.machine import match
from ridgepole.timeline.model import Timeline
from ridgepole.timeline.reader import read

BESIDE = {
    "h200-llama3-8b-decode-b1-ctx128.graph.json.gz": "h200-llama3-8b-decode-b1-ctx128.eager.json.gz",
    "rocm-vllm-decode-graph.json.gz": "rocm-vllm-decode-capture.json.gz",
}
"""Traces of ../shared/traces that have one of the same program beside them."""

EAGER, OTHER, WITH_BESIDE = {"bucket": 0.95, "bytes": 0.95}, {"bucket": 0.8}, {"bytes": 0.9}
"""Least shares: of eager traces with shapes; of graphs, compiled code and traces without shapes; of those with the
eager or capture trace beside them."""
_EAGER = (
    "h100-bert-small h100-owlv2 h100-qwen-0.5b h100-timesformer mi300x-bert-small mi300x-qwen-0.5b b200-vllm-moe-eager "
    "h200-gpt2-train-b8-s1024.eager h200-llama3-8b-decode-b1-ctx128.eager h200-resnet50-infer-b1-float32.eager "
    "two-ranks-0 two-ranks-1"
)
_OTHER = (
    "a100-alexnet a100-compile-graphs-nccl a100-old-flow-category mi210-gpu-only mi300x-sglang-decode-graph "
    "mi300x-torch-compile rocm-vllm-decode-capture rocm-vllm-decode-graph rtx2080ti-linear "
    "v100-resnet50-2021-schema h200-llama3-8b-decode-b1-ctx128.graph"
)
FLOORS = dict.fromkeys(_EAGER.split(), EAGER) | dict.fromkeys(_OTHER.split(), OTHER)
"""By trace. Among the others are traces without shapes, and a100-old-flow-category, an eager trace that misses 95 % of
bytes: the sizes of its lists of tensors (concatenations, optimizer) are not in the file."""

SHOWN_NAME, SHOWN_REASON = 60, 100
"""Characters of a kernel's name and of a reason that are printed."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Kernels of one name without a bucket or without bytes: their share of device time, and why."""

    what: str
    share: float
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """One trace: coverage, seconds of attribution, and what is not known, longest first."""

    trace: str
    beside: str
    machine: str
    coverage: Coverage
    seconds: float
    missing: tuple[Missing, ...]


def measure(path: Path, beside: Path | None, most: int) -> Row:
    """The coverage of the trace at `path`. Raises BadInput where it is none."""
    timeline = read(path)
    machine = match.match(timeline.devices[0]).machine
    other = None if beside is None else read(beside)
    start = time.perf_counter()
    ledger = attribute(timeline, machine, beside=other)
    seconds = time.perf_counter() - start
    missing = tuple(_missing(ledger, timeline)[:most])
    name = "" if beside is None else beside.name
    return Row(path.name, name, ledger.machine, ledger.busiest.coverage, seconds, missing)


def _missing(ledger: Ledger, timeline: Timeline) -> list[Missing]:
    total = sum(timeline.spans[i].ns for i in ledger.work) or 1
    found: Counter[tuple[str, str, str]] = Counter()
    for index, work in ledger.work.items():
        what = "bucket" if work.bucket == "unknown" else "bytes" if work.bytes is None else ""
        if what:
            span = timeline.spans[index]
            found[(what, span.name[:SHOWN_NAME], work.reason[:SHOWN_REASON])] += span.ns
    return [Missing(what, ns / total, name, reason) for (what, name, reason), ns in found.most_common()]


def below(row: Row) -> list[str]:
    """Which shares of a trace are below its floor, each in words."""
    floors = WITH_BESIDE if row.beside else FLOORS.get(row.trace.removesuffix(".json.gz"), {})
    shares = asdict(row.coverage)
    return [f"{what} {shares[what]:.1%} < {least:.0%}" for what, least in floors.items() if shares[what] < least]


def _show(row: Row) -> None:
    c = row.coverage
    shares = "".join(f"{share:8.1%}" for share in (c.bucket, c.bytes, c.flops, c.op, c.in_graph, c.inferred))
    label = f"{row.trace.removesuffix('.json.gz')}{' + beside' if row.beside else ''}"
    print(f"{label:56}{shares}{row.seconds:8.2f}  {row.machine or '(machine not known)'}")
    for one in row.missing:
        print(f"    no {one.what:6}{one.share:7.1%}  {one.name}: {one.reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description="How much of GPU time has a bucket, bytes and FLOPs.")
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--beside", action="append", default=[], metavar="GRAPH=EAGER")
    parser.add_argument("--missing", type=int, default=0, help="how many kernels without a figure to name")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a trace is below its floor")
    options = parser.parse_args()
    given = options.traces or [Path(__file__).resolve().parents[1] / "../shared/traces"]
    paths = [one for path in given for one in (sorted(path.glob("*.json*")) if path.is_dir() else [path])]
    pairs = {**BESIDE, **dict(pair.split("=", 1) for pair in options.beside)}
    rows = []
    if not options.json:
        print(f"{'trace':56}{'bucket':>8}{'bytes':>8}{'FLOPs':>8}{'op':>8}{'graph':>8}{'inferr.':>8}{'s':>8}  machine")
    for path in paths:
        other = pairs.get(path.name)
        near = None if other is None else next((p for p in (Path(other), path.parent / other) if p.exists()), None)
        for beside in (None,) if near is None else (None, near):
            try:
                row = measure(path, beside, options.missing)
            except BadInput:
                continue
            rows.append(row)
            if not options.json:
                _show(row)
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    missed = [
        f"{row.trace}{' + beside' if row.beside else ''}: {', '.join(low)}" for row in rows if (low := below(row))
    ]
    if options.check and missed:
        print("below the floor:", *missed, sep="\n  ", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()

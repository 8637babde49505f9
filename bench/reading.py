"""What it costs to read a trace: time and peak memory, beside json.load and other parsers.

    python bench/reading.py TRACE [TRACE ...] [--repeat 3] [--json]

Each contender reads each file in a process of its own, which measures itself: wall time from the start of reading
(imports done) to the result, and the process's peak resident memory, imports and all. The median of the repeats is
shown, and its ratio to json.load. Only `ridgepole` links, prices and orders what it reads; the others stop at parsed
events ("kept": how many Python objects they leave behind is theirs to say). Parsers that are not installed are
left out by name.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

CONTENDERS: dict[str, tuple[str, str]] = {
    "json.load": ("import gzip, json", "json.load(opened(path))"),
    "orjson": ("import gzip, orjson", "orjson.loads(opened(path).read())"),
    "msgspec untyped": ("import gzip, msgspec", "msgspec.json.decode(opened(path).read())"),
    "ijson, kept": ("import gzip, ijson", "list(ijson.items(opened(path), prefix(path)))"),
    "ijson, dropped": ("import gzip, ijson", "sum(1 for _ in ijson.items(opened(path), prefix(path)))"),
    "our events, dropped": (
        "from ridgepole.timeline.reading.document import Document\n"
        "from ridgepole.timeline.reading.source import Source",
        "sum(map(len, Document(Source(path)).batches()))",
    ),
    "ridgepole": ("from ridgepole.timeline import reader; import ridgepole.work.cost", "reader.read(path)"),
}
"""Name to what it imports and what is timed."""

_PROGRAM = """
import resource, sys, time
{imports}
path = sys.argv[1]
def opened(path):
    import gzip
    return gzip.open(path, "rb") if open(path, "rb").read(2) == b"\\x1f\\x8b" else open(path, "rb")
def prefix(path):
    return "item" if opened(path).read(64).lstrip()[:1] == b"[" else "traceEvents.item"
start = time.perf_counter()
kept = {timed}
wall = time.perf_counter() - start
print(wall, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One contender on one file: medians of wall seconds and of peak bytes."""

    trace: str
    contender: str
    seconds: float
    peak: float


def measure(contender: str, trace: Path, repeat: int) -> Row | None:
    """None where the contender's parser is not installed."""
    imports, timed = CONTENDERS[contender]
    program = _PROGRAM.format(imports=imports, timed=timed)
    figures = []
    for _ in range(repeat):
        ran = subprocess.run([sys.executable, "-c", program, str(trace)], capture_output=True, text=True, check=False)
        if ran.returncode:
            if "ModuleNotFoundError" in ran.stderr:
                return None
            raise SystemExit(f"{contender} on {trace}: {ran.stderr.strip().splitlines()[-1]}")
        seconds, peak = map(float, ran.stdout.split())
        figures.append((seconds, peak))
    return Row(
        trace.name,
        contender,
        statistics.median(seconds for seconds, _ in figures),
        statistics.median(peak for _, peak in figures),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of reading a trace, beside other parsers.")
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows: list[Row] = []
    for trace in asked.traces:
        base: Row | None = None
        if not asked.json:
            print(f"{trace.name}\n  {'':22}{'s':>8}{'MB peak':>10}{'time':>9}{'memory':>9}")
        for contender in CONTENDERS:
            row = measure(contender, trace, asked.repeat)
            if row is None:
                if not asked.json:
                    print(f"  {contender:22}  not installed")
                continue
            rows.append(row)
            base = base or row
            if not asked.json:
                ratios = f"{row.seconds / base.seconds:>8.2f}x{row.peak / base.peak:>8.2f}x"
                print(f"  {contender:22}{row.seconds:>8.2f}{row.peak / 1e6:>10.0f}{ratios}")
    if asked.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()

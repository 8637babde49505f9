"""Prices of whole steps against what `measure.py` measured.

    python bench/steps/price.py MEASURED.jsonl --on MACHINE [--json]

Per step: device seconds ("busy"), eager wall and graph wall, priced / measured - 1. The machine should be one measured
with `ridgepole machine measure` on the same host: wall times are the host's as much as the GPU's.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from models import STEPS

from ridgepole.machine import catalog
from ridgepole.machine.model import Machine
from ridgepole.price.price import price
from ridgepole.work.capture import capture
from ridgepole.work.op import Program


def captured(name: str) -> Program:
    return capture(None, name=name, prepare=lambda: (STEPS[name]("cuda"), (), {}))


def compare(row: dict[str, Any], machine: Machine) -> dict[str, Any]:
    program = captured(row["step"])
    eager = price(program, machine, "eager")
    found = {
        "step": row["step"],
        "busy": (eager.gpu_seconds, row["busy"]),
        "wall": (eager.seconds, row["wall"]["median"]),
        "unpriced": sum(op.count for op in eager.unpriced),
        "kernels": (eager.launches, row["kernels"]),
    }
    if "graph" in row:
        found["graph"] = (price(program, machine, "graph").seconds, row["graph"]["median"])
    if "compiled" in row:
        compiled = price(program, machine, "compiled")
        found["compiled"] = (compiled.seconds, row["compiled"]["median"])
        found["compiled busy"] = (compiled.gpu_seconds, row["compiled_busy"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--on", required=True, metavar="MACHINE")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    machine = catalog.find(options.on)
    rows = [json.loads(line) for line in options.measured.read_text().splitlines()]
    found = [compare(row, machine) for row in rows if "error" not in row]
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for row in found:
        parts = [
            f"{key} {pair[0] * 1e3:.2f} / {pair[1] * 1e3:.2f} ms ({pair[0] / pair[1] - 1:+.1%})"
            for key, pair in row.items()
            if isinstance(pair, tuple) and key != "kernels"
        ]
        print(f"{row['step']}: {'; '.join(parts)}; kernels {row['kernels'][0]} / {row['kernels'][1]:.0f}")
    for key in ("busy", "wall", "graph", "compiled"):
        errors = [abs(row[key][0] / row[key][1] - 1) for row in found if key in row]
        if errors:
            print(f"{key}: median {statistics.median(errors):.1%} of {len(errors)} steps, worst {max(errors):.1%}")


if __name__ == "__main__":
    main()

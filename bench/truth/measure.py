"""Measure calls on the CUDA GPU at hand: truth to hold prices against.

    python bench/truth/measure.py CALLS.jsonl OUT.jsonl [--seconds N]

A call's seconds: the median of seven replays of a CUDA graph that holds it many times (no launch gaps), over as many
copies of its inputs as pass four times the L2 (at most 64), divided by how often it is in the graph. A call that fails
gets "error" instead. Stops after N seconds with what it has.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import torch

from ridgepole.kernels.device import Device, open_device

REPLAYS = 7
PAST_L2 = 4
MOST_COPIES = 64
GRAPH_SECONDS = 2e-3
MOST_CALLS = 200


def made(spec: dict[str, Any]) -> torch.Tensor:
    """A random tensor of a spec: integers below "high", floats of the normal distribution."""
    dtype = getattr(torch, spec["dtype"])
    if not dtype.is_floating_point:
        return torch.randint(0, spec.get("high", 2), spec["shape"], device="cuda", dtype=dtype)
    x = torch.randn(spec["shape"], device="cuda").to(dtype)
    return x.to(memory_format=torch.channels_last) if spec.get("memory_format") == "channels_last" else x


def measure(device: Device, row: dict[str, Any]) -> dict[str, float]:
    """Seconds of a row's call: median, least and most."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = bool(row.get("tf32"))
    call = compile(row["call"], "call", "eval")
    names = {"torch": torch, "F": torch.nn.functional}
    first = {name: made(spec) for name, spec in row["inputs"].items()}
    held = sum(t.numel() * t.element_size() for t in first.values())
    copies = min(MOST_COPIES, max(1, math.ceil(PAST_L2 * (device.limits.l2 or 0) / max(1, held))))
    sets = [first, *({name: made(spec) for name, spec in row["inputs"].items()} for _ in range(copies - 1))]

    def run(i: int) -> object:
        return eval(call, names, sets[i % copies])

    for i in range(3):
        run(i)
    once = device.elapsed(run, 1)
    count = max(copies, min(MOST_CALLS, math.ceil(GRAPH_SECONDS / max(once, 2e-6))))
    count = math.ceil(count / copies) * copies
    replay = device.graph(run, count)
    assert replay is not None
    replay()
    times = sorted(device.elapsed(lambda i: replay(), 1) / count for _ in range(REPLAYS))
    return {"seconds": times[REPLAYS // 2], "low": times[0], "high": times[-1]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("calls", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    device, start, done = open_device("cuda"), time.monotonic(), 0
    rows = [json.loads(line) for line in options.calls.read_text().splitlines()]
    with options.out.open("w") as out, torch.no_grad():
        for row in rows:
            if time.monotonic() - start > options.seconds:
                break
            try:
                row.update(measure(device, row))
            except Exception as error:
                row["error"] = str(error).splitlines()[0][:200]
            out.write(json.dumps(row) + "\n")
            out.flush()
            done += 1
            torch.cuda.empty_cache()
    print(f"{done} of {len(rows)} calls in {time.monotonic() - start:.0f} s, torch {torch.__version__}, {device.name}")


if __name__ == "__main__":
    main()

"""What a price costs: ops priced a second and peak memory, beside PyTorch running the same calls on fake tensors.

    python bench/pricing.py [--calls N] [--json]

Each case runs in a process of its own. "10,000 calls" are drawn by `truth/calls.py`, all different, each captured and
priced by itself, as `accuracy.py` does. "decode, 70B" is one step of a decoder of Llama 3 70B's shapes, captured once
and priced in every mode. Fake tensors compute shapes and nothing else: what PyTorch itself takes to say what a program
does, so the ratio is what recording it and knowing its time cost on top.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

MODES = ("eager", "graph", "compiled")
MACHINE = "h200"
LLAMA_3_70B = {
    "hidden": 8192, "layers": 80, "heads": 64, "kv_heads": 8, "intermediate": 28672, "vocabulary": 128256,
    "context": 8192,
}  # fmt: skip
"""Meta's configuration of Llama 3 70B, at its full context."""
BATCH = 16


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def figures(prices: Sequence[Any], base: float, captured: float, priced: float) -> dict[str, float]:
    """Ops and seconds of a case: on fake tensors alone, captured, priced."""
    return {
        "ops": sum(p.dispatches for p in prices),
        "fake": base,
        "capture": captured,
        "price": priced,
        "unpriced": sum(len(p.unpriced) for p in prices),
    }


def many(count: int) -> dict[str, float]:
    """Calls captured and priced one by one."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from ridgepole.machine import catalog
    from ridgepole.price.price import price
    from ridgepole.work.targets import expression

    rows = drawn(count)
    machine = catalog.find(MACHINE)
    price(expression.from_row(rows[0]).capture(), machine, "graph")
    space = {"torch": torch, "F": torch.nn.functional}

    def fake() -> None:
        for row in rows:
            inputs = {
                name: torch.empty(spec["shape"], dtype=getattr(torch, spec["dtype"]))
                for name, spec in row["inputs"].items()
            }
            eval(row["call"], space, inputs)

    with FakeTensorMode():
        base, _ = timed(fake)
    captured, programs = timed(lambda: [expression.from_row(row).capture() for row in rows])
    priced, prices = timed(lambda: [price(p, machine, "graph") for p in programs])
    return figures(prices, base, captured, priced)


def drawn(count: int) -> list[dict[str, Any]]:
    """`count` different calls without a backward pass of their own."""
    sys.path.insert(0, str(Path(__file__).parent / "truth"))
    import calls

    rows, seen, turn = [], set(), 0
    while len(rows) < count:
        for family, call, inputs, _ in calls.once(Random(calls.SEED + turn)):
            key = json.dumps([call, inputs])
            if "grad" not in call and "backward" not in call and key not in seen and len(rows) < count:
                seen.add(key)
                rows.append({"family": family, "call": call, "inputs": inputs})
        turn += 1
    return rows


def decode(_: int) -> dict[str, float]:
    """One step of a 70B decoder, in every mode."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from ridgepole.lab.decoder import Decoder, Shape
    from ridgepole.machine import catalog
    from ridgepole.price.price import price
    from ridgepole.work.capture import capture

    shape, machine = Shape(**LLAMA_3_70B), catalog.find(MACHINE)

    def made(device: str) -> Callable[[], object]:
        decoder = Decoder(torch, shape, device, torch.bfloat16)
        state = decoder.start(BATCH)
        return torch.no_grad()(lambda: decoder.step(state))

    with FakeTensorMode():
        base, _ = timed(made("cpu"))
    captured, program = timed(lambda: capture(None, name="decode", prepare=lambda: (made("cuda"), (), {})))
    priced, prices = timed(lambda: [price(program, machine, mode) for mode in MODES])
    return figures(prices, base, captured, priced)


CASES = {"many": many, "decode": decode}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000, metavar="N")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        found = CASES[options.case](options.calls)
        unit = 1 if sys.platform == "darwin" else 1024
        print(json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}))
        return
    rows = {}
    for case, name in (("many", f"{options.calls:,} calls"), ("decode", f"decode, 70B, {' + '.join(MODES)}")):
        command = [sys.executable, __file__, "--case", case, "--calls", str(options.calls)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(f"{name}: {(ran.stderr.strip().splitlines() or ['it was killed'])[-1]}")
        rows[name] = json.loads(ran.stdout)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'':<38}{'ops':>8}{'fake s':>9}{'capture s':>11}{'price s':>9}{'ops/s':>9}{'x fake':>8}{'MB peak':>9}")
    for name, row in rows.items():
        print(
            f"{name:<38}{row['ops']:>8,}{row['fake']:>9.2f}{row['capture']:>11.2f}{row['price']:>9.2f}"
            f"{row['ops'] / row['price']:>9,.0f}{(row['capture'] + row['price']) / row['fake']:>8.1f}"
            f"{row['peak'] / 1e6:>9.0f}"
        )


if __name__ == "__main__":
    main()

"""Does `why`, live, tell the wall clock's truth? Three steps timed by a plain stopwatch and by the recorder.

    python bench/live.py [--tiny] [--case NAME ...]

A Llama-3-8B-shaped decode step (batch 1, context 128, bf16, random weights) eager and as one CUDA graph, and a
GPT-2-shaped training step with AdamW. One line of JSON each: the stopwatch's time a step (median of batches of 20
before and after, no profiler anywhere), the ledger's window a step and by how much they differ, the inflation, the
buckets in ms a step, and the step time that the finding predicts for a CUDA graph. Four rounds a case.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import decode

from ridgepole.timeline.record import record_function
from ridgepole.timeline.recording.plan import Plan, Recording

LLAMA_3_8B = decode.Shape(hidden=4096, layers=32, vocab=128256, context=128)
TINY = decode.Shape(hidden=256, layers=2, vocab=512, context=16)
ROUNDS = 4
LISTED = ("bare_before_ms", "bare_after_ms", "drift_percent", "window_ms", "difference_percent", "inflation")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    """One GPT-2 block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


def training_step(*, tiny: bool) -> Callable[[], object]:
    width, heads, layers, batch, length, vocab = (64, 4, 2, 2, 16, 128) if tiny else (768, 12, 12, 8, 512, 50304)
    with torch.device(DEVICE):
        embed = nn.Embedding(vocab, width)
        body = nn.Sequential(*(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width))
        head = nn.Linear(width, vocab, bias=False)
        tokens = torch.randint(vocab, (batch, length + 1))
    model = nn.ModuleList((embed, body, head))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> object:
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            logits = head(body(embed(tokens[:, :-1])))
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def synchronise() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def stopwatch(step: Callable[[], object], batches: int, steps: int = 20) -> list[float]:
    """Seconds a step, one figure a batch, without any profiler."""
    times = []
    for _ in range(batches):
        synchronise()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        synchronise()
        times.append((time.perf_counter() - start) / steps)
    return times


def explained(recording: Recording, steps: int) -> dict[str, object]:
    """What attribution and the findings make of it, in ms a step; why not, where they cannot."""
    timeline = recording.timeline
    if timeline is None:
        return {"error": str(recording.error)}
    window = timeline.window.ns if timeline.scaled_ns is None else timeline.scaled_ns
    told: dict[str, object] = {"window_ms": window / steps / 1e6, "kernels": _kernels(recording, steps)}
    try:
        from ridgepole.attribute.attribute import attribute
        from ridgepole.explain.findings import find
        from ridgepole.machine.match import match

        machine = match(timeline.devices[0]).machine
        ledger = attribute(timeline, machine)
        findings = find(ledger, timeline, machine)
    except ImportError as error:
        return {**told, "error": str(error)}
    told["window_ms"] = ledger.window_ns / steps / 1e6
    told["machine"] = ledger.machine
    told["buckets_ms"] = {k: round(ns / steps / 1e6, 4) for k, ns in ledger.busiest.buckets.items() if ns}
    told["findings"] = [finding.id for finding in findings]
    graph = next((finding for finding in findings if finding.fix == "cuda-graph"), None)
    told["graph_predicted_ms"] = None if graph is None else graph.after_ns / steps / 1e6
    return told


def _kernels(recording: Recording, steps: int) -> float:
    timeline = recording.timeline
    if timeline is None:
        return 0
    window = timeline.window
    return sum(s.kind == "kernel" and window.start <= s.start < window.end for s in timeline.spans) / steps


def measure(name: str, step: Callable[[], object], *, tiny: bool) -> dict[str, object]:
    """Rounds of stopwatch, recorder, stopwatch: the medians of all rounds against each other, and every round.

    The host of a virtual machine wanders by more within a round than the 3 % that is asked for, so a single round
    says little; interleaved, both sides see the same wandering.
    """
    stopwatch(step, 1 if tiny else 4)  # warm-up: kernels are chosen, memory is found, clocks rise
    rounds = [one_round(name, step, tiny=tiny) for _ in range(1 if tiny else ROUNDS)]
    bare = statistics.median(float(str(r[key])) for r in rounds for key in ("bare_before_ms", "bare_after_ms"))
    window = statistics.median(float(str(r["window_ms"])) for r in rounds)
    last = {key: value for key, value in rounds[-1].items() if key not in LISTED}
    return {
        **last,
        "bare_ms": bare,
        "window_ms": window,
        "difference_percent": 100 * (window / bare - 1),
        "rounds": [{key: r.get(key) for key in LISTED} for r in rounds],
    }


def one_round(name: str, step: Callable[[], object], *, tiny: bool) -> dict[str, object]:
    """Stopwatch, recorder, stopwatch."""
    batches = 3 if tiny else 5
    before = stopwatch(step, batches)
    plan = Plan()
    recording = record_function(step, plan=plan)
    after = stopwatch(step, batches)
    first, last = statistics.median(before) * 1e3, statistics.median(after) * 1e3
    bare = statistics.median(before + after) * 1e3
    recorded = {} if recording.recorded_ns is None else {"recorded_ms": recording.recorded_ns / 1e6}
    row: dict[str, object] = {
        "case": name,
        "bare_ms": bare,
        "bare_before_ms": first,
        "bare_after_ms": last,
        "drift_percent": 100 * (last / first - 1),
        "recorder_bare_ms": statistics.median(recording.bare_ns) / 1e6,
        "recorder_batches_ms": [round(ns / 1e6, 3) for ns in recording.bare_ns],
        **recorded,
        "inflation": None if recording.timeline is None else recording.timeline.inflation,
        **explained(recording, plan.steps),
    }
    window = row.get("window_ms")
    if isinstance(window, float):
        row["difference_percent"] = 100 * (window / bare - 1)
    row["notes"] = recording.notes
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="small shapes, for a machine without a GPU")
    parser.add_argument("--case", action="append", choices=["decode-eager", "decode-graph", "train"])
    options = parser.parse_args()
    if DEVICE == "cpu":
        torch.set_num_threads(1)  # threads that wait for each other on a shared machine would time the scheduler
    wanted = options.case or ["decode-eager", "decode-graph", "train"]
    machine = torch.cuda.get_device_name() if DEVICE == "cuda" else "CPU"
    print(json.dumps({"machine": machine, "torch": torch.__version__, "tiny": options.tiny}), flush=True)
    if any(name.startswith("decode") for name in wanted):
        eager = decode.build(TINY if options.tiny else LLAMA_3_8B)
        if "decode-eager" in wanted:
            print(json.dumps(measure("decode-eager", eager, tiny=options.tiny)), flush=True)
        if "decode-graph" in wanted and DEVICE == "cuda":
            print(json.dumps(measure("decode-graph", decode.as_graph(eager), tiny=options.tiny)), flush=True)
        del eager
    if "train" in wanted:
        print(json.dumps(measure("train", training_step(tiny=options.tiny), tiny=options.tiny)), flush=True)


if __name__ == "__main__":
    main()

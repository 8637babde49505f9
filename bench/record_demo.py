"""Record the traces that the demo explains, on the CUDA machine at hand.

    python bench/record_demo.py OUTDIR

Writes four profiler traces (gzip): a Llama-3-8B-shaped decode step of four layers, eager and replayed as a CUDA
graph; a loop of tiny kernels; a training step with a data loader that reads each loss back with `.item()`.
Weights are random: only shapes matter here.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

HIDDEN, HEADS, KV_HEADS, HEAD, MLP, VOCAB, LAYERS, CONTEXT = 4096, 32, 8, 128, 14336, 128256, 4, 128


class Layer(nn.Module):
    """One decoder layer of Llama 3 8B's shapes, one token at a time over a filled KV cache."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)
        self.qkv = nn.Linear(HIDDEN, (HEADS + 2 * KV_HEADS) * HEAD, bias=False)
        self.out = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.gate_up = nn.Linear(HIDDEN, 2 * MLP, bias=False)
        self.down = nn.Linear(MLP, HIDDEN, bias=False)
        self.register_buffer("k", torch.randn(1, KV_HEADS, CONTEXT, HEAD))
        self.register_buffer("v", torch.randn(1, KV_HEADS, CONTEXT, HEAD))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm1(x)).split((HEADS * HEAD, KV_HEADS * HEAD, KV_HEADS * HEAD), dim=-1)
        self.k[:, :, -1] = k.view(1, KV_HEADS, HEAD)
        self.v[:, :, -1] = v.view(1, KV_HEADS, HEAD)
        q = q.view(1, HEADS, 1, HEAD)
        attended = F.scaled_dot_product_attention(q, self.k, self.v, enable_gqa=True)
        x = x + self.out(attended.reshape(1, 1, -1))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.RMSNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB, bias=False)

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.layers(self.embed(token)))).argmax(-1)


def decode_step() -> Callable[[], object]:
    model = Decoder().cuda().bfloat16().eval()
    token = torch.zeros(1, 1, dtype=torch.long, device="cuda")

    @torch.no_grad()
    def step() -> object:
        return model(token)

    return step


def as_graph(step: Callable[[], object]) -> Callable[[], object]:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def launch_bound() -> Callable[[], object]:
    x = torch.randn(1024, device="cuda")

    def step() -> object:
        y = x
        for _ in range(50):
            y = y * 1.0001
            y = y + 0.5
        return y

    return step


def training_step() -> Callable[[], object]:
    data = torch.utils.data.TensorDataset(torch.randn(4096, 784), torch.randint(10, (4096,)))
    batches = iter(torch.utils.data.DataLoader(data, batch_size=64, shuffle=True))
    model = nn.Sequential(nn.Linear(784, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses: list[float] = []

    def step() -> object:
        x, y = next(batches)
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        return losses[-1]

    return step


def record(step: Callable[[], object], path: Path, steps: int = 2) -> None:
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    plain = path.with_suffix("")
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=0, warmup=3, active=steps, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(plain)),
        record_shapes=True,
    ) as profiler:
        for _ in range(3 + steps):
            step()
            torch.cuda.synchronize()
            profiler.step()
    trace = json.loads(plain.read_text())
    trace["traceName"] = plain.name
    with gzip.open(path, "wt", compresslevel=9) as packed:
        json.dump(trace, packed, separators=(",", ":"))
    plain.unlink()
    print(path.name, path.stat().st_size, "bytes")


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    step = decode_step()
    record(step, out / "h200-decode-4-layers.eager.json.gz")
    record(as_graph(step), out / "h200-decode-4-layers.graph.json.gz")
    record(launch_bound(), out / "h200-launch-bound.json.gz")
    record(training_step(), out / "h200-train-item.json.gz")
    print(torch.__version__, torch.cuda.get_device_name(), shutil.disk_usage(out).free // 2**30, "GiB free")


if __name__ == "__main__":
    main()

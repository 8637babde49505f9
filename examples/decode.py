"""One decode step after another of a Llama-shaped model with random weights, eager or as one CUDA graph.

    python examples/decode.py [--graph] [--layers N] [--hidden N] [--vocab N] [--context N] [--tokens N]
    ridgepole why examples/decode.py --layers 4
    ridgepole why examples/decode.py:step

On a GPU the shapes are Llama 3 8B's (batch 1, context 128, bfloat16), four layers of them; on a CPU, small ones.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

import ridgepole


@dataclass(frozen=True)
class Shape:
    """A decoder's sizes. Llama 3 8B: 4096, 32 layers, 32 heads over 8, MLP 14336, vocabulary 128256."""

    hidden: int
    layers: int
    vocab: int
    context: int
    head: int = 128

    @property
    def heads(self) -> int:
        return self.hidden // self.head

    @property
    def kv_heads(self) -> int:
        return max(1, self.heads // 4)

    @property
    def mlp(self) -> int:
        return self.hidden * 7 // 2


class Layer(nn.Module):
    """One decoder layer: one token at a time over a KV cache that is full up to its last place."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.norm1, self.norm2 = nn.RMSNorm(shape.hidden), nn.RMSNorm(shape.hidden)
        self.q = nn.Linear(shape.hidden, shape.heads * shape.head, bias=False)
        self.k = nn.Linear(shape.hidden, shape.kv_heads * shape.head, bias=False)
        self.v = nn.Linear(shape.hidden, shape.kv_heads * shape.head, bias=False)
        self.out = nn.Linear(shape.heads * shape.head, shape.hidden, bias=False)
        self.gate = nn.Linear(shape.hidden, shape.mlp, bias=False)
        self.up = nn.Linear(shape.hidden, shape.mlp, bias=False)
        self.down = nn.Linear(shape.mlp, shape.hidden, bias=False)
        cache = (1, shape.kv_heads, shape.context, shape.head)
        self.register_buffer("keys", torch.randn(cache))
        self.register_buffer("values", torch.randn(cache))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        h = self.norm1(x)
        q = rotate(self.q(h).view(1, self.shape.heads, 1, self.shape.head), cos, sin)
        k = rotate(self.k(h).view(1, self.shape.kv_heads, 1, self.shape.head), cos, sin)
        self.keys[:, :, -1:] = k
        self.values[:, :, -1:] = self.v(h).view(1, self.shape.kv_heads, 1, self.shape.head)
        attended = F.scaled_dot_product_attention(q, self.keys, self.values, enable_gqa=True)
        x = x + self.out(attended.reshape(1, 1, -1))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding (Su et al. 2021)."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


class Decoder(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden)
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        angles = (shape.context - 1) / 500_000 ** (torch.arange(0, shape.head, 2, dtype=torch.float32) / shape.head)
        self.register_buffer("cos", torch.cat((angles, angles)).cos())
        self.register_buffer("sin", torch.cat((angles, angles)).sin())

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        x = self.embed(token)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.head(self.norm(x)).argmax(-1)


def default_shape() -> Shape:
    if torch.cuda.is_available():
        return Shape(hidden=4096, layers=4, vocab=128256, context=128)
    return Shape(hidden=512, layers=2, vocab=4096, context=64)


def build(shape: Shape) -> Callable[[], torch.Tensor]:
    """The eager step of a new model: each call decodes the same token again."""
    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = Decoder(shape).to(dtype).eval()
            token = torch.zeros(1, 1, dtype=torch.long)
    finally:
        torch.set_default_dtype(before)

    @torch.no_grad()
    def decode() -> torch.Tensor:
        return model(token)

    return decode


def as_graph(eager: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    """The same step recorded once as a CUDA graph, then replayed."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            eager()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = eager()

    def replay() -> torch.Tensor:
        graph.replay()
        return result

    return replay


@functools.cache
def _default() -> Callable[[], torch.Tensor]:
    return build(default_shape())


def step() -> torch.Tensor:
    """One eager decode step of the default model, for `ridgepole why examples/decode.py:step`."""
    return _default()()


def main() -> None:
    shape = default_shape()
    parser = argparse.ArgumentParser(description="Decode tokens with a Llama-shaped model of random weights.")
    parser.add_argument("--graph", action="store_true", help="replay the step as one CUDA graph")
    parser.add_argument("--tokens", type=int, default=400)
    for name in ("hidden", "layers", "vocab", "context"):
        parser.add_argument(f"--{name}", type=int, default=getattr(shape, name))
    options = parser.parse_args()
    if options.graph and not torch.cuda.is_available():
        parser.error("a CUDA graph needs a CUDA GPU")
    decode = build(Shape(options.hidden, options.layers, options.vocab, options.context))
    if options.graph:
        decode = as_graph(decode)
    for _ in range(options.tokens):
        with ridgepole.step():
            token = decode()
    print(f"{options.tokens} tokens, the last is {token.item()}")


if __name__ == "__main__":
    main()

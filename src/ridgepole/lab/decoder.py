"""A Llama-shaped decoder with random weights, in plain torch: one step makes one token a sequence. Static shapes, so
that a graph can capture it.

RMSNorm (Zhang and Sennrich 2019), rotary embedding (Su et al. 2021), grouped-query attention (Ainslie et al. 2023),
SwiGLU (Shazeer 2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

EPSILON = 1e-5
ROTARY_BASE = 500_000.0
SEED = 0
STANDARD_DEVIATION = 0.02
"""Of the weights: activations stay finite through every layer."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder's sizes; `context` places of the KV cache are read at a step, the last of them written."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    context: int

    @property
    def head(self) -> int:
        """Elements of one head."""
        return self.hidden // self.heads

    @property
    def layer_parameters(self) -> int:
        attention = 2 * self.hidden * self.hidden + 2 * self.hidden * self.kv_heads * self.head
        return attention + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """All of them: the embedding, the layers, the last norm and the head."""
        return self.layers * self.layer_parameters + 2 * self.vocabulary * self.hidden + self.hidden

    @property
    def read(self) -> int:
        """Parameters that every step reads: all but the embedding, of which it reads a row a sequence."""
        return self.parameters - self.vocabulary * self.hidden

    def cached(self, batch: int) -> int:
        """Elements of keys and values of `batch` sequences, over all layers."""
        return self.layers * 2 * batch * self.kv_heads * self.context * self.head

    def moved(self, batch: int, item: int) -> float:
        """Bytes a step must move at least: the weights once, the embedding's rows, the cache."""
        return float(item * (self.read + batch * self.hidden + self.cached(batch)))


LLAMA_3_8B = Shape(4096, 32, 32, 8, 14336, 128256, 128)
"""Meta's configuration of Llama 3 8B, at a context of 128."""
SMALL = Shape(512, 4, 8, 2, 1792, 8192, 128)
"""For a CPU: the same proportions, and the 71 MB of float32 a step reads are past most caches."""


class Decoder:
    """The weights on a device, allocated once; `start(batch)` gives the state of so many sequences."""

    def __init__(self, torch: Any, shape: Shape, device: str, dtype: Any) -> None:
        self.torch, self.shape, self.device, self.dtype = torch, shape, device, dtype
        self._generator = torch.Generator(device=device).manual_seed(SEED)
        wide, narrow = shape.hidden, shape.kv_heads * shape.head
        self.embedding = self._random(shape.vocabulary, wide)
        self.layers = tuple(
            {
                "q": self._random(wide, wide),
                "k": self._random(narrow, wide),
                "v": self._random(narrow, wide),
                "out": self._random(wide, wide),
                "gate": self._random(shape.intermediate, wide),
                "up": self._random(shape.intermediate, wide),
                "down": self._random(wide, shape.intermediate),
                "norm1": torch.ones(wide, device=device, dtype=dtype),
                "norm2": torch.ones(wide, device=device, dtype=dtype),
            }
            for _ in range(shape.layers)
        )
        self.norm = torch.ones(wide, device=device, dtype=dtype)
        self.head = self._random(shape.vocabulary, wide)
        place = torch.arange(0, shape.head, 2, dtype=torch.float32, device=device) / shape.head
        angles = (shape.context - 1) / ROTARY_BASE**place
        self.cos, self.sin = (torch.cat((f, f)).to(dtype) for f in (angles.cos(), angles.sin()))

    def _random(self, *sizes: int) -> Any:
        empty = self.torch.empty(*sizes, device=self.device, dtype=self.dtype)
        return empty.normal_(0.0, STANDARD_DEVIATION, generator=self._generator)

    def start(self, batch: int) -> State:
        """Sequences whose cache is full but for its last place."""
        torch, shape = self.torch, self.shape
        tokens = torch.arange(batch, device=self.device).remainder(shape.vocabulary).view(batch, 1)
        sizes = (2, batch, shape.kv_heads, shape.context, shape.head)
        return State(tokens, tuple(self._random(*sizes) for _ in range(shape.layers)))

    def step(self, state: State) -> Any:
        """The logits of the next token, [batch, vocabulary]. The same token again at each call."""
        functional = self.torch.nn.functional
        x = functional.embedding(state.tokens, self.embedding)
        for layer, cache in zip(self.layers, state.caches, strict=True):
            x = x + self._attention(layer, cache, self._normed(x, layer["norm1"]))
            y = self._normed(x, layer["norm2"])
            gated = functional.silu(functional.linear(y, layer["gate"])) * functional.linear(y, layer["up"])
            x = x + functional.linear(gated, layer["down"])
        return functional.linear(self._normed(x, self.norm), self.head).squeeze(1)

    def _normed(self, x: Any, weight: Any) -> Any:
        return self.torch.nn.functional.rms_norm(x, (self.shape.hidden,), weight, EPSILON)

    def _attention(self, layer: Mapping[str, Any], cache: Any, x: Any) -> Any:
        functional, shape = self.torch.nn.functional, self.shape
        batch = x.shape[0]
        q = self._rotated(functional.linear(x, layer["q"]).view(batch, shape.heads, 1, shape.head))
        k = self._rotated(functional.linear(x, layer["k"]).view(batch, shape.kv_heads, 1, shape.head))
        v = functional.linear(x, layer["v"]).view(batch, shape.kv_heads, 1, shape.head)
        cache[0, :, :, -1:].copy_(k)
        cache[1, :, :, -1:].copy_(v)
        attended = functional.scaled_dot_product_attention(q, cache[0], cache[1], enable_gqa=True)
        return functional.linear(attended.reshape(batch, 1, shape.hidden), layer["out"])

    def _rotated(self, x: Any) -> Any:
        low, high = x.chunk(2, dim=-1)
        return x * self.cos + self.torch.cat((-high, low), dim=-1) * self.sin


@dataclass(frozen=True, slots=True)
class State:
    """The last token of each sequence, and of each layer its keys and values."""

    tokens: Any
    caches: tuple[Any, ...]

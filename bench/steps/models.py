"""Whole steps in plain torch with random weights: what `measure.py` runs on a GPU and `price.py` prices without one.

`STEPS[name](device)` builds the model and gives a step to call. Static shapes, so that a graph can hold the inference
steps; a training step zeroes its gradients, runs forward and backward and steps its optimizer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ridgepole.lab.decoder import LLAMA_3_8B, Decoder, Shape

Step = Callable[[], object]
BF16 = torch.bfloat16
VOCABULARY = 30522
"""Tokens are drawn below the smallest vocabulary here."""


class Transformer(nn.Module):
    """GPT-2 (causal, normed before) or BERT (both ways, normed after), up to the last hidden state."""

    def __init__(self, width: int, heads: int, layers: int, vocabulary: int, length: int, *, causal: bool) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads, causal=causal) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.causal = causal
        self.register_buffer("place", torch.arange(length))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens) + self.places(self.place)
        x = x if self.causal else self.norm(x)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) if self.causal else x


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        if self.causal:
            x = x + self.attention(self.norm1(x))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.down(F.gelu(self.up(x))))

    def attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(attended.transpose(1, 2).reshape(batch, length, width))


class Bottleneck(nn.Module):
    """A block of ResNet-50 (He et al. 2015), the stride in its 3x3 convolution."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
            *(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)),
        )
        self.beside = nn.Identity()
        if stride > 1 or channels != 4 * width:
            conv = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.beside = nn.Sequential(conv, nn.BatchNorm2d(4 * width))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        out = self.body(x)
        out += self.beside(x)
        return self.relu(out)


def resnet50() -> nn.Module:
    blocks, channels = [], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            blocks.append(Bottleneck(channels, width, stride if i == 0 else 1))
            channels = 4 * width
    stem = (nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def llama_decode(batch: int, context: int, device: str) -> Step:
    shape = Shape(**{**_fields(LLAMA_3_8B), "context": context})
    decoder = Decoder(torch, shape, device, BF16)
    state = decoder.start(batch)
    return torch.no_grad()(lambda: decoder.step(state))


def llama_prefill(batch: int, length: int, device: str) -> Step:
    """All tokens of a prompt at once, logits of the last one."""
    shape = Shape(**{**_fields(LLAMA_3_8B), "context": 1})
    model = Decoder(torch, shape, device, BF16)
    tokens = torch.randint(VOCABULARY, (batch, length), device=device)
    cos, sin = model.cos.expand(length, -1).contiguous(), model.sin.expand(length, -1).contiguous()

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, (shape.hidden,), weight, 1e-5)

    def rotated(x: Tensor) -> Tensor:
        low, high = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-high, low), dim=-1) * sin

    def heads(x: Tensor, weight: Tensor) -> Tensor:
        return F.linear(x, weight).view(batch, length, -1, shape.head).transpose(1, 2)

    def step() -> Tensor:
        x = F.embedding(tokens, model.embedding)
        for layer in model.layers:
            h = norm(x, layer["norm1"])
            q, k, v = rotated(heads(h, layer["q"])), rotated(heads(h, layer["k"])), heads(h, layer["v"])
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + F.linear(attended.transpose(1, 2).reshape(batch, length, -1), layer["out"])
            h = norm(x, layer["norm2"])
            x = x + F.linear(F.silu(F.linear(h, layer["gate"])) * F.linear(h, layer["up"]), layer["down"])
        return F.linear(norm(x[:, -1], model.norm), model.head)

    return torch.no_grad()(step)


def _fields(shape: Shape) -> dict[str, int]:
    return {name: getattr(shape, name) for name in Shape.__slots__}


def resnet_inference(batch: int, dtype: torch.dtype, channels_last: bool, device: str) -> Step:
    layout = torch.channels_last if channels_last else torch.contiguous_format
    model = resnet50().eval().to(device, dtype, memory_format=layout)
    x = torch.randn(batch, 3, 224, 224, device=device).to(dtype=dtype, memory_format=layout)
    return torch.no_grad()(lambda: model(x))


def resnet_training(batch: int, channels_last: bool, device: str) -> Step:
    """Mixed precision, SGD with momentum."""
    layout = torch.channels_last if channels_last else torch.contiguous_format
    model = resnet50().to(device, memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    x = torch.randn(batch, 3, 224, 224, device=device).to(memory_format=layout)
    labels = torch.randint(1000, (batch,), device=device)

    def step() -> Tensor:
        with torch.autocast(device, dtype=BF16):
            loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


GPT2 = (768, 12, 12, 50304)
BERT_BASE, BERT_LARGE = (768, 12, 12, 30522), (1024, 16, 24, 30522)


def inference(sizes: tuple[int, int, int, int], batch: int, length: int, causal: bool, device: str) -> Step:
    width, heads, layers, vocabulary = sizes
    model = Transformer(width, heads, layers, vocabulary, length, causal=causal).eval().to(device, BF16)
    tokens = torch.randint(VOCABULARY, (batch, length), device=device)
    return torch.no_grad()(lambda: model(tokens))


def training(sizes: tuple[int, int, int, int], batch: int, length: int, causal: bool, device: str) -> Step:
    """Next or masked tokens by the embedding's transpose; mixed precision, AdamW."""
    width, heads, layers, vocabulary = sizes
    model = Transformer(width, heads, layers, vocabulary, length, causal=causal).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(VOCABULARY, (batch, length), device=device)

    def step() -> Tensor:
        with torch.autocast(device, dtype=BF16):
            logits = F.linear(model(tokens), model.embed.weight)
            loss = F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


STEPS: dict[str, Callable[[str], Step]] = {
    "llama-3-8b decode, 1 at 128": partial(llama_decode, 1, 128),
    "llama-3-8b decode, 8 at 1024": partial(llama_decode, 8, 1024),
    "llama-3-8b decode, 64 at 512": partial(llama_decode, 64, 512),
    "llama-3-8b prefill, 1 of 512": partial(llama_prefill, 1, 512),
    "llama-3-8b prefill, 1 of 4096": partial(llama_prefill, 1, 4096),
    "resnet-50 inference, 32, float16 channels_last": partial(resnet_inference, 32, torch.float16, True),
    "resnet-50 inference, 32, float32": partial(resnet_inference, 32, torch.float32, False),
    "resnet-50 training, 64, bfloat16 channels_last": partial(resnet_training, 64, True),
    "resnet-50 training, 64, bfloat16": partial(resnet_training, 64, False),
    "gpt-2 inference, 8 of 1024": partial(inference, GPT2, 8, 1024, True),
    "gpt-2 training, 8 of 512": partial(training, GPT2, 8, 512, True),
    "gpt-2 training, 8 of 1024": partial(training, GPT2, 8, 1024, True),
    "bert-base inference, 1 of 128": partial(inference, BERT_BASE, 1, 128, False),
    "bert-base inference, 32 of 512": partial(inference, BERT_BASE, 32, 512, False),
    "bert-large inference, 8 of 384": partial(inference, BERT_LARGE, 8, 384, False),
    "bert-base training, 32 of 128": partial(training, BERT_BASE, 32, 128, False),
}
COMPILED = ("gpt-2 inference, 8 of 1024", "bert-base inference, 32 of 512", "llama-3-8b prefill, 1 of 512")
"""Steps measured compiled as well: each takes torch.compile half a minute."""

"""What each kind of op costs the CPU on the CUDA machine at hand, beside the smallest one: whole steps are made of it.

    python bench/steps/dispatch.py OUT.json

Seconds a call of the CPU alone: median of batches short enough not to fill the queue, nothing profiled. Operands are
as small as the op allows.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

BATCHES, CALLS = 15, 60


def per_call(run: Callable[[], object], calls: int = CALLS) -> float:
    for _ in range(20):
        run()
    times = []
    for _ in range(BATCHES):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - start) / calls)
        torch.cuda.synchronize()
    return statistics.median(times)


def tensors() -> dict[str, Any]:
    def made(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(shape, device="cuda").to(dtype)

    return {
        "x": made(32, 32),
        "y": made(32, 32),
        "v": made(32),
        "h": made(8, 256, dtype=torch.bfloat16),
        "w": made(256, 256, dtype=torch.bfloat16),
        "b": made(256, dtype=torch.bfloat16),
        "a3": made(2, 64, 64),
        "q": made(1, 8, 64, 64, dtype=torch.bfloat16),
        "kv": made(1, 2, 64, 64, dtype=torch.bfloat16),
        "i": torch.zeros(8, 8, device="cuda", dtype=torch.long),
        "image": made(1, 16, 8, 8, dtype=torch.bfloat16),
        "k3": made(16, 16, 3, 3, dtype=torch.bfloat16),
        "k32": made(16, 16, 3, 3),
        "s": made(16),
        "im32": made(1, 16, 8, 8),
        "table": made(64, 256, dtype=torch.bfloat16),
        "bool": made(32, 32) > 0,
    }


OPS = {
    "mul": "x * 2.0",
    "mul out": "torch.mul(x, 2.0, out=y)",
    "add": "x + y",
    "add broadcast": "x + v",
    "neg": "-x",
    "add_": "x.add_(y)",
    "relu_": "x.relu_()",
    "silu": "F.silu(x)",
    "gelu": "F.gelu(x)",
    "to bf16": "x.to(torch.bfloat16)",
    "copy slice": "x[:, -1:].copy_(y[:, -1:])",
    "view": "x.view(1024)",
    "transpose": "x.transpose(0, 1)",
    "slice": "x[:, 4:]",
    "chunk": "x.chunk(2, dim=-1)",
    "permute": "a3.permute(2, 0, 1)",
    "contiguous": "x.t().contiguous()",
    "cat": "torch.cat((x, y), dim=-1)",
    "linear": "F.linear(h, w)",
    "linear bias": "F.linear(h, w, b)",
    "mm": "x @ y",
    "bmm": "torch.bmm(a3, a3)",
    "layer_norm": "F.layer_norm(h, (256,), b, b)",
    "rms_norm": "F.rms_norm(h, (256,), b, 1e-5)",
    "softmax": "x.softmax(-1)",
    "sum": "x.sum()",
    "sum dim": "x.sum(-1)",
    "mean dim": "x.mean(-1)",
    "argmax": "x.argmax(-1)",
    "embedding": "F.embedding(i, table)",
    "sdpa": "F.scaled_dot_product_attention(q, q, q)",
    "sdpa causal": "F.scaled_dot_product_attention(q, q, q, is_causal=True)",
    "sdpa grouped": "F.scaled_dot_product_attention(q[:, :, :1], kv, kv, enable_gqa=True)",
    "conv2d": "F.conv2d(image, k3, padding=1)",
    "conv2d float32": "F.conv2d(im32, k32, padding=1)",
    "batch_norm eval": "F.batch_norm(im32, s, s.abs(), s, s)",
    "batch_norm train": "F.batch_norm(im32, s, s, s, s, True)",
    "max_pool2d": "F.max_pool2d(im32, 3, 2, 1)",
    "avg_pool": "F.adaptive_avg_pool2d(im32, 1)",
    "cross_entropy": "F.cross_entropy(x, i.flatten()[:32])",
    "dropout": "F.dropout(x, 0.1)",
    "where": "torch.where(bool, x, y)",
    "topk": "x.topk(4)",
    "index_select": "x.index_select(0, i[0])",
    "zeros": "torch.zeros(32, 32, device='cuda')",
}

BACKWARD = {
    "linear": "F.linear(h, w)",
    "linear bias": "F.linear(h, w, b)",
    "mul": "x * y",
    "gelu": "F.gelu(x)",
    "layer_norm": "F.layer_norm(h, (256,), b, b)",
    "conv2d": "F.conv2d(image, k3, padding=1)",
    "batch_norm train": "F.batch_norm(im32, None, None, s, s, True)",
    "relu": "F.relu(x)",
    "sdpa causal": "F.scaled_dot_product_attention(q, q, q, is_causal=True)",
}
"""Forward and backward together, the forward of a leaf that asks for a gradient; `OPS` has the forward alone."""


def backward(names: dict[str, Any]) -> dict[str, dict[str, float]]:
    """A call recorded for backward, and the same with the gradients of all its operands: nothing is accumulated."""
    found = {}
    for name, call in BACKWARD.items():
        used = {k for k in re.findall(r"\w+", call) if k in names}
        leaves = {k: names[k].detach().clone().requires_grad_() for k in sorted(used)}
        code, space = compile(call, name, "eval"), {**leaves, "torch": torch, "F": F}
        gradient = torch.randn_like(eval(code, space))
        of = tuple(leaves.values())
        found[name] = {
            "forward": per_call(partial(eval, code, space)),
            "both": per_call(lambda c=code, s=space, o=of, g=gradient: torch.autograd.grad(eval(c, s), o, g)),
        }
    return found


def optimizers() -> dict[str, float]:
    found = {}
    for count in (4, 100):
        for name, made in {
            "sgd momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
            "adamw": lambda p: torch.optim.AdamW(p, lr=1e-4),
            "adamw fused": lambda p: torch.optim.AdamW(p, lr=1e-4, fused=True),
        }.items():
            parameters = [torch.randn(64, 64, device="cuda", requires_grad=True) for _ in range(count)]
            for p in parameters:
                p.grad = torch.randn_like(p)
            found[f"{name}, {count} parameters"] = per_call(made(parameters).step, 5)
    return found


def main() -> None:
    names = tensors()
    space = {**names, "torch": torch, "F": F}
    rows: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    with torch.no_grad():
        found = {}
        for name, call in OPS.items():
            code = compile(call, name, "eval")
            try:
                found[name] = per_call(partial(eval, code, space))
            except Exception as error:
                found[name] = str(error)[:100]
        rows["ops"] = found
        with torch.autocast("cuda", dtype=torch.bfloat16):
            rows["autocast"] = {
                "linear float32": per_call(lambda: F.linear(names["x"], names["y"])),
                "mul float32": per_call(lambda: names["x"] * 2.0),
            }
    rows["recorded for backward"] = {
        "mul": per_call(lambda: names["x"].detach().requires_grad_() * 2.0),
        "detach": per_call(lambda: names["x"].detach().requires_grad_()),
    }
    for part, run in (("backward", lambda: backward(names)), ("optimizers", optimizers)):
        try:
            rows[part] = run()
        except Exception as error:
            rows[part] = str(error)[:200]
    with open(sys.argv[1], "w") as out:
        json.dump(rows, out, indent=1)
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

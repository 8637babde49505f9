"""Calls to measure: shapes drawn by a seed, so that none was chosen because it is priced well.

    python bench/truth/calls.py > calls.jsonl

Each line is {"family", "call", "inputs", "tf32"?}, what `measure.py` measures and `bench/accuracy.py` prices. Sizes are
drawn evenly in their logarithm; most are multiples of a power of two, as programs' are, some are not.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

SEED = 20261201
DRAWS = 3
"""Times that every family is drawn."""
BF16, FP16, FP32, FP8 = "bfloat16", "float16", "float32", "float8_e4m3fn"
MOST_BYTES = 2 << 30
"""Of all inputs of a call together."""
SIZE = {BF16: 2, FP16: 2, FP32: 4, FP8: 1, "int64": 8}

Row = dict[str, Any]


def main() -> None:
    for row in calls():
        print(json.dumps(row))


def calls() -> Iterator[Row]:
    """Every call that fits, each once."""
    seen = set()
    drawn = (row for turn in range(DRAWS) for row in once(random.Random(SEED + turn)))
    for family, call, inputs, extra in drawn:
        held = sum(_elements(spec["shape"]) * SIZE[spec["dtype"]] for spec in inputs.values())
        row = {"family": family, "call": call, "inputs": inputs, **extra}
        key = json.dumps(row, sort_keys=True)
        if held <= MOST_BYTES and key not in seen:
            seen.add(key)
            yield row


def _elements(shape: list[int]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _log(draw: random.Random, least: float, most: float, multiple: int = 1) -> int:
    """A size between two, even in its logarithm, rounded to a multiple."""
    value = least * (most / least) ** draw.random()
    return max(multiple, round(value / multiple) * multiple)


def _multiple(draw: random.Random) -> int:
    return draw.choice([1, 8, 64, 128, 128, 256])


def _t(dtype: str, *shape: int, **more: Any) -> Row:
    return {"shape": list(shape), "dtype": dtype, **more}


Drawn = tuple[str, str, dict[str, Row], Row]


def once(draw: random.Random) -> Iterator[Drawn]:
    """Every family drawn once, larger calls among them than fit a GPU."""
    yield from _pointwise(draw)
    yield from _reductions(draw)
    yield from _rows(draw)
    yield from _products(draw)
    yield from _attention(draw)
    yield from _convolutions(draw)
    yield from _indexed(draw)
    yield from _backward(draw)


def _pointwise(draw: random.Random) -> Iterator[Drawn]:
    one = {
        "gelu": "F.gelu(a)", "silu": "F.silu(a)", "relu": "F.relu(a)", "clone": "a.clone()", "mul": "a * 2.0",
        "tanh": "torch.tanh(a)", "dropout": "F.dropout(a, 0.1, True)", "fill": "torch.zeros_like(a)",
    }  # fmt: skip
    for family, call in one.items():
        for _ in range(6):
            n = _log(draw, 1 << 10, 1 << 28, _multiple(draw))
            yield family, call, {"a": _t(draw.choice([BF16, FP32]), n)}, {}
    for _ in range(6):
        n = _log(draw, 1 << 12, 1 << 27, _multiple(draw))
        dtype = draw.choice([BF16, FP32])
        yield "add", "a + b", {"a": _t(dtype, n), "b": _t(dtype, n)}, {}
        yield "cast", "a.to(torch.float32)", {"a": _t(BF16, n)}, {}
        yield "cast", "a.to(torch.bfloat16)", {"a": _t(FP32, n)}, {}
        rows, width = _log(draw, 16, 16384), _log(draw, 64, 16384, 8)
        yield "add", "a + b", {"a": _t(dtype, rows, width), "b": _t(dtype, width)}, {}
        yield "swiglu", "F.silu(a) * b", {"a": _t(dtype, rows, width), "b": _t(dtype, rows, width)}, {}
        yield "cat", "torch.cat([a, b], -1)", {"a": _t(dtype, rows, width), "b": _t(dtype, rows, width)}, {}
        yield "transpose_copy", "a.t().contiguous()", {"a": _t(dtype, rows, width)}, {}
        heads, length = draw.choice([8, 16, 32]), _log(draw, 64, 4096, 16)
        yield "transpose_copy", "a.transpose(1, 2).contiguous()", {"a": _t(dtype, 4, length, heads, 64)}, {}


def _reductions(draw: random.Random) -> Iterator[Drawn]:
    for _ in range(6):
        dtype = draw.choice([BF16, FP32])
        n = _log(draw, 1 << 12, 1 << 28, _multiple(draw))
        yield "sum", "a.sum()", {"a": _t(dtype, n)}, {}
        rows, width = _log(draw, 16, 32768), _log(draw, 64, 16384, 8)
        for family, call in (
            ("sum_dim", "a.sum(-1)"), ("sum_dim", "a.sum(0)"), ("mean", "a.mean(-1)"), ("amax", "a.amax(-1)"),
            ("argmax", "a.argmax(-1)"), ("cumsum", "a.cumsum(-1)"),
        ):  # fmt: skip
            yield family, call, {"a": _t(dtype, rows, width)}, {}


def _rows(draw: random.Random) -> Iterator[Drawn]:
    for _ in range(10):
        dtype = draw.choice([BF16, FP32])
        rows, width = _log(draw, 16, 32768), _log(draw, 64, 32768, draw.choice([1, 8, 64]))
        yield "softmax", "F.softmax(a, -1)", {"a": _t(dtype, rows, width)}, {}
        width = _log(draw, 256, 16384, 64)
        weight = _t(dtype, width)
        yield "layer_norm", f"F.layer_norm(a, ({width},), w, b)", {
            "a": _t(dtype, rows, width), "w": weight, "b": weight}, {}  # fmt: skip
        yield "rms_norm", f"F.rms_norm(a, ({width},), w)", {"a": _t(dtype, rows, width), "w": weight}, {}
    for _ in range(5):
        rows, width = _log(draw, 64, 8192), draw.choice([1000, 32000, 50304, 128256])
        yield "cross_entropy", "F.cross_entropy(a, t)", {
            "a": _t(FP32, rows, width), "t": _t("int64", rows, high=width)}, {}  # fmt: skip


def _products(draw: random.Random) -> Iterator[Drawn]:
    for _ in range(40):
        dtype = draw.choice([BF16, BF16, BF16, FP16, FP32])
        multiple = draw.choice([1, 8, 64, 64, 128, 128])
        m, n, k = (_log(draw, 16, 16384, multiple) for _ in range(3))
        if 2.0 * m * n * k < (2e13 if dtype == FP32 else 2e14):
            tf32 = {"tf32": True} if dtype == FP32 and draw.random() < 0.5 else {}
            yield "mm", "a @ b", {"a": _t(dtype, m, k), "b": _t(dtype, k, n)}, tf32
    for _ in range(30):
        m = draw.choice([1, 2, 4, 8, 16, 32, 64, 100, 256, 1000, 2048, 4096, 8192])
        n, k = (draw.choice([768, 1024, 2048, 3072, 4096, 5120, 8192, 11008, 14336, 28672]) for _ in range(2))
        bias = draw.random() < 0.5
        inputs = {"x": _t(BF16, m, k), "w": _t(BF16, n, k)}
        if bias:
            inputs["b"] = _t(BF16, n)
        yield "linear", "F.linear(x, w, b)" if bias else "F.linear(x, w)", inputs, {}
    for _ in range(12):
        batch, dtype = draw.choice([8, 16, 32, 64, 128, 512, 1024]), draw.choice([BF16, FP32])
        m, n, k = (_log(draw, 16, 1024, draw.choice([8, 16, 64])) for _ in range(3))
        yield "bmm", "torch.bmm(a, b)", {"a": _t(dtype, batch, m, k), "b": _t(dtype, batch, k, n)}, {}
    for _ in range(6):
        dtype = draw.choice([BF16, FP32])
        n, k = (_log(draw, 1024, 16384, 8) for _ in range(2))
        yield "mv", "a @ b", {"a": _t(dtype, n, k), "b": _t(dtype, k)}, {}
    for _ in range(6):
        m, n, k = (_log(draw, 64, 8192, 16) for _ in range(3))
        yield "scaled_mm", "torch._scaled_mm(a, b.t(), scale_a=s, scale_b=s, out_dtype=torch.bfloat16)", {
            "a": _t(FP8, m, k), "b": _t(FP8, n, k), "s": _t(FP32)}, {}  # fmt: skip


def _attention(draw: random.Random) -> Iterator[Drawn]:
    for _ in range(14):
        batch, depth = draw.choice([1, 2, 4, 8, 16]), draw.choice([64, 128])
        heads, length = draw.choice([8, 12, 16, 32]), _log(draw, 128, 8192, 64)
        causal = draw.random() < 0.5
        q = _t(BF16, batch, heads, length, depth)
        call = f"F.scaled_dot_product_attention(q, k, v, is_causal={causal})"
        yield "sdpa", call, {"q": q, "k": q, "v": q}, {}
    for _ in range(12):
        batch, depth, heads = draw.choice([1, 2, 4, 8, 16, 32, 64]), 128, draw.choice([16, 32, 64])
        kept, length = draw.choice([heads, 8]), _log(draw, 128, 16384, 64)
        call = "F.scaled_dot_product_attention(q, k, v" + (", enable_gqa=True)" if kept != heads else ")")
        k = _t(BF16, batch, kept, length, depth)
        yield "sdpa", call, {"q": _t(BF16, batch, heads, 1, depth), "k": k, "v": k}, {}


def _convolutions(draw: random.Random) -> Iterator[Drawn]:
    for _ in range(20):
        batch, size = draw.choice([1, 4, 16, 32, 64]), draw.choice([7, 14, 28, 56])
        cin, cout = (draw.choice([64, 128, 256, 512]) for _ in range(2))
        kernel, dtype = draw.choice([1, 3]), draw.choice([FP32, BF16])
        more = {"memory_format": "channels_last"} if draw.random() < 0.5 else {}
        stride = draw.choice([1, 1, 2])
        yield "conv2d", f"F.conv2d(x, w, None, {stride}, {kernel // 2})", {
            "x": _t(dtype, batch, cin, size, size, **more), "w": _t(dtype, cout, cin, kernel, kernel, **more),
        }, ({"tf32": True} if dtype == FP32 and draw.random() < 0.5 else {})  # fmt: skip
    for _ in range(5):
        batch, size, channels = draw.choice([8, 32, 64]), draw.choice([28, 56, 112]), draw.choice([64, 128, 256])
        x = _t(FP32, batch, channels, size, size)
        yield "max_pool2d", "F.max_pool2d(x, 3, 2, 1)", {"x": x}, {}
        yield "batch_norm", "F.batch_norm(x, m, v, w, b, True)", {
            "x": x, **{name: _t(FP32, channels) for name in "mvwb"}}, {}  # fmt: skip


def _indexed(draw: random.Random) -> Iterator[Drawn]:
    for _ in range(6):
        vocabulary, width = draw.choice([32000, 50304, 128256]), _log(draw, 256, 8192, 64)
        many = _log(draw, 16, 32768)
        dtype = draw.choice([BF16, FP32])
        index = _t("int64", many, high=vocabulary)
        yield "embedding", "F.embedding(i, w)", {"i": index, "w": _t(dtype, vocabulary, width)}, {}
        yield "index_select", "w.index_select(0, i)", {"i": index, "w": _t(dtype, vocabulary, width)}, {}
        rows, long = _log(draw, 16, 4096), _log(draw, 256, 131072, 16)
        yield "topk", "torch.topk(a, 50, -1)", {"a": _t(FP32, rows, long)}, {}
        yield "sort", "torch.sort(a, -1)", {"a": _t(FP32, _log(draw, 16, 1024), _log(draw, 256, 16384, 16))}, {}
        yield "index_add", "a.index_add(0, i, b)", {
            "a": _t(FP32, 4096, width), "i": _t("int64", many, high=4096), "b": _t(FP32, many, width)}, {}  # fmt: skip


def _backward(draw: random.Random) -> Iterator[Drawn]:
    for _ in range(6):
        dtype = draw.choice([BF16, FP32])
        n = _log(draw, 1 << 14, 1 << 26, 64)
        pair = {"g": _t(dtype, n), "a": _t(dtype, n)}
        yield "gelu_backward", "torch.ops.aten.gelu_backward(g, a)", pair, {}
        yield "relu_backward", "torch.ops.aten.threshold_backward(g, a, 0.0)", pair, {}
        rows, width = _log(draw, 64, 16384), _log(draw, 256, 8192, 64)
        pair = {"g": _t(dtype, rows, width), "a": _t(dtype, rows, width)}
        yield "softmax_backward", f"torch._softmax_backward_data(g, a, -1, torch.{dtype})", pair, {}
        yield (
            "layer_norm_backward",
            (f"torch.ops.aten.native_layer_norm_backward(g, a, [{width}], m, r, w, w, [True, True, True])"),
            {**pair, "m": _t(FP32, rows, 1), "r": _t(FP32, rows, 1), "w": _t(dtype, width)},
            {},
        )
        vocabulary = draw.choice([32000, 50304])
        many = _log(draw, 256, 16384)
        yield "embedding_backward", f"torch.ops.aten.embedding_dense_backward(g, i, {vocabulary}, -1, False)", {
            "g": _t(dtype, many, 1024), "i": _t("int64", many, high=vocabulary)}, {}  # fmt: skip
        batch, heads, length = draw.choice([1, 4, 16]), draw.choice([12, 16, 32]), _log(draw, 128, 4096, 128)
        depth = draw.choice([64, 128])
        q = _t(BF16, batch, heads, length, depth)
        yield "sdpa_backward", (
            "torch.ops.aten._scaled_dot_product_flash_attention_backward("
            f"g, q, k, v, o, l, None, None, {length}, {length}, 0.0, {draw.random() < 0.7}, s, s)"
        ), {**dict.fromkeys("gqkvo", q), "l": _t(FP32, batch, heads, length), "s": _t("int64")}, {}  # fmt: skip
        m, n, k = draw.choice([512, 2048, 4096, 8192]), *(draw.choice([768, 1024, 2304, 3072, 4096]) for _ in range(2))
        yield "linear_backward", "g.t() @ x", {"g": _t(BF16, m, n), "x": _t(BF16, m, k)}, {}
        yield "linear_backward", "g @ w", {"g": _t(BF16, m, n), "w": _t(BF16, n, k)}, {}
        channels, size, batch = draw.choice([64, 128, 256, 512]), draw.choice([7, 14, 28, 56]), draw.choice([8, 32])
        kernel, dtype = draw.choice([1, 3]), draw.choice([FP32, BF16])
        x = _t(dtype, batch, channels, size, size)
        yield "conv2d_backward", (
            "torch.ops.aten.convolution_backward(g, x, w, None, [1, 1], "
            f"[{kernel // 2}, {kernel // 2}], [1, 1], False, [0, 0], 1, [True, True, False])"
        ), {"g": x, "x": x, "w": _t(dtype, channels, channels, kernel, kernel)}, (
            {"tf32": True} if dtype == FP32 and draw.random() < 0.5 else {}
        )  # fmt: skip
        x, of = _t(FP32, batch, channels, size, size), _t(FP32, channels)
        yield "batch_norm_backward", (
            "torch.ops.aten.native_batch_norm_backward(g, x, w, m, v, m, v, True, 1e-5, [True, True, True])"
        ), {"g": x, "x": x, **dict.fromkeys("wmv", of)}, {}  # fmt: skip
        n = _log(draw, 1 << 16, 1 << 27, 64)
        yield "adam", (
            "torch._fused_adamw_([p], [g], [m], [v], [], [s], lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.01, "
            "eps=1e-8, amsgrad=False, maximize=False)"
        ), {**{name: _t(FP32, n) for name in "pgmv"}, "s": _t(FP32)}, {}  # fmt: skip
        yield "sgd", "torch._foreach_add([p, q], [g, h], alpha=-0.1)", {
            name: _t(FP32, n) for name in "pqgh"}, {}  # fmt: skip


if __name__ == "__main__":
    main()

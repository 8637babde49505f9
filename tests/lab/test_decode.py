"""The decode step: its parameters and bytes by hand, its arithmetic against float64, and for real on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ridgepole.kernels.device import Device, Run
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import conduct_at, find
from ridgepole.lab.decoder import EPSILON, LLAMA_3_8B, ROTARY_BASE, SMALL, Decoder, Shape, State
from ridgepole.lab.experiment import Row, Value
from ridgepole.lab.experiments import decode
from ridgepole.lab.values import amount
from tests.lab.made import GPUBench, Pretended, gpu_bench

DECODE = find("decode")
TINY = Shape(hidden=32, layers=2, heads=4, kv_heads=2, intermediate=48, vocabulary=50, context=6)


def step(batch: int, way: str, milliseconds: float, note: str = "") -> Row:
    seconds, moved = milliseconds * 1e-3, LLAMA_3_8B.moved(batch, 2)
    return {"batch": batch, "way": way, "seconds": seconds, "tokens": batch / seconds, "bytes": moved,
            "bandwidth": moved / seconds, "travel": moved / 4.8e12, "believed": not note, "note": note}  # fmt: skip


COUNTED: dict[str, Value] = {"batch": 1, "way": decode.COUNTED, "launches": 996, "note": "by torch.profiler"}
H200_ROWS: list[Row] = [
    step(1, "eager", 13.0), step(1, "graph", 5.9), step(64, "eager", 13.2), step(64, "graph", 7.0), COUNTED,
]  # fmt: skip


def test_the_shape_is_llama_3_8b_to_the_parameter() -> None:
    assert LLAMA_3_8B.parameters == 8_030_261_248
    assert LLAMA_3_8B.read == 8_030_261_248 - 128_256 * 4096


def test_a_step_reads_15_gb_of_weights_and_17_mb_of_cache_a_sequence() -> None:
    assert LLAMA_3_8B.cached(1) * 2 == 32 * 2 * 8 * 128 * 128 * 2 == 16_777_216
    assert LLAMA_3_8B.moved(1, 2) == 15_009_849_344 + 16_777_216 + 4096 * 2
    assert LLAMA_3_8B.moved(64, 2) - LLAMA_3_8B.moved(1, 2) == 63 * (16_777_216 + 8192)


def test_where_memory_is_short_fewer_layers_are_taken_and_below_one_none() -> None:
    assert decode.fitting(LLAMA_3_8B, 120e9, 64, 2) == LLAMA_3_8B
    fits = decode.fitting(LLAMA_3_8B, 8e9, 64, 2)
    assert fits is not None and 1 <= fits.layers < 32
    assert (
        2 * (fits.parameters + fits.cached(64))
        <= 8e9
        < 2 * (fits.parameters + LLAMA_3_8B.layer_parameters + fits.cached(64) * (fits.layers + 1) // fits.layers)
    )
    assert decode.fitting(LLAMA_3_8B, 2e9, 64, 2) is None


def test_the_step_is_the_llama_arithmetic_in_float64(bench: Bench) -> None:
    torch = bench.torch
    model = Decoder(torch, TINY, "cpu", torch.float64)
    state = model.start(3)
    before = tuple(cache.clone() for cache in state.caches)
    assert torch.allclose(model.step(state), _reference(torch, model, state.tokens, before), rtol=1e-6, atol=1e-9)


def _reference(torch: Any, model: Decoder, tokens: Any, caches: tuple[Any, ...]) -> Any:
    """Each sequence by itself, each head by itself, in plain sums."""
    shape, out = model.shape, []
    place = torch.arange(shape.head // 2, dtype=torch.float32) * 2 / shape.head
    turn = ((shape.context - 1) / ROTARY_BASE**place).double()

    def normed(x: Any, weight: Any) -> Any:
        return x / (x.pow(2).mean() + EPSILON).sqrt() * weight

    def rotated(x: Any) -> Any:
        as_complex = torch.complex(x[: shape.head // 2], x[shape.head // 2 :]) * torch.polar(
            torch.ones_like(turn), turn
        )
        return torch.cat((as_complex.real, as_complex.imag))

    for sequence in range(tokens.shape[0]):
        x = model.embedding[int(tokens[sequence, 0])]
        for layer, cache in zip(model.layers, caches, strict=True):
            h = normed(x, layer["norm1"])
            q, k, v = (layer[name] @ h for name in "qkv")
            attended = []
            for head in range(shape.heads):
                group = head // (shape.heads // shape.kv_heads)
                keys, values = cache[0, sequence, group].clone(), cache[1, sequence, group].clone()
                keys[-1] = rotated(k[group * shape.head : (group + 1) * shape.head])
                values[-1] = v[group * shape.head : (group + 1) * shape.head]
                scores = keys @ rotated(q[head * shape.head : (head + 1) * shape.head]) / shape.head**0.5
                attended.append(scores.softmax(0) @ values)
            x = x + layer["out"] @ torch.cat(attended)
            h = normed(x, layer["norm2"])
            gate = layer["gate"] @ h
            x = x + layer["down"] @ (gate / (1 + (-gate).exp()) * (layer["up"] @ h))
        out.append(model.head @ normed(x, model.norm))
    return torch.stack(out)


def test_the_meaning_sets_the_graph_the_roof_and_the_launches_side_by_side(device: Device) -> None:
    said = DECODE.meaning(H200_ROWS, gpu_bench(device))
    assert said.startswith("A step of batch 1 takes 13.0 ms eager and 5.90 ms as a graph: the graph is 2.20x as fast.")
    assert "Its 15.0 GB need 3.13 ms at 4.80 TB/s, 53.1 % of the graph step" in said
    assert "its 996 kernels need " in said and "the eager step is priced overhead-bound" in said
    assert "Batch 64 as a graph makes 9,143 tokens/s against 169 at batch 1: 53.9x for 64x the sequences" in said


def test_a_step_that_is_not_believed_is_left_out_of_the_meaning(device: Device) -> None:
    rows = [step(1, "eager", 13.0), step(1, "graph", 1.0, "bandwidth above the physical limit: not believed")]
    assert DECODE.meaning(rows, gpu_bench(device)).startswith("A step of batch 1 takes 13.0 ms eager. ")
    assert DECODE.meaning([rows[1]], gpu_bench(device)) == "No step was measured that can be believed."


def test_the_picture_has_both_ways_and_the_travel_of_the_bytes(device: Device) -> None:
    picture = DECODE.picture(H200_ROWS, gpu_bench(device))
    assert picture is not None
    assert [series.label for series in picture.series] == ["eager", "graph", "bytes / bandwidth"]
    assert DECODE.picture([COUNTED], gpu_bench(device)) is None


def test_on_the_cpu_a_batch_makes_more_tokens_a_second_than_one_sequence(bench: Bench) -> None:
    rows = conduct_at(bench, DECODE).rows
    eager = [row for row in rows if row["way"] == "eager"]
    assert [row["batch"] for row in eager] == list(decode.QUICK_CPU_BATCHES)
    assert amount(eager[-1], "tokens") > 1.2 * amount(eager[0], "tokens") > 0
    assert [row["bytes"] for row in eager] == [SMALL.moved(batch, 4) for batch in decode.QUICK_CPU_BATCHES]
    assert "no launch for a graph to save" in str(next(row["note"] for row in rows if row["way"] == "graph"))


class Looping(Pretended):
    """A device whose graphs are loops."""

    def graph(self, run: Run, count: int) -> Callable[[], None]:
        return lambda: [run(i) for i in range(count)] and None


def test_a_graph_that_gives_what_eager_gave_is_believed_and_another_is_not(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: Any = Looping(device, lambda block, registers, shared: 1)
    at = GPUBench(made, quick=True)
    model = Decoder(at.torch, TINY, "cpu", at.torch.float32)
    eager, graph = decode._batch(at, model, TINY, 2)
    assert (eager["way"], graph["way"]) == ("eager", "graph")
    assert "logits" not in f"{eager['note']}{graph['note']}"
    plain, calls = Decoder.step, []

    def wrong(self: Decoder, state: State) -> Any:
        calls.append(1)
        return plain(self, state) * len(calls)

    monkeypatch.setattr(Decoder, "step", wrong)
    _, graph = decode._batch(at, model, TINY, 2)
    assert "logits are off by" in str(graph["note"]) and not graph["believed"]

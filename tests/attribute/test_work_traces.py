"""Real traces: what share of GPU time is known, and that it is known rightly."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from ridgepole.attribute.attribute import attribute
from ridgepole.attribute.ledger import Ledger
from ridgepole.machine import match
from ridgepole.timeline.model import Timeline
from ridgepole.timeline.reader import read

TRACES = Path(__file__).resolve().parents[2] / "../shared/traces"
DECODE = "h200-llama3-8b-decode-b1-ctx128"


@cache
def timeline(name: str) -> Timeline:
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no {path.name} in ../shared/traces")
    return read(path)


@cache
def ledger(name: str, beside: str = "") -> Ledger:
    one = timeline(name)
    machine = match.match(one.devices[0]).machine
    return attribute(one, machine, beside=timeline(beside) if beside else None)


@pytest.mark.parametrize(
    "name",
    [
        "h100-bert-small", "h100-owlv2", "h100-qwen-0.5b", "h100-timesformer", "mi300x-bert-small", "mi300x-qwen-0.5b",
        "h200-gpt2-train-b8-s1024.eager", "h200-llama3-8b-decode-b1-ctx128.eager",
        "h200-resnet50-infer-b1-float32.eager", "b200-vllm-moe-eager",
    ],
)  # fmt: skip
def test_eager_traces_with_shapes_are_known_to_95_percent(name: str) -> None:
    coverage = ledger(name).busiest.coverage
    assert coverage.bucket >= 0.95
    assert coverage.bytes >= 0.95


@pytest.mark.parametrize(
    "name",
    [
        "a100-compile-graphs-nccl", "mi300x-sglang-decode-graph", "rocm-vllm-decode-graph", "mi300x-torch-compile",
        "mi210-gpu-only", f"{DECODE}.graph", "v100-resnet50-2021-schema", "a100-alexnet", "rtx2080ti-linear",
    ],
)  # fmt: skip
def test_graphs_compiled_code_and_traces_without_shapes_have_buckets_that_say_they_are_inferred(name: str) -> None:
    found = ledger(name)
    assert found.busiest.coverage.bucket >= 0.8
    for work in found.work.values():
        if work.quality == "inferred" or work.bucket == "unknown":
            assert work.reason


@pytest.mark.parametrize(
    ("name", "beside"),
    [(f"{DECODE}.graph", f"{DECODE}.eager"), ("rocm-vllm-decode-graph", "rocm-vllm-decode-capture")],
)
def test_a_graph_with_its_eager_or_capture_trace_beside_it_has_bytes_to_90_percent(name: str, beside: str) -> None:
    found = ledger(name, beside)
    assert found.busiest.coverage.bytes >= 0.9
    assert found.busiest.coverage.inferred >= 0.9
    some = next(work for work in found.work.values() if work.quality == "inferred" and work.bytes)
    assert beside in some.reason


def test_timesformers_softmax_is_memory_bound_with_its_bytes_known() -> None:
    found = ledger("h100-timesformer")
    spans = timeline("h100-timesformer").spans
    softmax = [work for i, work in found.work.items() if "cunn_SoftMaxForward" in spans[i].name]
    assert len(softmax) == 12
    assert {(work.bucket, work.quality) for work in softmax} == {("memory", "exact")}
    # 96 heads of 3,137 x 3,137 in bf16, once in, once out.
    assert {work.bytes for work in softmax} == {2 * 2 * 96 * 3137 * 3137}


def test_decode_products_move_their_weights() -> None:
    found = ledger(f"{DECODE}.eager")
    one = timeline(f"{DECODE}.eager")
    products = [(one.spans[i], work) for i, work in found.work.items() if one.spans[i].name.startswith("nvjet")]
    sizes = {(one.ops[span.op].call.tensors[1].shape, work.bytes) for span, work in products if span.op is not None}
    # Q, K and V of Llama 3 8B together: 1 x 4096 @ 4096 x 6144.
    assert ((4096, 6144), 2 * (4096 + 4096 * 6144 + 6144)) in sizes
    assert {work.bucket for _, work in products} == {"memory"}
    assert {work.quality for _, work in products} == {"exact"}
    # Two steps; all weights but the embedding table (128,256 x 4,096, of which a step reads one row): 15 GB each.
    assert sum(work.bytes or 0 for _, work in products) == pytest.approx(2 * 15.0e9, rel=0.01)


def test_a_replayed_graph_moves_what_the_same_steps_moved_eagerly() -> None:
    eager, graph = ledger(f"{DECODE}.eager"), ledger(f"{DECODE}.graph", f"{DECODE}.eager")
    assert sum(w.bytes or 0 for w in graph.work.values()) == sum(w.bytes or 0 for w in eager.work.values())
    assert sum(w.flops or 0 for w in graph.work.values()) == sum(w.flops or 0 for w in eager.work.values())


@pytest.mark.parametrize("name", ["h100-timesformer", f"{DECODE}.eager", "mi300x-qwen-0.5b", "b200-vllm-moe-eager"])
def test_no_kernel_is_faster_than_its_roof_without_a_reason(name: str) -> None:
    found = ledger(name)
    spans = timeline(name).spans
    for index, work in found.work.items():
        if work.attainable is not None and spans[index].kind == "kernel":
            assert work.attainable <= spans[index].ns * 1e-9 * 1.0001
            if work.attainable > spans[index].ns * 1e-9 * 0.9999:
                assert work.reason


def test_fp32_convolutions_of_resnet_ran_as_tf32_where_their_names_say_so() -> None:
    found = ledger("h200-resnet50-infer-b1-float32.eager")
    spans = timeline("h200-resnet50-infer-b1-float32.eager").spans
    kinds = {
        ("tf32" in spans[i].name or "s1688" in spans[i].name, work.dtype, work.unit)
        for i, work in found.work.items()
        if work.flops and ("gemm" in spans[i].name or "fprop" in spans[i].name) and "gemv" not in spans[i].name
    }
    assert kinds == {(True, "tf32", "tensor"), (False, "float32", "vector")}

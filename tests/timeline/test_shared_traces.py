"""Real traces from public collections, which lie beside the checkout: totals are known exactly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ridgepole.errors import BadInput
from ridgepole.timeline import reader
from ridgepole.timeline.model import DEVICE_KINDS, Timeline

from .written import device_spans

Find = Callable[[str], Path]

NAMES = (
    "a100-alexnet", "a100-compile-graphs-nccl", "a100-old-flow-category", "b200-vllm-moe-eager", "h100-bert-small",
    "h100-owlv2", "h100-qwen-0.5b", "h100-timesformer", "h200-gpt2-train-b8-s1024.eager",
    "h200-llama3-8b-decode-b1-ctx128.eager", "h200-llama3-8b-decode-b1-ctx128.graph",
    "h200-resnet50-infer-b1-float32.eager", "int64-overflow", "mi210-gpu-only", "mi300x-bert-small",
    "mi300x-qwen-0.5b", "mi300x-sglang-decode-graph", "mi300x-torch-compile", "rocm-vllm-decode-capture",
    "rocm-vllm-decode-graph", "rtx2080ti-linear", "two-ranks-0", "two-ranks-1", "v100-resnet50-2021-schema",
)  # fmt: skip


def read(shared: Find, name: str) -> Timeline:
    return reader.read(shared(f"traces/{name}.json.gz"))


@pytest.mark.parametrize("name", NAMES)
def test_events_busy_time_and_window_of_each_device_are_exact(shared: Find, name: str) -> None:
    truth = json.loads(shared("traces/truth.json").read_text())[f"{name}.json.gz"]
    timeline = read(shared, name)
    got = {device.id: (device.events, device.busy_ns, device.window_ns) for device in timeline.devices}
    assert got == {id_: (said["gpu_events"], said["busy_ns"], said["window_ns"]) for id_, said in truth.items()}
    check(timeline)


def check(timeline: Timeline) -> None:
    """What holds for any timeline."""
    spans = timeline.spans
    order = [(span.start, -span.end) for span in spans]
    assert order == sorted(order)
    assert timeline.window.ns > 0
    for span in spans:
        assert span.end >= span.start >= 0
        on_device = timeline.lanes[span.lane].kind == "gpu"
        assert on_device == (span.kind in DEVICE_KINDS)
        if span.op is not None:
            assert timeline.ops[span.op].operator
        if span.launch is not None:
            assert on_device
            assert spans[span.launch].kind in ("launch", "sync")
        if span.parent is not None:
            assert spans[span.parent].kind == "op"
            assert spans[span.parent].lane == span.lane
            assert spans[span.parent].start <= span.start


@pytest.mark.parametrize("name", ["h100-owlv2", "h200-gpt2-train-b8-s1024.eager", "v100-resnet50-2021-schema"])
def test_kernels_of_eager_traces_know_their_launch_and_op(shared: Find, name: str) -> None:
    spans = device_spans(read(shared, name))
    linked = sum(span.op is not None and span.launch is not None for span in spans)
    # the 2021 trace begins in the middle of a step, with kernels launched before it
    assert linked / len(spans) > (0.9 if name.startswith("v100") else 0.999)


def test_a_decode_step_from_a_graph_has_every_kernel_inside_the_graph(shared: Find) -> None:
    timeline = read(shared, "h200-llama3-8b-decode-b1-ctx128.graph")
    assert all(span.graph for span in device_spans(timeline))
    assert sum(span.kind == "launch" for span in timeline.spans) == 2


def test_overlap_by_programmatic_launch_is_real_and_is_not_clipped(shared: Find) -> None:
    for name in ("b200-vllm-moe-eager", "h200-llama3-8b-decode-b1-ctx128.eager"):
        timeline = read(shared, name)
        assert all(span.raw_end is None for span in timeline.spans)
        assert not timeline.notes


def test_profiler_steps_are_the_window_where_the_file_has_them(shared: Find) -> None:
    timeline = read(shared, "a100-old-flow-category")
    assert timeline.window.rule == "6 profiler steps, #1009 to #1014"
    assert len(timeline.steps) == 6
    assert read(shared, "v100-resnet50-2021-schema").window.rule == "6 profiler steps, #5 to #10"


def test_modules_are_named_where_python_stacks_were_recorded(shared: Find) -> None:
    timeline = read(shared, "h100-bert-small")
    dense = [op.where.module for op in timeline.ops if op.operator == "aten::addmm"]
    assert dense
    assert all("BertLayer_" in where or "Head" in where for where in dense)


def test_a_training_step_has_its_phases(shared: Find) -> None:
    timeline = read(shared, "h200-gpt2-train-b8-s1024.eager")
    phases = {op.where.phase for op in timeline.ops}
    assert phases == {"forward", "backward", "optimizer"}


def test_a_capture_names_the_kernels_that_its_launches_did_not_run(shared: Find) -> None:
    timeline = read(shared, "rocm-vllm-decode-capture")
    ran = {span.launch for span in device_spans(timeline)}
    named = [
        span
        for index, span in enumerate(timeline.spans)
        if span.kind == "launch" and index not in ran and span.info is not None and span.info.kernel
    ]
    assert len(named) > 400
    assert all(span.info is not None and span.info.grid for span in named)


def test_what_is_no_trace_is_refused(shared: Find) -> None:
    with pytest.raises(BadInput, match="execution trace"):
        read(shared, "not-a-chrome-trace-1")
    with pytest.raises(BadInput, match="AppleDouble"):
        reader.read(shared("traces/not-json-appledouble.json"))


def test_without_device_events_the_cpu_is_the_machine(shared: Find) -> None:
    timeline = read(shared, "cpu-only")
    (device,) = timeline.devices
    assert device.id == "cpu"
    assert device.events == 4
    check(timeline)

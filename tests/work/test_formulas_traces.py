"""Real traces: every ATen operator that launched a kernel has a formula; what has no cost, the trace lost."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from ridgepole.timeline.model import Span, Timeline
from ridgepole.timeline.reader import read
from ridgepole.work.op import Cost, Unpriced

TRACES = Path(__file__).resolve().parents[2] / "../shared/traces"

EAGER = (
    "h100-bert-small", "h100-qwen-0.5b", "mi300x-bert-small", "mi300x-qwen-0.5b",
    "h200-llama3-8b-decode-b1-ctx128.eager", "h200-resnet50-infer-b1-float32.eager", "h200-gpt2-train-b8-s1024.eager",
    "two-ranks-0", "two-ranks-1", "a100-old-flow-category",
)  # fmt: skip
LOST = "not recorded"
"""What a trace leaves out (lists of tensors, in most) no formula can know."""


@cache
def timeline(name: str) -> Timeline:
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no {path.name} in ../shared/traces")
    return read(path)


def launchers(spans: tuple[Span, ...], kernel: Span) -> list[int]:
    """The ops around a kernel's launch, innermost first."""
    found = []
    at = spans[kernel.launch].parent if kernel.launch is not None else None
    while at is not None:
        op = spans[at].op
        if op is not None:
            found.append(op)
        at = spans[at].parent
    return found


def unpriced(one: Timeline) -> tuple[Counter[tuple[str, str]], int]:
    """Time by innermost operator, where no op around has a cost, and the time of all launched by ops."""
    missing: Counter[tuple[str, str]] = Counter()
    total = 0
    for kernel in one.spans:
        around = launchers(one.spans, kernel) if kernel.kind == "kernel" else []
        if not around:
            continue
        total += kernel.ns
        costs = [one.ops[i].cost for i in around]
        if any(isinstance(cost, Cost) and cost.bytes for cost in costs):
            continue
        first = costs[0]
        reason = first.reason if isinstance(first, Unpriced) else "moves nothing by its formula"
        missing[one.ops[around[0]].operator, reason] += kernel.ns
    return missing, total


@pytest.mark.parametrize("name", EAGER)
def test_kernels_of_eager_traces_were_launched_by_ops_with_a_cost_unless_the_trace_lost_it(name: str) -> None:
    missing, total = unpriced(timeline(name))
    assert total
    ours = {key: ns for key, ns in missing.items() if LOST not in key[1]}
    assert sum(ours.values()) <= 0.002 * total, ours


@pytest.mark.parametrize("name", ["h100-bert-small", "mi300x-bert-small", "h200-resnet50-infer-b1-float32.eager"])
def test_models_without_lists_of_tensors_have_a_cost_for_every_kernel(name: str) -> None:
    missing, _ = unpriced(timeline(name))
    assert not missing


@pytest.mark.parametrize("name", EAGER)
def test_every_aten_operator_that_launched_a_kernel_has_a_formula(name: str) -> None:
    missing, _ = unpriced(timeline(name))
    assert [key for key in missing if key[0].startswith("aten::") and key[1].startswith("no formula")] == []


@pytest.mark.parametrize("name", EAGER)
def test_no_argument_of_a_real_trace_is_misunderstood(name: str) -> None:
    reasons = {op.cost.reason for op in timeline(name).ops if isinstance(op.cost, Unpriced)}
    assert [reason for reason in reasons if "not understood" in reason] == []

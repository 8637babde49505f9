"""Elementwise kernels, fills, copies, random numbers, pooling: one pass over the data."""

from __future__ import annotations

from ridgepole import dtypes
from ridgepole.price.kernel import Ask, Estimate, model
from ridgepole.price.spread import THREADS, blocks_of
from ridgepole.work.op import Cost, Op, Tensor

_HEAVY = (
    "gelu", "erf", "tanh", "silu", "sigmoid", "mish", "softplus", "exp", "log", "pow", "sin", "cos", "tan", "elu",
    "sqrt", "lgamma", "digamma", "angle", "polar",
)  # fmt: skip
"""Parts of the names of operators that go through the special-function units or a long polynomial."""


def stream(ask: Ask, instructions: float, *, fraction: float = 1.0, elements: int = 0, what: str = "") -> Estimate:
    """floor + the largest of: bytes streamed, FLOPs at peak, instructions issued for each element."""
    count = elements or ask.elements
    travel = ask.travel(ask.cost.bytes, fraction)
    math = ask.cost.flops / ask.peak if ask.peak else 0.0
    issue = count * instructions / ask.lanes
    grid = blocks_of(ask.written_elements)
    share = ask.bandwidth * fraction / ask.machine.bandwidth
    if issue > travel and issue >= math:
        why = f"{count:,} elements x {instructions:.0f} instructions keep the lanes busier than memory"
        return Estimate(ask.floor + issue, "issue", what or why, grid, THREADS)
    if math > travel:
        return Estimate(ask.floor + math, "vector", "arithmetic at the vector rate", grid, THREADS)
    return Estimate(ask.floor + travel, "dram", what or f"bytes at {share:.0%} of bandwidth", grid, THREADS)


INDEX_BYTES = 8
"""Of an index that a pooling kernel writes beside each output."""


@model("elementwise")
def elementwise(ask: Ask) -> Estimate:
    return stream(ask, _instructions(ask.op, ask))


def _instructions(op: Op, ask: Ask) -> float:
    """Lane instructions an element: a fused kernel pays its loads and stores once, each heavy call its own."""
    plain = ask.constant("issue.plain")
    if not op.inner:
        return plain + _beyond(op, ask)
    return plain + sum(1 + _beyond(inner, ask) for inner in op.inner)


def _beyond(op: Op, ask: Ask) -> float:
    """Instructions of one call beyond a plain one's."""
    key = "issue.plain"
    if isinstance(op.cost, Cost) and op.cost.family == "random":
        key = "issue.random"
    elif is_heavy(op.operator):
        key = "issue.heavy"
    return max(0.0, ask.constant(key) - ask.constant("issue.plain"))


def is_heavy(operator: str) -> bool:
    name = operator.rpartition("::")[2]
    return any(part in name for part in _HEAVY)


@model("copy")
def copy(ask: Ask) -> Estimate:
    return stream(ask, ask.constant("issue.plain"), fraction=ask.constant("copy.fraction"))


@model("fill")
def fill(ask: Ask) -> Estimate:
    return stream(ask, ask.constant("issue.plain"))


@model("random")
def random(ask: Ask) -> Estimate:
    return stream(ask, ask.constant("issue.random"))


@model("optimizer")
def optimizer(ask: Ask) -> Estimate:
    return stream(ask, ask.constant("issue.plain") * 2)


@model("pool")
def pool(ask: Ask) -> Estimate:
    """Each output reads its whole window through the caches: instructions go with outputs x window."""
    outputs = ask.written_elements
    if not ask.op.call.outputs and "indices" in ask.op.operator:
        size = dtypes.itemsize(ask.cost.dtype)
        outputs = outputs * size // (size + INDEX_BYTES)
    return stream(ask, ask.constant("issue.pool"), elements=outputs * _window(ask))


def _window(ask: Ask) -> int:
    """Elements of the pooling window: its kernel_size argument, else inputs over outputs."""
    for arg in ask.op.call.args[1:2]:
        if isinstance(arg, tuple) and arg and all(isinstance(n, int) for n in arg):
            size = 1
            for n in arg:
                size *= int(n)  # type: ignore[arg-type]
            return max(1, size) if "adaptive" not in ask.op.operator else _ratio(ask)
        if isinstance(arg, int) and not isinstance(arg, bool):
            return max(1, arg)
    return _ratio(ask)


def _ratio(ask: Ask) -> int:
    sources = [t for t in ask.op.call.args[:1] if isinstance(t, Tensor)]
    return max(1, sources[0].numel // max(1, ask.written_elements)) if sources and ask.op.call.outputs else 1


@model("other")
def other(ask: Ask) -> Estimate:
    """No model of its own: as a streaming kernel, which is the least it can be; its range is wide."""
    return stream(ask, ask.constant("issue.plain"), what="no model of its own: priced as one pass over its bytes")

"""What each device span did: the cost of the op that launched it, or what matching and its name can tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath

from ridgepole import dtypes
from ridgepole.attribute import names
from ridgepole.attribute.beside import Known, Matcher, key, known_kernels
from ridgepole.attribute.ledger import KernelWork, Quality
from ridgepole.attribute.three_times import times
from ridgepole.machine.model import Machine, Unit
from ridgepole.timeline.model import DEVICE_KINDS, Span, Timeline
from ridgepole.work.cost import NO_DTYPE, assess, base_name, retyped
from ridgepole.work.op import Cost, Gemm, Op, Unpriced

MAIN: dict[str, tuple[names.Kind, ...]] = {
    "matmul": ("matmul",),
    "conv": ("conv", "matmul"),
    "attention": ("attention", "matmul"),
}
"""For families with helpers beside them: the kinds of kernel that do the arithmetic."""
SHORT = 2.0
"""A kernel of unknown size that takes under twice the smallest kernel's time is taken to be at the floor."""
WEAK_REUSE = 64
"""A product whose output tile is this narrow re-reads its other operand so often that it streams (skinny)."""


def kernel_work(timeline: Timeline, machine: Machine | None, beside: Timeline | None = None) -> dict[int, KernelWork]:
    """What every device span of `timeline` did, by its index. `beside`: a timeline of the same program with shapes."""
    work = _from_ops(timeline, machine)
    device = [i for i, span in enumerate(timeline.spans) if span.kind in DEVICE_KINDS]
    unknown = [i for i in device if i not in work]
    if unknown:
        own = Matcher(known_kernels(timeline, work), "this trace")
        other = Matcher([], "")
        if beside is not None:
            seen = known_kernels(beside, _from_ops(beside, machine)) or _from_launches(beside, machine)
            other = Matcher(seen, PurePath(beside.target).name)
        _match(timeline, machine, work, unknown, own, other)
    for i in unknown:
        if i not in work:
            work[i] = _by_name(timeline.spans[i], machine, _reason(timeline, timeline.spans[i]))
    return work


def _from_ops(timeline: Timeline, machine: Machine | None) -> dict[int, KernelWork]:
    """Spans whose work their own record or their op tells."""
    work: dict[int, KernelWork] = {}
    groups: dict[tuple[int, int], list[int]] = {}
    for index, span in enumerate(timeline.spans):
        if span.kind not in DEVICE_KINDS:
            continue
        if span.kind in ("copy", "set"):
            work[index] = _transfer(span, machine)
        elif span.kind == "collective":
            work[index] = KernelWork("communication", "exposed-communication", "exact", reason="a collective")
        else:
            at = _provider(timeline, span)
            if at is not None:
                groups.setdefault((at[0], at[1] if at[1] >= 0 else -index - 1), []).append(index)
    for (op_index, _), members in groups.items():
        typed = _typed(timeline.ops[op_index], timeline, members)
        if typed is not None:
            _share(timeline, machine, *typed, members, work)
    return work


def _transfer(span: Span, machine: Machine | None) -> KernelWork:
    size = span.info.nbytes if span.info is not None else None
    # A copy inside the device reads and writes its memory; one from or to the host passes it once, over the link.
    through = 0 if size is None else size * (2 if "dtod" in span.name.lower() else 1)
    seconds = None
    inside = any(word in span.name.lower() for word in ("dtod", "memset", "fill"))
    if size is not None and machine is not None and inside:
        seconds = min(through / machine.bandwidth, span.ns * 1e-9)
    return KernelWork("transfer", "", "exact", 0, None if size is None else through, t_memory=seconds)


def _provider(timeline: Timeline, span: Span) -> tuple[int, int] | None:
    """The innermost op around the launch that has a cost of its own: (its op, its span or -1 where not known)."""
    spans, ops = timeline.spans, timeline.ops
    at = spans[span.launch].parent if span.launch is not None else None
    fallback = None
    while at is not None:
        index = spans[at].op
        if index is not None:
            cost = ops[index].cost
            if isinstance(cost, Cost) and cost.family != "view":
                return index, at
            if isinstance(cost, Unpriced) and cost.reason == NO_DTYPE and fallback is None:
                fallback = index, at
        at = spans[at].parent
    if fallback is not None:
        return fallback
    if span.op is not None:
        cost = ops[span.op].cost
        if (isinstance(cost, Cost) and cost.family != "view") or (
            isinstance(cost, Unpriced) and cost.reason == NO_DTYPE
        ):
            return span.op, -1
    return None


def _typed(op: Op, timeline: Timeline, members: Sequence[int]) -> tuple[Op, Quality] | None:
    """The op with its cost; where only its dtype is missing, with the dtype that its kernels' names give."""
    if isinstance(op.cost, Cost):
        return op, "exact"
    for index in sorted(members, key=lambda i: -timeline.spans[i].ns):
        dtype = names.read(timeline.spans[index].name).dtype
        if dtype:
            call = retyped(op.call, "float32" if dtype == "tf32" else dtype)
            cost = assess(call)
            return (replace(op, call=call, cost=cost), "inferred") if isinstance(cost, Cost) else None
    return None


def _share(
    timeline: Timeline,
    machine: Machine | None,
    op: Op,
    quality: Quality,
    members: Sequence[int],
    work: dict[int, KernelWork],
) -> None:
    """Give an op's cost to its kernels: all of it to the kernels that do the arithmetic, by their time."""
    spans, cost = timeline.spans, op.cost
    assert isinstance(cost, Cost)
    wanted = MAIN.get(cost.family)
    if wanted is None or len(members) == 1:
        main = list(members)
    else:
        kinds = {i: names.read(spans[i].name).kind for i in members}
        main = next((found for kind in wanted if (found := [i for i in members if kinds[i] == kind])), [])
        main = main or [max(members, key=lambda i: spans[i].ns)]
    whole = sum(spans[i].ns for i in main) or 1
    reason = "" if quality == "exact" else "its dtype is the one its kernel's name gives"
    for index in main:
        span = spans[index]
        part = span.ns / whole if len(main) > 1 else 1.0
        tf32 = cost.dtype == "float32" and cost.family in MAIN and _is_tf32(span.name)
        dtype, unit = ("tf32", "tensor") if tf32 else (cost.dtype, cost.unit)
        work[index] = _priced(
            span,
            round(cost.flops * part),
            round(cost.bytes * part),
            dtype,
            unit,
            machine,
            quality,
            reason,
            timeline.kind,
        )
    for index in members:
        if index not in work:
            work[index] = _helper(spans[index], op, cost, machine)


def _is_tf32(name: str) -> bool:
    # nvjet kernels run on tensor cores only, so one that multiplies fp32 does it as TF32.
    return names.read(name).dtype == "tf32" or name.startswith("nvjet")


def _priced(
    span: Span,
    flops: int,
    nbytes: int,
    dtype: str,
    unit: Unit,
    machine: Machine | None,
    quality: Quality,
    reason: str,
    kind: str = "measured",
) -> KernelWork:
    found = times(flops, nbytes, dtype, unit, machine, span.ns * 1e-9 if kind == "measured" else None)
    said = "; ".join(part for part in (reason, found.reason) if part)
    return KernelWork(
        bucket=found.bucket,
        cause=found.cause,
        quality=quality,
        flops=flops,
        bytes=nbytes,
        dtype=found.dtype,
        unit=found.unit,
        t_compute=found.t_compute,
        t_memory=found.t_memory,
        floor=found.floor,
        reason=said,
    )


def _helper(span: Span, op: Op, cost: Cost, machine: Machine | None) -> KernelWork:
    """A kernel beside the one that does the op's arithmetic: its bytes follow from what it is for."""
    kind = names.read(span.name).kind
    low = span.name.lower()
    tensors = op.call.tensors
    if kind == "layout" and tensors:
        moved = cost.written if "nhwctonchw" in low or "nhwc2nchw" in low else max(t.nbytes for t in tensors[:2])
        return _priced(span, 0, 2 * moved, cost.dtype, "vector", machine, "inferred", "re-lays a tensor of its op")
    if kind == "join":
        size = dtypes.itemsize("float32")
        count = (
            cost.detail.batch * cost.detail.m * cost.detail.n if isinstance(cost.detail, Gemm) else cost.written // 2
        )
        return _priced(
            span,
            count,
            count * size + cost.written,
            cost.dtype,
            "vector",
            machine,
            "inferred",
            "adds at least one partial result",
        )
    found = _by_name(span, machine, f"a kernel beside {op.operator}'s main one")
    if found.bytes is None and found.bucket == "memory" and tensors:
        # Whatever it prepares, it reads or writes one of the op's tensors: the smallest is a bound from below.
        least = min(t.nbytes for t in tensors)
        return replace(found, bytes=least, reason=f"{found.reason}; at least its op's smallest tensor")
    return found


def _match(
    timeline: Timeline,
    machine: Machine | None,
    work: dict[int, KernelWork],
    unknown: Sequence[int],
    own: Matcher,
    other: Matcher,
) -> None:
    """Give unknown kernels the work of known ones that they match."""
    spans = timeline.spans
    kernels = [i for i in unknown if spans[i].kind == "kernel"]
    aligned = other.align([spans[i] for i in kernels]) if other else {}
    for position, index in enumerate(kernels):
        found = own.find(spans[index]) or other.find(spans[index], aligned.get(position))
        if found is not None:
            seen, how = found
            unit: Unit = "tensor" if seen.unit == "tensor" else "vector"
            work[index] = _priced(
                spans[index], seen.flops or 0, seen.bytes or 0, seen.dtype, unit, machine, "inferred", how
            )


def _from_launches(timeline: Timeline, machine: Machine | None) -> list[Known]:
    """Kernels of a capture: launches that name a kernel and its grid, inside ops with shapes, but ran nothing yet."""
    found: list[Known] = []
    groups: dict[tuple[int, int], list[Span]] = {}
    for span in timeline.spans:
        if span.kind != "launch" or span.info is None or not span.info.kernel:
            continue
        at = _provider(timeline, replace(span, launch=None, op=span.op))
        parent = span.parent
        while at is None and parent is not None:
            index = timeline.spans[parent].op
            if index is not None and isinstance(timeline.ops[index].cost, Cost):
                at = index, parent
            parent = timeline.spans[parent].parent
        if at is not None:
            groups.setdefault(at, []).append(span)
    for (op_index, _), launches in groups.items():
        op = timeline.ops[op_index]
        if not isinstance(op.cost, Cost) or op.cost.family == "view":
            continue
        main = _main_launch(launches, op.cost)
        info = main.info
        assert info is not None
        done = _priced(
            replace(main, end=main.start),
            op.cost.flops,
            op.cost.bytes,
            op.cost.dtype,
            op.cost.unit,
            machine,
            "exact",
            "",
            "priced",
        )
        found.append(Known(key(info.kernel, info), done, 0, op.operator))
    return found


def _main_launch(launches: Sequence[Span], cost: Cost) -> Span:
    wanted: Iterable[names.Kind] = MAIN.get(cost.family, ())
    for kind in wanted:
        for span in launches:
            if span.info is not None and names.read(span.info.kernel).kind == kind:
                return span
    return launches[0]


def _reason(timeline: Timeline, span: Span) -> str:
    """Why the op does not tell what a kernel did."""
    if span.graph:
        return "inside a graph: no op is recorded"
    if span.op is None:
        return "no op is recorded"
    cost = timeline.ops[span.op].cost
    return (
        cost.reason
        if isinstance(cost, Unpriced)
        else f"{base_name(timeline.ops[span.op].operator)} moves nothing itself"
    )


def _by_name(span: Span, machine: Machine | None, why: str) -> KernelWork:
    """Inference from the name and grid alone."""
    if span.kind == "collective":
        return KernelWork("communication", "exposed-communication", "exact")
    named = names.read(span.name)
    floor = machine.overheads.floor.value if machine is not None else None
    if named.kind == "unknown":
        return KernelWork("unknown", "unknown", "unknown", reason=why)
    said = f"{why}; its name says {named.kind}"
    size = names.elementwise_bytes(span.name, span.info)
    if size is not None and machine is not None and size / machine.bandwidth <= span.ns * 1e-9:
        return _priced(
            span, 0, size, named.dtype or "float32", "vector", machine, "inferred", f"{said}, its grid its size"
        )
    if floor is not None and span.ns * 1e-9 < SHORT * floor:
        return KernelWork(
            "overhead", "kernel-floor", "inferred", floor=floor, reason=f"{said}; as short as an empty kernel"
        )
    if named.kind in names.STREAMING:
        return KernelWork("memory", "memory", "inferred", dtype=named.dtype, floor=floor, reason=said)
    if named.kind in ("matmul", "conv"):
        return _product(span, named, machine, said)
    if named.kind == "moe":
        return KernelWork("memory", "memory", "inferred", dtype=named.dtype, floor=floor, reason=said)
    if named.kind == "attention" and _is_decode(span.name):
        return KernelWork(
            "memory", "memory", "inferred", dtype=named.dtype, floor=floor, reason=f"{said} over a paged cache"
        )
    return KernelWork(
        "unknown", "unknown", "unknown", reason=f"{said}, but not whether its keys or its products bound it"
    )


def _is_decode(name: str) -> bool:
    return any(word in name.lower() for word in ("paged", "decode", "splitkv", "split_kv", "_3d", "_2d"))


def _product(span: Span, named: names.Named, machine: Machine | None, said: str) -> KernelWork:
    """A matrix product or convolution of unknown size: how often its output tile reuses what it reads."""
    floor = machine.overheads.floor.value if machine is not None else None
    if "gemv" in span.name.lower():
        return KernelWork(
            "memory", "memory", "inferred", dtype=named.dtype, floor=floor, reason=f"{said}, matrix x vector"
        )
    if named.tile is None:
        return KernelWork("unknown", "unknown", "unknown", reason=f"{said}, but not of what size")
    rows, columns = named.tile
    narrow = min(rows, columns)
    blocks = _blocks(span)
    if narrow < WEAK_REUSE:
        return KernelWork(
            "memory",
            "memory",
            "inferred",
            dtype=named.dtype,
            floor=floor,
            reason=f"{said}; a {rows}x{columns} tile reuses little",
        )
    sms = machine.limits.sms.value if machine is not None else None
    if blocks is None or sms is None or blocks >= sms / 2:
        return KernelWork(
            "compute",
            "compute",
            "inferred",
            dtype=named.dtype,
            floor=floor,
            reason=f"{said}; a {rows}x{columns} tile reuses much",
        )
    return KernelWork("unknown", "unknown", "unknown", reason=f"{said}, too few blocks to say what bound it")


def _blocks(span: Span) -> int | None:
    if span.info is None or span.info.grid is None:
        return None
    x, y, z = span.info.grid
    return x * y * z

"""Matrix products that run far below the roof, and the reason: alignment, tensor cores left off, or too few tiles."""

from __future__ import annotations

from collections import defaultdict
from math import ceil
from statistics import median

from ridgepole import units
from ridgepole.attribute.ledger import KernelWork
from ridgepole.explain.case import Case
from ridgepole.explain.finding import Finding
from ridgepole.explain.findings import rule
from ridgepole.timeline.model import Span
from ridgepole.work.op import Cost, Gemm

LEAST_SHARE = 0.02
ALIGNED = 16
"""Bytes that each row of an operand should be a multiple of for the fast kernels (16-byte loads, TMA)."""
POOR = 0.6
"""Share of the roof under which a misaligned product is worth padding."""
REACHED = 0.7
"""Assumed share of the roof that an aligned product of the same size reaches."""

SMALLEST_TILE = 64
"""Rows and columns of a small output tile: blocks that a small product cannot have more of."""


def _products(case: Case) -> list[tuple[Span, KernelWork, Cost, Gemm]]:
    found = []
    for span, work in case.spans:
        cost = case.cost(span)
        if cost is not None and isinstance(cost.detail, Gemm) and work.flops and work.bucket == "compute":
            found.append((span, work, cost, cost.detail))
    return found


@rule("misaligned-matmul")
def misaligned(case: Case) -> Finding | None:
    """Products whose operands' rows are not multiples of 16 bytes, and which run well below the roof for it."""
    slow = [
        (span, work, cost, gemm)
        for span, work, cost, gemm in _products(case)
        if gemm.aligned < ALIGNED
        and cost.unit == "tensor"
        and work.attainable
        and work.attainable * 1e9 < POOR * span.ns
    ]
    ns = sum(span.ns for span, *_ in slow)
    if case.share(ns) < LEAST_SHARE:
        return None
    ideal = sum((work.attainable or 0.0) * 1e9 / REACHED for _, work, *_ in slow)
    gain = round(ns - ideal)
    span, work, cost, gemm = max(slow, key=lambda item: item[0].ns)
    reached = (work.attainable or 0.0) * 1e9 / span.ns
    return Finding(
        id="misaligned-matmul",
        fix="pad",
        summary=(
            f"{units.percent(case.share(ns))} of this window went to {_products_of(len(slow), cost)} with misaligned "
            f"rows: rows of {gemm.m} x {gemm.n} x {gemm.k} {cost.dtype} are a multiple of {gemm.aligned} bytes only, "
            f"which rules out 16-byte loads; it reached {units.percent(reached)} of the roof."
        ),
        fix_summary=f"pad to whole 16-byte rows: {case.change(gain)}",
        how=_padding(cost, gemm),
        gain_ns=gain,
        after_ns=case.window - gain,
        arithmetic=(
            f"{units.nanoseconds(ns)} measured - {units.nanoseconds(round(ideal))} "
            f"at {units.percent(REACHED)} of the roof"
        ),
        upper_bound=False,
        evidence={"calls": len(slow), "ns": ns, "m": gemm.m, "n": gemm.n, "k": gemm.k, "aligned_bytes": gemm.aligned},
    )


def _products_of(count: int, cost: Cost) -> str:
    what = "convolution" if cost.family == "conv" else "matrix product"
    return f"{count:,} {what}{'s' if count > 1 else ''}"


def _padding(cost: Cost, gemm: Gemm) -> str:
    """Which sizes to pad, and to what: whole 16-byte rows at least, 64 elements for the best tiles."""
    if cost.family == "conv":
        return "pad the channels to a multiple of 8, or fold pixels into them (space to depth)"
    sides = {"m": gemm.m, "n": gemm.n, "k": gemm.k}
    odd = [f"{name} = {size:,} → {-(-size // 64) * 64:,}" for name, size in sides.items() if size % 8]
    return f"pad {', '.join(odd)}" if odd else "pad the row pitch (the leading strides) to a multiple of 16 bytes"


@rule("tensor-cores-off")
def tensor_cores_off(case: Case) -> Finding | None:
    """fp32 products on the vector units of a machine whose tensor cores take TF32 or bf16."""
    if case.machine is None or case.machine.kind != "gpu":
        return None
    faster = case.machine.peak("tensor", "tf32") or case.machine.peak("tensor", "bfloat16")
    plain = case.machine.peak("vector", "float32")
    if faster is None or plain is None or faster.value <= 1.5 * plain.value:
        return None
    slow = [
        (span, work)
        for span, work, *_ in _products(case)
        if work.dtype == "float32" and work.unit == "vector" and work.quality == "exact"
    ]
    ns = sum(span.ns for span, _ in slow)
    products = f"{len(slow):,} fp32 matrix product{'s' if len(slow) > 1 else ''}"
    if case.share(ns) < LEAST_SHARE:
        return None
    after = 0.0
    for span, work in slow:
        compute = (work.flops or 0) / faster.value / REACHED
        after += min(max(compute, work.t_memory or 0.0) * 1e9, span.ns)
    gain = round(ns - after)
    return Finding(
        id="tensor-cores-off",
        fix="tf32",
        summary=(
            f"{units.percent(case.share(ns))} of this window went to {products} on the vector units "
            f"({units.rate_flops(plain.value)}); the tensor cores take TF32 at {units.rate_flops(faster.value)}."
        ),
        fix_summary=f"turn them on: {case.change(gain)}",
        how='torch.set_float32_matmul_precision("high"), torch.backends.cudnn.allow_tf32 = True; or bf16 autocast',
        gain_ns=gain,
        after_ns=case.window - gain,
        arithmetic=(
            f"{units.nanoseconds(ns)} measured - {units.nanoseconds(round(after))} "
            f"at {units.percent(REACHED)} of the TF32 roof"
        ),
        upper_bound=False,
        evidence={"calls": len(slow), "ns": ns},
    )


@rule("small-matmul")
def small_matmul(case: Case) -> Finding | None:
    """Products with too few tiles for the SMs. Gain: equal ones as one batched product, in as few waves as it takes."""
    alike: defaultdict[Gemm, list[int]] = defaultdict(list)
    for span, work in case.spans:
        gemm = case.small_product(span, work)
        if gemm is not None:
            alike[gemm].append(span.ns)
    ns = sum(sum(times) for times in alike.values())
    if case.machine is None or case.share(ns) < LEAST_SHARE:
        return None
    sms = max(1, int(case.machine.limits.sms.value))
    gemm, times = max(alike.items(), key=lambda item: sum(item[1]))
    after = sum(ceil(len(of) * _blocks(g) / sms) * median(of) for g, of in alike.items())
    gain = max(0, round(ns - after))
    count = sum(len(of) for of in alike.values())
    each = median(times)
    blocks, flops = _blocks(gemm), 2 * gemm.m * gemm.n * gemm.k * gemm.batch
    shape = f"{gemm.m} x {gemm.n} x {gemm.k}" + (f", {gemm.batch} of them," if gemm.batch > 1 else "")
    return Finding(
        id="small-matmul",
        fix="batch" if gain else "none",
        summary=(
            f"{units.percent(case.share(ns))} of this window went to {count:,} matrix product"
            f"{'s' if count > 1 else ''} too small for the machine: {shape} is {blocks:,} tile"
            f"{'s' if blocks > 1 else ''} of {SMALLEST_TILE}x{SMALLEST_TILE} for {sms} SMs and "
            f"{units.rate_flops(flops / each * 1e9)}; starting the kernel and walking k once takes its "
            f"{units.nanoseconds(round(each))}, not the arithmetic."
        ),
        fix_summary=f"equal ones as one batched product: {case.change(gain)}" if gain else "",
        how="stack the operands for one torch.bmm, or make one wider linear; one small product alone is at its floor",
        gain_ns=gain,
        after_ns=case.window - gain,
        arithmetic=(
            f"{units.nanoseconds(ns)} of {count:,} apart - {units.nanoseconds(round(after))} in whole waves of {sms}"
            if gain
            else ""
        ),
        upper_bound=True,
        evidence={"calls": count, "ns": ns, "m": gemm.m, "n": gemm.n, "k": gemm.k, "tiles": blocks, "sms": sms},
    )


def _blocks(gemm: Gemm) -> int:
    return ceil(gemm.m / SMALLEST_TILE) * ceil(gemm.n / SMALLEST_TILE) * gemm.batch

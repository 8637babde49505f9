"""The work that moves the most bytes: name it, and what would move fewer; and work that no roof explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ridgepole import units
from ridgepole.attribute.ledger import OpRow
from ridgepole.attribute.names import named
from ridgepole.explain.case import Case
from ridgepole.explain.finding import Finding
from ridgepole.explain.findings import rule

LEAST_SHARE = 0.08
FAR = 0.2
"""Share of the roof under which neither bytes nor arithmetic is what takes the time."""
REACHED = 0.7
"""Assumed share of the roof that a kernel which fills the device reaches."""
FUSING = ("elementwise", "copy")
"""Families whose ops fuse with one another, and so are one matter."""

_LOSS = (
    "fused-loss",
    "a fused linear and cross-entropy never writes the whole logits",
    "liger_kernel's LigerFusedLinearCrossEntropyLoss, or the loss in chunks of rows under torch.compile",
    0.5,
)
_ADVICE: Mapping[str, tuple[str, str, str, float]] = {
    # family: fix, in words, how, share of its time the fix leaves
    "softmax": (
        "sdpa",
        "one fused attention kernel never writes the scores",
        "F.scaled_dot_product_attention(q, k, v), or attn_implementation='sdpa'",
        0.0,
    ),
    "attention": (
        "fewer-kv-bytes",
        "keys and values are read for few queries: share heads (GQA), or store them in fewer bits",
        "a model with fewer key-value heads; an fp8 or int8 KV cache",
        0.5,
    ),
    "elementwise": ("fuse", "fuse neighbours so that each tensor is read and written once", "torch.compile(fn)", 0.5),
    "copy": ("fuse", "fuse neighbours so that each tensor is read and written once", "torch.compile(fn)", 0.5),
    "norm": ("fuse", "fuse it with its neighbours", "torch.compile(fn)", 0.5),
    "reduction": ("fuse", "fuse it with what produces its input", "torch.compile(fn)", 0.5),
    "matmul": (
        "fewer-weight-bytes",
        "its weights are read for few rows: batch more rows, or store them in fewer bits",
        "larger batch; int8 or fp8 weights (torchao)",
        0.5,
    ),
    "optimizer": ("fuse", "one fused optimizer kernel", "torch.optim.AdamW(..., fused=True)", 0.7),
}
_BATCHED = ("aten::bmm", "aten::baddbmm")
_FALLBACK = ("fuse", "move fewer bytes: fuse it, or use a smaller dtype", "torch.compile(fn); bf16", 0.5)


@rule("memory-bound")
def memory_bound(case: Case) -> Finding | None:
    """The largest memory-bound matter: an operator over all its places, or all ops that fuse with one another.

    Kernels without an operator are summed by what they do. Rows far below their roof are left to `off_roof`.
    """
    family_of = _families(case)
    groups: dict[str, list[OpRow]] = {}
    for row in case.device.ops:
        family = _family(row, family_of)
        if row.bucket == "memory" and not _far(row, family):
            key = "fusing" if family in FUSING and not _fused(row) else _label(row, family_of)
            groups.setdefault(key, []).append(row)
    rows = max(groups.values(), key=_ns, default=[])
    ns = _ns(rows)
    if not rows or case.share(ns) < LEAST_SHARE:
        return None
    first = max(rows, key=lambda row: row.ns)
    family = _family(first, family_of)
    calls = sum(row.count for row in rows)
    moved = sum(row.bytes or 0 for row in rows)
    names = sorted(dict.fromkeys(row.op for row in rows), key=lambda op: -_ns([row for row in rows if row.op == op]))
    summary = _summary(case, names, first, family_of, rows)
    evidence = {"op": first.op, "ops": names, "ns": ns, "bytes": moved, "family": family, "calls": calls}
    fix, words, how, left = _advice(case, first, family)
    if fix == "fuse" and (_fused(first) or (family in FUSING and calls == 1)):
        # Nothing to fuse it with: a gain would take it below the bytes it must move.
        return Finding(
            id="memory-bound",
            fix="none",
            summary=summary,
            fix_summary="",
            how="a smaller dtype, or fewer elements: it is fused already" if _fused(first) else "a smaller dtype",
            gain_ns=0,
            after_ns=case.window,
            arithmetic="",
            upper_bound=False,
            evidence=evidence,
        )
    gain = round(ns * (1 - left))
    return Finding(
        id="memory-bound",
        fix=fix,
        summary=summary,
        fix_summary=f"{words}: {case.change(gain)}",
        how=how,
        gain_ns=gain,
        after_ns=case.window - gain,
        arithmetic=f"{units.nanoseconds(ns)} x (1 - {left:g}) (assumed share of it the fix leaves)",
        upper_bound=True,
        evidence=evidence,
    )


@rule("off-roof")
def off_roof(case: Case) -> Finding | None:
    """An operator that takes much time and reaches little of its roof. Gain: at 70 % of it, or at the floor."""
    family_of = _families(case)
    groups: dict[str, list[OpRow]] = {}
    for row in case.device.ops:
        family = _family(row, family_of)
        if _far(row, family) and (
            row.bucket == "memory" or (row.bucket == "compute" and (case.on_cpu or family == "attention"))
        ):
            groups.setdefault(_label(row, family_of), []).append(row)
    label, rows = max(groups.items(), key=lambda item: _ns(item[1]), default=("", []))
    ns = _ns(rows)
    if not rows or case.share(ns) < LEAST_SHARE:
        return None
    reached = sum((row.efficiency or 0.0) * row.ns for row in rows) / ns
    calls = sum(row.count for row in rows)
    floor = case.machine.overheads.floor.value * 1e9 if case.machine is not None else 0.0
    gain = max(0, round(ns - max(ns * reached / REACHED, calls * floor)))
    if case.on_cpu:
        how = "look for set-up in the first call, page faults on fresh memory, or more threads than free cores"
    else:
        how = "more parallel work a call (batch, split keys or columns), another backend; ncu says what stalls"
    return Finding(
        id="off-roof",
        fix="fill-the-device",
        summary=(
            f"{label} takes {units.percent(case.share(ns))} of this window and reaches {units.percent(reached)} of its "
            f"roof: neither bytes nor arithmetic explains {_calls(calls)}, {units.nanoseconds(ns)}."
        ),
        fix_summary=f"at {units.percent(REACHED)} of its roof: {case.change(gain)}",
        how=how,
        gain_ns=gain,
        after_ns=case.window - gain,
        arithmetic=(
            f"{units.nanoseconds(ns)} measured - {units.nanoseconds(ns - gain)} "
            f"at {units.percent(REACHED)} of the roof, or at the floor"
        ),
        upper_bound=True,
        evidence={"op": rows[0].op, "ns": ns, "efficiency": reached, "calls": calls},
    )


def _ns(rows: Sequence[OpRow]) -> int:
    return sum(row.ns for row in rows)


def _calls(count: int) -> str:
    return f"{count:,} call{'s' if count > 1 else ''}"


def _far(row: OpRow, family: str) -> bool:
    """Whether its roof says little about its time. A softmax goes away when fused, however slow it is."""
    return family != "softmax" and row.efficiency is not None and row.efficiency < FAR


def _fused(row: OpRow) -> bool:
    """Whether a compiler fused it already: our own price of compiled code, or Inductor's kernels."""
    return row.op.startswith("fused::") or any(name.startswith("triton_") for name in (row.op, *row.names))


def _families(case: Case) -> Mapping[str, str]:
    """Operators of the run with the family their formula gives."""
    families: dict[str, str] = {}
    for span, _ in case.spans:
        found, cost = case.op(span), case.cost(span)
        if found is not None and cost is not None:
            families[found.operator] = cost.family
    return families


def _family(row: OpRow, family_of: Mapping[str, str]) -> str:
    return family_of.get(row.op) or named(row.op).family


def _advice(case: Case, row: OpRow, family: str) -> tuple[str, str, str, float]:
    if row.op in _BATCHED:
        # Scores and what they weigh, between which a softmax stands; or products of no weights.
        scores = any(other.op.endswith("_softmax") for other in case.device.ops)
        return (*_ADVICE["softmax"][:3], 0.5) if scores else _FALLBACK
    if any(word in row.op for word in ("log_softmax", "cross_entropy", "nll_loss")):
        return _LOSS
    return _ADVICE.get(family, _FALLBACK)


def _summary(
    case: Case, names: Sequence[str], first: OpRow, family_of: Mapping[str, str], rows: Sequence[OpRow]
) -> str:
    ns, moved = _ns(rows), sum(row.bytes or 0 for row in rows)
    known = sum(row.known_ns for row in rows)
    rate = f", moving {units.nbytes(moved)} at {units.rate_bytes(moved / known * 1e9)}" if moved and known else ""
    if len(names) == 1 or first.op not in family_of:
        verbs = f"{_label(first, family_of)} is memory-bound and takes"
    else:
        said = [_plain(name) for name in names[:3]]
        last = f"{len(names) - 3} more" if len(names) > 3 else said.pop()
        verbs = f"{', '.join(said)} and {last} are memory-bound and take"
    return (
        f"{verbs} {units.percent(case.share(ns))} of this window: "
        f"{_calls(sum(row.count for row in rows))}, {units.nanoseconds(ns)}{rate}."
    )


def _plain(op: str) -> str:
    return op.removeprefix("aten::").lstrip("_")


def _label(row: OpRow, family_of: Mapping[str, str]) -> str:
    if row.op in family_of:
        return f"{_plain(row.op)} ({row.op})" if row.op.startswith("aten::") else row.op
    return f"{named(row.op).family} (kernels with no op recorded)"

"""The op that moves the most bytes: name it, and what would move fewer."""

from __future__ import annotations

from collections.abc import Mapping

from ridgepole import units
from ridgepole.attribute.ledger import OpRow
from ridgepole.attribute.names import named
from ridgepole.explain.case import Case
from ridgepole.explain.finding import Finding
from ridgepole.explain.findings import rule

LEAST_SHARE = 0.08

_ADVICE: Mapping[str, tuple[str, str, str, float]] = {
    # family: fix, in words, how, share of its time the fix leaves
    "softmax": (
        "sdpa",
        "one fused attention kernel never writes the scores",
        "F.scaled_dot_product_attention(q, k, v), or attn_implementation='sdpa'",
        0.0,
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
_FALLBACK = ("fuse", "move fewer bytes: fuse it, or use a smaller dtype", "torch.compile(fn); bf16", 0.5)


@rule("memory-bound")
def memory_bound(case: Case) -> Finding | None:
    """The largest memory-bound operator, summed over its places; kernels without one are summed by what they do."""
    groups: dict[str, list[OpRow]] = {}
    family_of = _families(case)
    for row in case.device.ops:
        if row.bucket == "memory":
            groups.setdefault(_label(row, family_of), []).append(row)
    if not groups:
        return None
    label, rows = max(groups.items(), key=lambda item: sum(row.ns for row in item[1]))
    ns = sum(row.ns for row in rows)
    if case.share(ns) < LEAST_SHARE:
        return None
    family = family_of.get(rows[0].op) or named(rows[0].op).family
    fix, words, how, left = _ADVICE.get(family, _FALLBACK)
    gain = round(ns * (1 - left))
    moved = sum(row.bytes or 0 for row in rows)
    known = sum(row.known_ns for row in rows)
    rate = f", moving {units.nbytes(moved)} at {units.rate_bytes(moved / known * 1e9)}" if moved and known else ""
    calls = sum(row.count for row in rows)
    return Finding(
        id="memory-bound",
        fix=fix,
        summary=(
            f"{label} is memory-bound and takes {units.percent(case.share(ns))} of this window: "
            f"{calls:,} call{'s' if calls > 1 else ''}, {units.nanoseconds(ns)}{rate}."
        ),
        fix_summary=f"{words}: {case.change(gain)}",
        how=how,
        gain_ns=gain,
        after_ns=case.window - gain,
        arithmetic=f"{units.nanoseconds(ns)} x (1 - {left:g}) (assumed share of it the fix leaves)",
        upper_bound=True,
        evidence={"op": rows[0].op, "ns": ns, "bytes": moved, "family": family, "calls": calls},
    )


def _families(case: Case) -> Mapping[str, str]:
    """Operators of the run with the family their formula gives."""
    families: dict[str, str] = {}
    for span, _ in case.spans:
        found, cost = case.op(span), case.cost(span)
        if found is not None and cost is not None:
            families[found.operator] = cost.family
    return families


def _label(row: OpRow, family_of: Mapping[str, str]) -> str:
    if row.op in family_of:
        plain = row.op.removeprefix("aten::").lstrip("_")
        return f"{plain} ({row.op})" if row.op.startswith("aten::") else row.op
    return f"{named(row.op).family} (kernels with no op recorded)"

"""The CPU stops the queue, or keeps the GPU waiting for something other than launches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ridgepole import units
from ridgepole.explain.case import Case
from ridgepole.explain.finding import Finding
from ridgepole.explain.findings import rule


@dataclass(frozen=True, slots=True)
class _Wait:
    """One kind of waiting: its cause in the ledger and what removes it."""

    cause: str
    fix: str
    what: str
    fix_summary: str
    how: str
    on_cpu: tuple[str, str] | None = None
    """`what` and `how` where the CPU is the machine and there is no GPU to keep waiting."""


_SYNC = _Wait(
    "sync",
    "remove-sync",
    "the GPU stood idle because the CPU had waited for it and so had nothing queued",
    "read results back once in a while, not every step",
    "keep losses and counters on the GPU (tensor.detach()), call .item() / .cpu() every N steps",
)
_LOADING = _Wait(
    "data-loading",
    "data-loader",
    "the GPU waited for the next batch",
    "load ahead",
    "DataLoader(num_workers=4, pin_memory=True, persistent_workers=True, prefetch_factor=2)",
    (
        "nothing ran but the fetching of the next batch",
        "DataLoader(num_workers=1 or more, persistent_workers=True), where cores are free",
    ),
)
_ALLOCATOR = _Wait(
    "allocator",
    "allocator",
    "the GPU waited for memory to be allocated or freed",
    "keep shapes steady so that the caching allocator reuses blocks",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; no torch.cuda.empty_cache() in the loop",
)
_COMPILATION = _Wait(
    "compilation",
    "warm-up",
    "the GPU waited for code to be compiled or loaded",
    "leave the first steps out, and keep shapes from changing",
    "ridgepole why --steps 3- TRACE; torch._dynamo.config.error_on_recompile to find recompilation",
)


@rule("sync-bound")
def sync_bound(case: Case) -> Finding | None:
    return _waiting(case, _SYNC, "sync-bound")


@rule("data-loading")
def data_loading(case: Case) -> Finding | None:
    return _waiting(case, _LOADING, "data-loading")


@rule("allocator")
def allocator(case: Case) -> Finding | None:
    return _waiting(case, _ALLOCATOR, "allocator")


@rule("compilation")
def compilation(case: Case) -> Finding | None:
    return _waiting(case, _COMPILATION, "compilation")


def _waiting(case: Case, wait: _Wait, name: str) -> Finding | None:
    ns = case.ns(wait.cause)
    if ns <= 0:
        return None
    evidence: dict[str, object] = {"idle_ns": ns}
    culprits = ""
    what, how = wait.on_cpu if case.on_cpu and wait.on_cpu else (wait.what, wait.how)
    if wait.cause == "sync":
        names = _sync_names(case)
        evidence["syncs"] = dict(names)
        culprits = "; ".join(f"{count} x {what}" for what, count in names.most_common(3))
        culprits = f" ({culprits})" if culprits else ""
    return Finding(
        id=name,
        fix=wait.fix,
        summary=f"{units.percent(case.share(ns))} of this window {what}{culprits}.",
        fix_summary=f"{wait.fix_summary}: {case.change(ns)}",
        how=how,
        gain_ns=ns,
        after_ns=case.window - ns,
        arithmetic=f"all {units.nanoseconds(ns)} booked under {wait.cause}",
        upper_bound=True,
        evidence=evidence,
    )


def _sync_names(case: Case) -> Counter[str]:
    """What the CPU called when it waited: the outermost op around each sync call, else the call itself."""
    spans, window = case.timeline.spans, case.timeline.window
    names: Counter[str] = Counter()
    for span in spans:
        if span.kind != "sync" or span.end < window.start or span.start > window.end:
            continue
        outer, parent = span, span.parent
        while parent is not None:
            if spans[parent].kind == "op":
                outer = spans[parent]
            parent = spans[parent].parent
        names[outer.name] += 1
    return names

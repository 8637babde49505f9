"""What each device span did: its work, by the best evidence there is, and the bucket that its three times name.

In order: the cost of the op that launched it; what a kernel of the same name and grid did with an op, here or in the
trace named beside; what its name, grid and time alone tell. Where none tells, it is unknown, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ridgepole import units
from ridgepole.attribute.beside import Matched, Reference, match
from ridgepole.attribute.causes import cause_of_transfer
from ridgepole.attribute.experts import experts
from ridgepole.attribute.inference import infer
from ridgepole.attribute.ledger import KernelWork
from ridgepole.attribute.names import MATRIX
from ridgepole.attribute.shares import Piece, Share, pieces, shares
from ridgepole.attribute.three_times import KERNEL_FLOOR, SLACK, fits_in_time, from_cache, suspects, times
from ridgepole.machine.model import Machine
from ridgepole.timeline.model import Span, Timeline
from ridgepole.work.op import Cost


def kernel_work(timeline: Timeline, machine: Machine | None, beside: Timeline | None = None) -> dict[int, KernelWork]:
    """By index in `timeline.spans`, what each device span did.

    `beside` is a timeline of the same program that has what this one lacks: the ops around kernels of a graph.
    """
    spans = timeline.spans
    devices = [i for i, lane in enumerate(timeline.lanes) if lane.kind == "gpu"]
    kernels = pieces(timeline, (i for i, span in enumerate(spans) if span.kind == "kernel"))
    kernels += _working_ops(timeline, set(devices))
    known = shares(timeline, kernels)
    known.update(experts([piece for piece in kernels if piece.span not in known]))
    missing = [piece for piece in kernels if piece.span not in known]
    matched: dict[int, Matched] = {}
    if missing:
        references = [Reference("this trace", tuple(kernels), known)] if known else []
        if beside is not None:
            references.append(reference(beside))
        unclaimed = [piece for piece in missing if piece.op is None or beside is not None]
        matched = match(unclaimed, kernels, references)
        found = experts([_as_matched(piece, matched) for piece in missing])
        known |= {i: replace(s, reason=f"{matched[i].reason}; {s.reason}") for i, s in found.items() if i in matched}
    among = suspects({piece.name for piece in kernels}, _streamed(kernels, known)) if machine is None else frozenset()
    result: dict[int, KernelWork] = {}
    for piece in kernels:
        share = known.get(piece.span)
        twin = matched.get(piece.span)
        if share is None and twin is not None:
            share = twin.share
        result[piece.span] = _work(_as_matched(piece, matched), share, machine, among)
    for i, span in enumerate(spans):
        if span.kind in ("copy", "set"):
            result[i] = _transfer(timeline, span, machine)
        elif span.kind == "collective":
            result[i] = _collective(timeline, i)
    return result


def reference(timeline: Timeline) -> Reference:
    """A timeline to match against: its kernels, and the kernels that its launch calls name where it has no others."""
    spans = timeline.spans
    launched = {span.launch for span in spans if span.kind == "kernel"}
    indices = [
        i
        for i, span in enumerate(spans)
        if span.kind == "kernel"
        or (span.kind == "launch" and span.info is not None and span.info.kernel and i not in launched)
    ]
    kernels = pieces(timeline, indices)
    known = shares(timeline, kernels)
    known.update(experts([piece for piece in kernels if piece.span not in known]))
    return Reference(timeline.target, tuple(kernels), known)


def _working_ops(timeline: Timeline, devices: set[int]) -> list[Piece]:
    """Where the CPU is the machine and no stream of it is given: the op spans that call no other op."""
    if any(timeline.lanes[i].device == "cpu" for i in devices):
        return []
    if not any(info.id == "cpu" for info in timeline.devices):
        return []
    callers = {span.parent for span in timeline.spans if span.kind == "op"}
    return pieces(timeline, (i for i, s in enumerate(timeline.spans) if s.kind == "op" and i not in callers))


def _as_matched(piece: Piece, matched: Mapping[int, Matched]) -> Piece:
    """`piece` with the grid and op of the kernel it was matched to, where it has none of its own."""
    twin = matched.get(piece.span)
    if twin is None:
        return piece
    return replace(
        piece, grid=piece.grid or twin.piece.grid, block=piece.block or twin.piece.block, op=piece.op or twin.piece.op
    )


STREAMS = ("elementwise", "copy", "fill")
"""Families whose kernels move each byte of their formula, once: their rate is the memory's."""


def _streamed(kernels: Sequence[Piece], known: Mapping[int, Share]) -> list[tuple[int, int]]:
    """Bytes and nanoseconds of the kernels that are known to have streamed their bytes."""
    return [
        (share.bytes, piece.ns)
        for piece in kernels
        if (share := known.get(piece.span)) is not None
        and share.quality == "exact"
        and share.family in STREAMS
        and share.bytes
        and piece.ns
    ]


def _work(piece: Piece, share: Share | None, machine: Machine | None, among: frozenset[str]) -> KernelWork:
    if share is not None:
        return _priced(piece, share, machine, among)
    if _moves_nothing(piece):
        floor = None if machine is None else machine.overheads.floor.value
        why = "allocates or views: it moves nothing"
        return KernelWork("overhead", KERNEL_FLOOR, "exact", 0, 0, t_compute=0.0, t_memory=0.0, floor=floor, reason=why)
    found = infer(piece, machine, among)
    bandwidth = machine.bandwidth if machine is not None and machine.peaks else None
    return KernelWork(
        found.bucket,
        found.cause,
        "unknown" if found.bucket == "unknown" else "inferred",
        flops=found.flops,
        bytes=found.bytes,
        dtype=found.dtype,
        t_memory=found.bytes / bandwidth if found.bytes is not None and bandwidth else None,
        floor=None if machine is None else machine.overheads.floor.value,
        reason=found.reason,
    )


def _moves_nothing(piece: Piece) -> bool:
    """Whether it is an op itself (the CPU being the machine), and one that only allocates or views."""
    op = piece.op
    return op is not None and piece.name == op.operator and isinstance(op.cost, Cost) and op.cost.family == "view"


def _priced(piece: Piece, share: Share, machine: Machine | None, among: frozenset[str]) -> KernelWork:
    reasons = [share.reason] if share.reason else []
    if machine is not None and machine.peaks and piece.ns:
        if share.bytes is not None and not fits_in_time(share.bytes, piece.ns, machine):
            said = f"{units.nbytes(share.bytes)} by its op's shapes cannot move in {units.nanoseconds(piece.ns)}"
            found = _work(piece, None, machine, among)
            return replace(found, reason=f"{said}: not this kernel's; {found.reason}")
        share, note = _plausible(piece, share, machine)
        reasons += [note] if note else []
        if share.bytes is not None and from_cache(share.bytes, piece.ns, machine):
            reasons.append("part of its bytes came from a cache: it is faster than device memory")
    named_by = times(share.flops, share.bytes, share.dtype, share.unit, machine, among)
    if named_by.reason:
        reasons.append(named_by.reason)
    return KernelWork(
        named_by.bucket,
        named_by.cause,
        share.quality,
        flops=share.flops,
        bytes=share.bytes,
        dtype=share.dtype,
        unit=share.unit,
        t_compute=_within(named_by.t_compute, piece),
        t_memory=_within(named_by.t_memory, piece),
        floor=named_by.floor,
        reason="; ".join(reasons),
    )


def _within(seconds: float | None, piece: Piece) -> float | None:
    """A roof's time, at most the time it took: what beat the roof (and says so) is at it, not above."""
    return min(seconds, piece.ns * 1e-9) if seconds is not None and piece.ns else seconds


def _plausible(piece: Piece, share: Share, machine: Machine) -> tuple[Share, str]:
    """`share`, with the unit that its speed shows: fp32 faster than the vector units ran on the matrix units."""
    rate = machine.rate(share.unit, share.dtype)
    if share.flops is None or rate is None or not piece.ns:
        return share, ""
    if share.flops <= rate.value * piece.ns * 1e-9 * SLACK:
        return share, ""
    tf32 = machine.peak("tensor", "tf32")
    if share.family in MATRIX and share.dtype == "float32" and share.unit == "vector" and tf32 is not None:
        return replace(
            share, unit="tensor", dtype="tf32", quality="inferred"
        ), "faster than fp32 can be: taken for TF32"
    return share, "faster than its FLOPs allow at the peak rate: fewer were done (a fast algorithm, skipped blocks)"


def _transfer(timeline: Timeline, span: Span, machine: Machine | None) -> KernelWork:
    """Bytes of a copy or set: as recorded, else of the op that asked for it."""
    nbytes = span.info.nbytes if span.info is not None else None
    inside = "dtod" in span.name.lower() or "device to device" in span.name.lower()
    quality = "exact"
    reason = ""
    if nbytes is not None:
        nbytes = 2 * nbytes if inside else nbytes
    elif span.op is not None and span.kind == "copy":
        cost = timeline.ops[span.op].cost
        if isinstance(cost, Cost) and cost.family in ("copy", "transpose"):
            nbytes = cost.bytes if inside else cost.written
            reason = "bytes by the op's shapes"
    if nbytes is None:
        quality, reason = "unknown", "bytes not recorded"
    through = span.kind == "set" or inside
    t_memory = None
    if nbytes is not None and machine is not None and machine.peaks and through:
        t_memory = nbytes / machine.bandwidth
        if t_memory > span.ns * 1e-9:
            t_memory = span.ns * 1e-9
            cached = "faster than device memory: part of its bytes came from a cache"
            reason = f"{reason}; {cached}" if reason else cached
    return KernelWork(
        "transfer",
        cause_of_transfer(span.kind, span.name),
        "exact" if quality == "exact" else "unknown",
        flops=0,
        bytes=nbytes,
        t_memory=t_memory,
        floor=None if machine is None else machine.overheads.floor.value,
        reason=reason,
    )


def _collective(timeline: Timeline, index: int) -> KernelWork:
    """Communication, with the message's bytes where its op, or the op around that, records them."""
    found: Sequence[Piece] = pieces(timeline, [index])
    share = shares(timeline, found).get(index)
    if share is None or share.family != "collective":
        reason = "message size not recorded"
        return KernelWork("communication", "exposed-communication", "exact", reason=reason)
    return KernelWork(
        "communication",
        "exposed-communication",
        share.quality,
        flops=share.flops,
        bytes=share.bytes,
        dtype=share.dtype,
        reason=share.reason,
    )

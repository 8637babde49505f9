"""Which op's cost belongs to each kernel, where the ops and their shapes are recorded.

An op's FLOPs go to its main kernel, as do its bytes; the kernels that help it (layout changes, joining partial
results, casts) move bytes of their own, by what they do. Several main kernels share in proportion to their time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from ridgepole import dtypes
from ridgepole.attribute.ledger import Quality
from ridgepole.attribute.lookups import sort_pass
from ridgepole.attribute.names import MATRIX, Named, named
from ridgepole.attribute.recover import Elsewhere, elsewhere, recover
from ridgepole.machine.model import Unit
from ridgepole.timeline.model import Span, Timeline
from ridgepole.work.cost import retyped
from ridgepole.work.op import Cost, Family, Gemm, Op

FLOAT = 4
"""Bytes of the fp32 in which partial results are kept."""
LAYOUT_TILE = 32
"""Channels that one block of cuDNN's layout kernels turns."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A kernel that wants its work known: a device span, or a launch call that names the kernel it launched.

    `span` indexes the timeline's spans; `ns` is None for a launch call, whose kernel's time was not recorded; `op` is
    the innermost op around the launch, priced or not.
    """

    span: int
    name: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    ns: int | None
    op: Op | None


@dataclass(frozen=True, slots=True)
class Share:
    """A kernel's part of an op's cost: FLOP and bytes (None: not known), and how that is known."""

    flops: int | None
    bytes: int | None
    dtype: str
    unit: Unit
    family: Family
    quality: Quality
    reason: str = ""


def pieces(timeline: Timeline, indices: Iterable[int]) -> list[Piece]:
    """The spans at `indices` as pieces, in order of start."""
    found = []
    for index in indices:
        span = timeline.spans[index]
        info = span.info
        launch = span.kind == "launch"
        op = innermost(timeline, span)
        found.append(
            Piece(
                index,
                info.kernel if launch and info is not None else span.name,
                None if info is None else info.grid,
                None if info is None else info.block,
                None if launch else span.ns,
                op,
            )
        )
    return found


def innermost(timeline: Timeline, span: Span) -> Op | None:
    """The op that `span` is, or that encloses its launch most closely; None where none was recorded."""
    if span.op is not None:
        return timeline.ops[span.op]
    at = span.parent
    while at is not None:
        op = timeline.spans[at].op
        if op is not None:
            return timeline.ops[op]
        at = timeline.spans[at].parent
    return None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a priced op with the kernels it launched. `exact`: the cost is the op's own, as recorded."""

    op: Op
    cost: Cost
    exact: bool
    pieces: tuple[Piece, ...]


def shares(timeline: Timeline, found: Sequence[Piece]) -> dict[int, Share]:
    """By span, the work of each piece whose op has a cost."""
    result: dict[int, Share] = {}
    for call in calls(timeline, found):
        result.update(share_out(call))
    return result


def calls(timeline: Timeline, found: Sequence[Piece]) -> list[Call]:
    """The pieces, gathered by the call of a priced op that each belongs to; those of none are left out.

    That is the nearest enclosing op with a cost, unless another op inside it has one and it launches nothing itself:
    then its cost is the inner op's, and a stray kernel (a fill, a conversion) has no claim to it.
    """
    known = elsewhere(timeline.ops)
    groups: dict[tuple[int, int], list[Piece]] = {}
    owners: dict[tuple[int, int], tuple[int | None, bool]] = {}
    spoken_for: set[int] = set()
    for piece in found:
        chain = list(_ancestors(timeline, timeline.spans[piece.span]))
        place = next((i for i, at in enumerate(chain) if _costed(timeline, at, piece, known)), None)
        if place is not None:
            key = (1, chain[place])
            spoken_for.update(chain[place + 1 :])
        elif not chain and piece.op is not None:
            # Launch not recorded: each kernel is taken for a call of its own
            key = (0, piece.span)
        else:
            continue
        groups.setdefault(key, []).append(piece)
        own = owners.get(key, (None, False))[1] or not place
        owners[key] = (chain[place] if place is not None else None, own)
    result = []
    for key, group in groups.items():
        at, own = owners[key]
        if at is not None and not own and at in spoken_for:
            continue
        op = timeline.ops[index] if at is not None and (index := timeline.spans[at].op) is not None else group[0].op
        if op is None:
            continue
        if isinstance(op.cost, Cost) and not _is_view(op.cost):
            result.append(Call(op, op.cost, True, tuple(group)))
            continue
        cost = recover(op, [(p.name, p.grid) for p in group], known)
        if cost is not None:
            result.append(Call(op, cost, False, tuple(group)))
    return result


def _ancestors(timeline: Timeline, span: Span) -> Iterable[int]:
    """The op spans around a kernel's launch, innermost first."""
    at = span.parent if span.kind == "launch" else None if span.launch is None else timeline.spans[span.launch].parent
    while at is not None:
        if timeline.spans[at].op is not None:
            yield at
        at = timeline.spans[at].parent


def _costed(timeline: Timeline, at: int, piece: Piece, known: Elsewhere) -> bool:
    """Whether the op span `at` has a cost of its own, or one that the kernel's name makes up for."""
    index = timeline.spans[at].op
    if index is None:
        return False
    op = timeline.ops[index]
    if isinstance(op.cost, Cost):
        return not _is_view(op.cost)
    return recover(op, [(piece.name, piece.grid)], known) is not None


def _is_view(cost: Cost) -> bool:
    return cost.family == "view" or (not cost.bytes and not cost.flops)


def share_out(call: Call) -> dict[int, Share]:
    """Each kernel's part of one call, by span."""
    op, cost = call.op, call.cost
    kernels = [p for p in call.pieces if named(p.name).family != "collective" or cost.family == "collective"]
    quality: Quality = "exact" if call.exact and not cost.assumed else "inferred"
    why = (
        cost.assumed
        if call.exact or cost.assumed
        else "what the trace does not record is read from the kernel's name and grid"
    )
    mains = _mains(kernels, cost.family)
    result: dict[int, Share] = {}
    for piece in kernels:
        if piece not in mains:
            helper = _helper(piece, op, cost, mains)
            if helper is not None:
                result[piece.span] = helper
    if len(mains) == 1:
        unit, dtype = arithmetic(cost, named(mains[0].name))
        result[mains[0].span] = Share(cost.flops, cost.bytes, dtype, unit, cost.family, quality, why)
        return result
    total = sum(p.ns or 0 for p in mains)
    alike = len({(p.name, p.grid) for p in mains}) == 1
    for piece in mains:
        if total and piece.ns is not None:
            part = piece.ns / total
            reason = f"{op.operator} is {len(mains)} kernels here: its cost is shared in proportion to their time"
        elif alike or cost.family not in MATRIX:
            part = 1 / len(mains)
            reason = f"{op.operator} is {len(mains)} kernels here, of unknown times: its cost is shared equally"
        else:
            continue
        unit, dtype = arithmetic(cost, named(piece.name))
        result[piece.span] = Share(
            round(cost.flops * part), round(cost.bytes * part), dtype, unit, cost.family, "inferred", reason
        )
    return result


def _mains(kernels: Sequence[Piece], family: Family) -> list[Piece]:
    """The kernels that do the op itself."""
    if len(kernels) < 2:
        return list(kernels)
    names = [named(p.name) for p in kernels]
    leading = [p for p, n in zip(kernels, names, strict=True) if n.role == "main"]
    if family in MATRIX:
        matrix = [p for p in leading if named(p.name).family in MATRIX]
        if matrix:
            return matrix
        return [max(leading or kernels, key=lambda p: p.ns or 0)]
    same = [p for p in leading if named(p.name).family == family]
    return same or leading or list(kernels)


def arithmetic(cost: Cost, name: Named) -> tuple[Unit, str]:
    """Who does the arithmetic of `cost` in a kernel so named, and in which dtype.

    Traces do not say whether fp32 products ran as TF32; kernels' names do. Matrix-vector kernels use the vector units.
    """
    if cost.family not in MATRIX:
        return cost.unit, cost.dtype
    if name.unit == "vector":
        return "vector", cost.dtype
    if cost.dtype == "float32":
        if name.math == "tf32":
            return "tensor", "tf32"
        if name.unit == "tensor":
            # Matrix units take fp32 as it is on AMD, as TF32 on NVIDIA; the catalog knows which a machine has.
            return "tensor", "float32" if name.dtype == "float32" and not name.math else "tf32"
    return cost.unit, cost.dtype


def _helper(piece: Piece, op: Op, cost: Cost, mains: Sequence[Piece]) -> Share | None:
    """What a helping kernel moves, where its doings and the op's tensors tell; None where they do not."""
    name = named(piece.name)
    nbytes: int | None = None
    what = ""
    if name.role == "layout":
        nbytes, what = _layout(piece, op, cost, mains)
    elif name.role == "combine" and isinstance(cost.detail, Gemm):
        nbytes, what = _combine(cost, cost.detail, mains)
    elif name.role == "cast" and op.call.tensors:
        first = retyped(op.call, cost.dtype).tensors[0]
        nbytes, what = first.numel * FLOAT + first.nbytes, "reads fp32, writes the first operand's dtype"
    elif name.role == "transform" and "dot_do_o" in piece.name.lower() and op.call.tensors:
        nbytes, what = 2 * retyped(op.call, cost.dtype).tensors[0].nbytes, "reads the output and its gradient"
    elif name.family == "sort" and (moved := sort_pass(piece.name, cost)) is not None:
        nbytes, what = moved, "one pass over its indices"
    if nbytes is None:
        return None
    dtype = name.dtype or cost.dtype
    return Share(0, nbytes, dtype, "vector", name.family, "inferred", f"helps {op.operator}: {what}")


def _layout(piece: Piece, op: Op, cost: Cost, mains: Sequence[Piece]) -> tuple[int | None, str]:
    """A layout change reads and writes one tensor of the convolution: which, its grid or its direction tells."""
    tensors = [t for t in retyped(op.call, cost.dtype).tensors if len(t.shape) >= 3]
    if not tensors:
        return None, ""
    before = not mains or piece.span < min(m.span for m in mains)
    if not before:
        return 2 * cost.written, "turns the result's layout"
    if piece.grid is not None:
        for tensor in tensors:
            n, c = tensor.shape[:2]
            if piece.grid[2] == n and piece.grid[1] == ceil(c / LAYOUT_TILE):
                return 2 * tensor.nbytes, f"turns the layout of {'x'.join(map(str, tensor.shape))}"
    return None, ""


def _combine(cost: Cost, gemm: Gemm, mains: Sequence[Piece]) -> tuple[int, str]:
    """Joining a split product reads its partial results, at least two, in fp32, and writes the result once."""
    result = gemm.batch * gemm.m * gemm.n
    depth = max((m.grid[2] for m in mains if m.grid is not None), default=1)
    parts = depth if depth > 1 and gemm.batch == 1 else 2
    said = f"{parts} partial results" if depth > 1 and gemm.batch == 1 else "at least two partial results"
    return result * FLOAT * parts + result * dtypes.itemsize(cost.dtype), f"reads {said}, writes one"

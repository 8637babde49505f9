"""A program as Inductor would run it: pointwise chains and reductions in one kernel each.

What fuses: pointwise ops with the ops that feed them, reductions with the pointwise ops before and after them
over the same elements, and ops that read the same values over the same elements. What does not: matrix
products, convolutions, attention, sorts, scans, scatters and collectives, and nothing into them (Inductor's
defaults: a library's kernel stays whole). Views are free and vanish. Needs the value ids of `Op.inputs` and
`Op.results`; without them nothing is fused, and a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from ridgepole.price import batch_norm
from ridgepole.work.op import Call, Cost, Family, Op, Program, Rows, Tensor

POINTWISE: frozenset[Family] = frozenset({"elementwise", "copy", "fill", "random", "gather"})
REDUCING: frozenset[Family] = frozenset({"reduction", "norm", "softmax"})
MAX_FUSED = 64
"""Ops in one kernel at most: Inductor's `max_fusion_size`."""

Value = tuple[int, int]
"""A value id and how often it has been written: an in-place op makes a new value of the same id."""


@dataclass(slots=True)
class _Group:
    """Ops that become one kernel. `numel`: elements iterated over; `rows`: of its reduction, 0 if it has none."""

    number: int
    ops: list[int]
    numel: int
    fusable: bool
    rows: int = 0
    before: int = 0
    """A bit for each group that must run earlier, transitively."""
    direct: set[int] = field(default_factory=set)
    """The groups that its ops follow directly."""
    made: set[Value] = field(default_factory=set)


def fuse(program: Program) -> Program:
    """The fused program, in an order its values allow, and what it could not know in its notes."""
    working = [op for op in program.ops if not _is_view(op)]
    if not any(op.results for op in working):
        note = "nothing fused: this program does not say which values its ops read and make"
        return replace(program, notes=(*program.notes, note)) if working else program
    flow = _Flow(working, program)
    groups = _group(flow)
    return replace(program, ops=tuple(_merge(flow, group) for group in _order(groups)))


def _is_view(op: Op) -> bool:
    return isinstance(op.cost, Cost) and op.cost.family == "view"


class _Flow:
    """Which value each op reads and makes, who made it and who reads it, and which it must therefore follow."""

    def __init__(self, ops: Sequence[Op], program: Program) -> None:
        self.ops = ops
        self.size = _sizes(program.ops)
        self.reads: list[tuple[Value, ...]] = []
        self.makes: list[tuple[Value, ...]] = []
        self.maker: dict[Value, int] = {}
        self.readers: dict[Value, list[int]] = {}
        self.follows: list[set[int]] = []
        version: dict[int, int] = {}
        for index, op in enumerate(ops):
            reads = tuple((i, version.get(i, 0)) for i in op.inputs)
            earlier = {self.maker[value] for value in reads if value in self.maker}
            made = []
            for result in op.results:
                old = (result, version.get(result, 0))
                # Written over: what read or made the old value comes first.
                earlier.update(self.readers.get(old, ()))
                if old in self.maker:
                    earlier.add(self.maker[old])
                if old in self.maker or old in self.readers or result in op.inputs:
                    version[result] = old[1] + 1
                made.append((result, version.get(result, 0)))
            for value in reads:
                self.readers.setdefault(value, []).append(index)
            for value in made:
                self.maker[value] = index
            earlier.discard(index)
            self.reads.append(reads)
            self.makes.append(tuple(made))
            self.follows.append(earlier)
        given = {value[0] for value in self.readers if value[1] == 0 and value not in self.maker}
        # What was there before the program and was written over (a cache, a weight) outlives it.
        self.last = {(i, version.get(i, 0)) for i in given.union(program.returned)}


def _sizes(ops: Sequence[Op]) -> dict[int, int]:
    """Bytes of each value id: of the largest tensor seen under it, views being no larger than their base."""
    sizes: dict[int, int] = {}
    for op in ops:
        for value, tensor in (
            *zip(op.inputs, op.call.tensors, strict=False),
            *zip(op.results, op.call.outputs, strict=False),
        ):
            sizes[value] = max(sizes.get(value, 0), tensor.nbytes)
    return sizes


def _group(flow: _Flow) -> list[_Group]:
    groups: list[_Group] = []
    home: list[_Group] = []
    touching: dict[Value, list[_Group]] = {}
    for index, op in enumerate(flow.ops):
        numel, rows, fusable = _domain(op)
        earlier = {home[i].number: home[i] for i in flow.follows[index]}
        chosen = None
        if fusable:
            near = list(earlier.values())
            sharing = [g for value in flow.reads[index] for g in touching.get(value, ())[-4:]]
            for group in sorted(near, key=lambda g: -g.number) + sharing:
                if _fits(group, numel, rows) and _acyclic(group, earlier):
                    chosen = group
                    break
        if chosen is None:
            chosen = _Group(len(groups), [], numel, fusable, rows)
            groups.append(chosen)
        _join(chosen, index, earlier, rows, groups)
        chosen.numel = max(chosen.numel, numel)
        chosen.made.update(flow.makes[index])
        home.append(chosen)
        for value in flow.reads[index]:
            if chosen.fusable:
                touching.setdefault(value, []).append(chosen)
    return groups


def _domain(op: Op) -> tuple[int, int, bool]:
    """Elements an op iterates over, rows it reduces to (0: none), and whether it may be fused."""
    cost = op.cost
    if not isinstance(cost, Cost) or op.syncs:
        return 0, 0, False
    outputs = [t.numel for t in op.call.outputs]
    if cost.family in POINTWISE or batch_norm.stored(op):
        whole = sum(outputs) if "_foreach_" in op.operator else max(outputs, default=0)
        return whole, 0, bool(outputs)
    if cost.family in REDUCING and isinstance(cost.detail, Rows):
        return cost.detail.rows * cost.detail.length, cost.detail.rows, True
    if cost.family in REDUCING:
        whole = max((t.numel for t in op.call.tensors), default=0)
        return whole, max(1, min(outputs, default=1)), True
    return 0, 0, False


def _fits(group: _Group, numel: int, rows: int) -> bool:
    """Same elements; or, behind a reduction, its rows. Two reductions must agree on their rows."""
    if not group.fusable or len(group.ops) >= MAX_FUSED:
        return False
    if rows and group.rows and rows != group.rows:
        return False
    if numel == group.numel:
        return True
    return bool(group.rows) and not rows and numel == group.rows


def _acyclic(group: _Group, earlier: dict[int, _Group]) -> bool:
    """Whether nothing else that the op must follow must itself follow the group."""
    bit = 1 << group.number
    return not any(other is not group and other.before & bit for other in earlier.values())


def _join(group: _Group, index: int, earlier: dict[int, _Group], rows: int, groups: list[_Group]) -> None:
    added = 0
    for other in earlier.values():
        if other is not group:
            added |= other.before | 1 << other.number
            group.direct.add(other.number)
    group.ops.append(index)
    group.rows = group.rows or rows
    new = added & ~group.before
    if not new:
        return
    group.before |= new
    if len(group.ops) == 1:
        return  # just begun: nothing follows it yet
    bit = 1 << group.number
    for other in groups:
        if other.before & bit:
            other.before |= new


def _order(groups: list[_Group]) -> list[_Group]:
    """Topological, the group whose first op comes first in the program ahead."""
    waiting = {g.number: len(g.direct) for g in groups}
    after: dict[int, list[int]] = {g.number: [] for g in groups}
    for group in groups:
        for earlier in group.direct:
            after[earlier].append(group.number)
    ready: list[tuple[int, int]] = []
    for group in groups:
        if not waiting[group.number]:
            heappush(ready, (group.ops[0], group.number))
    ordered = []
    while ready:
        _, number = heappop(ready)
        ordered.append(groups[number])
        for later in after[number]:
            waiting[later] -= 1
            if not waiting[later]:
                heappush(ready, (groups[later].ops[0], later))
    assert len(ordered) == len(groups), "the groups form a cycle"
    return ordered


def _merge(flow: _Flow, group: _Group) -> Op:
    ops = [flow.ops[i] for i in group.ops]
    if len(ops) == 1:
        only = ops[0]
        if group.fusable and isinstance(only.cost, Cost) and only.cost.kernels > 1:
            return replace(only, cost=replace(only.cost, kernels=1))
        return only
    inside = set(group.ops)
    sources: dict[Value, Tensor] = {}
    loaded: dict[Value, int] = {}
    sinks: dict[Value, Tensor] = {}
    read = written = flops = 0
    for index, op in zip(group.ops, ops, strict=True):
        assert isinstance(op.cost, Cost)
        flops += op.cost.flops
        spared = 0
        for value, tensor in zip(flow.reads[index], op.call.tensors, strict=False):
            if value in group.made:
                spared += tensor.nbytes
                continue
            # Slices of one value are read piece by piece; no value is read twice over.
            fresh = min(tensor.nbytes, flow.size[value[0]] - loaded.get(value, 0))
            loaded[value] = loaded.get(value, 0) + fresh
            spared += tensor.nbytes - fresh
            sources.setdefault(value, tensor)
        read += max(0, op.cost.read - spared)
        kept = op.cost.written
        for value, tensor in zip(flow.makes[index], op.call.outputs, strict=False):
            users = flow.readers.get(value, ())
            if users and value not in flow.last and all(user in inside for user in users):
                kept -= tensor.nbytes
            else:
                sinks[value] = tensor
        written += max(0, kept)
    call = Call(f"fused::{'reduction' if group.rows else 'pointwise'}", tuple(sources.values()), tuple(sinks.values()))
    return Op(
        call=call,
        cost=_cost(ops, group, flops, read, written),
        where=ops[0].where,
        inner=tuple(ops),
        inputs=tuple(value[0] for value in sources),
        results=tuple(value[0] for value in sinks),
    )


def _cost(ops: Sequence[Op], group: _Group, flops: int, read: int, written: int) -> Cost:
    kinds: list[Cost] = [op.cost for op in ops if isinstance(op.cost, Cost)]
    reducing = [
        op.cost for op in ops if isinstance(op.cost, Cost) and op.cost.family in REDUCING and not batch_norm.stored(op)
    ]
    names = {cost.dtype for cost in kinds}
    family: Family = "elementwise"
    if reducing:
        families = {cost.family for cost in reducing}
        family = "softmax" if "softmax" in families else "norm" if "norm" in families else "reduction"
    detail = Rows(group.rows, group.numel // max(1, group.rows)) if group.rows else None
    dtype = names.pop() if len(names) == 1 else "float32"
    return Cost(flops, read, written, dtype, "vector", family, 1, detail)

"""What a program costs on a machine: three costs, a timeline, a range, and how each op came by its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ridgepole import units
from ridgepole.machine.model import Machine
from ridgepole.price import tuning
from ridgepole.price.bound import compute_seconds
from ridgepole.price.flags import Flags
from ridgepole.price.fuse import fuse
from ridgepole.price.kernel import KernelTime, kernel_time
from ridgepole.price.queue import NS, Costs, Issue, Mode, Target, on_cpu, simulate
from ridgepole.price.spread import Spread
from ridgepole.timeline.model import DeviceInfo, Kind, Launch, Timeline
from ridgepole.work.op import Call, Op, Program, Unpriced


@dataclass(frozen=True, slots=True)
class PricedOp:
    """Calls alike in everything (operator, shapes, cost): `count` of them, `seconds` in total, `each` one's time."""

    op: Op
    count: int
    seconds: float
    each: KernelTime

    @property
    def operator(self) -> str:
        return self.op.operator


@dataclass(frozen=True, slots=True)
class NoPrice:
    """Calls of one operator that have no price, and why. Their time is missing from the total."""

    operator: str
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class Geometry:
    """How `count` launches of one operator spread over the machine."""

    operator: str
    count: int
    spread: Spread


@dataclass(frozen=True, slots=True)
class Price:
    """A program's price on one machine. Times in seconds, memory in bytes.

    `seconds`: wall, from the first dispatch to the last event, `low` to `high`; `gpu_seconds`: device time, kernels
    back to back, the short gaps between them included.
    `launches`: kernels; `dispatches`: framework ops. The three costs by themselves, none overlapped:
    `launch`: launches x (dispatch + launch), one launch for a graph, `travel`: bytes / device bandwidth,
    `math`: FLOPs / peak rate.
    """

    program: str
    machine: Machine
    mode: Mode
    seconds: float
    low: float
    high: float
    gpu_seconds: float
    launches: int
    dispatches: int
    bytes: int
    flops: int
    launch: float
    travel: float
    math: float
    timeline: Timeline
    geometry: tuple[Geometry, ...]
    ops: tuple[PricedOp, ...]
    unpriced: tuple[NoPrice, ...]
    peak_memory: int
    parameters: int
    notes: tuple[str, ...] = ()
    launch_each: float = 0.0
    """Seconds of the CPU for one op with one launch, or for the launch of a graph.

    `launch_source` says where that figure is from.
    """
    launch_source: str = ""
    math_rate: float = 0.0
    """FLOPs over `math`: the rate they would run at, the mix of dtypes and units being what it is."""
    range_source: str = ""


def price(program: Program, machine: Machine, mode: Mode = "eager", *, tf32: bool = False) -> Price:
    """Price `program` on `machine`: as eager PyTorch runs it, as one graph, or compiled (fused)."""
    flags = Flags(tf32=tf32)
    fused = fuse(program) if mode == "compiled" else program
    known: dict[tuple[Call, object], KernelTime | Unpriced] = {}
    times: list[KernelTime | Unpriced] = []
    for op in fused.ops:
        key = (op.call, op.cost)
        if key not in known:
            known[key] = kernel_time(op, machine, flags)
        times.append(known[key])
    notes = [*fused.notes, *_notes(fused, machine, mode)]
    middle, low, high = (_run(fused, machine, mode, times, which, notes) for which in ("seconds", "low", "high"))
    priced = [(op, t) for op, t in zip(fused.ops, times, strict=True) if isinstance(t, KernelTime)]
    launches = sum(t.kernels for _, t in priced)
    over = machine.overheads
    each = _issue_each(machine, mode)
    flops = sum(_cost_of(op, "flops") for op, _ in priced)
    math = sum(compute_seconds(op.cost, machine, flags) for op, _ in priced if not isinstance(op.cost, Unpriced))
    nbytes = sum(_cost_of(op, "bytes") for op, t in priced if t.kernels)
    gpu = sum(t.seconds for _, t in priced)
    return Price(
        program=program.name,
        machine=machine,
        mode=mode,
        seconds=middle.window.ns / NS,
        low=low.window.ns / NS,
        high=high.window.ns / NS,
        gpu_seconds=gpu,
        launches=launches,
        dispatches=len(fused.ops),
        bytes=nbytes,
        flops=flops,
        launch=each if mode == "graph" else launches * each,
        travel=nbytes / machine.bandwidth,
        math=math,
        timeline=middle,
        geometry=_geometry(priced),
        ops=_rows(priced),
        unpriced=_unpriced(fused.ops, times),
        peak_memory=program.peak_memory,
        parameters=program.parameters,
        notes=tuple(notes),
        launch_each=each,
        launch_source=str((over.launch if mode == "graph" else over.dispatch).source),
        math_rate=flops / math if math else 0.0,
        range_source=_range_source(machine, mode),
    )


def _dispatch_share(machine: Machine, mode: Mode) -> float:
    """What of a framework op's dispatch a kernel of this mode costs the CPU."""
    return tuning.constant(machine, "dispatch.compiled").value if mode == "compiled" else 1.0


def _issue_each(machine: Machine, mode: Mode) -> float:
    """Seconds of the CPU for each kernel with its op; for a graph, for its one launch."""
    over = machine.overheads
    if mode == "graph":
        return over.launch.value
    return over.dispatch.value * _dispatch_share(machine, mode) + over.launch.value


def _range_source(machine: Machine, mode: Mode) -> str:
    """Where `low` and `high` are from, by the matrix products' error: the family that carries most programs."""
    measured = tuning.constant(machine, "error.matmul").source.kind == "measured"
    kernels = "measured error of each kernel family" if measured else "assumed: twice the kernel error seen on Hopper"
    return kernels if mode == "graph" else f"{kernels}; issuing {_doubt(machine) * 100:.0f} % either way, assumed"


def _cost_of(op: Op, field: str) -> int:
    return 0 if isinstance(op.cost, Unpriced) else int(getattr(op.cost, field))


def _run(
    program: Program, machine: Machine, mode: Mode, times: Sequence[KernelTime | Unpriced], which: str, notes: list[str]
) -> Timeline:
    """The timeline with every kernel at its `which` time, and issuing costs as far off as their source allows."""
    over = machine.overheads
    scale = {"seconds": 1.0, "low": 1 - _doubt(machine), "high": 1 + _doubt(machine)}[which]
    costs = Costs(
        launch=round(over.launch.value * scale * NS),
        sync=round(max(0.0, over.round_trip.value - over.launch.value - over.floor.value) * scale * NS),
        gap=round(over.graph_gap.value * scale * NS),
        depth=max(1, int(over.queue_depth.value)),
    )
    dispatch = over.dispatch.value * scale
    dispatch *= _dispatch_share(machine, mode)
    issues = [
        _issue(index, op, time, which, dispatch, machine)
        for index, (op, time) in enumerate(zip(program.ops, times, strict=True))
    ]
    if machine.kind == "cpu":
        device = DeviceInfo("cpu", machine.name)
        return on_cpu(issues, Target(program.name, program.ops, device, tuple(notes)))
    limits = machine.limits
    device = DeviceInfo(
        "0", machine.name, sms=int(limits.sms.value), warp=int(limits.warp.value), compute=machine.compute
    )
    return simulate(issues, costs, Target(program.name, program.ops, device, tuple(notes)), mode)


ASSUMED_DOUBT = 0.5
MEASURED_DOUBT = 0.3
"""Shares by which issuing costs may be off: one host measured in bare runs drifted by 30 %; others are other CPUs."""


def _doubt(machine: Machine) -> float:
    kinds = {machine.overheads.dispatch.source.kind, machine.overheads.launch.source.kind}
    return MEASURED_DOUBT if kinds == {"measured"} else ASSUMED_DOUBT


def _issue(index: int, op: Op, time: KernelTime | Unpriced, which: str, dispatch: float, machine: Machine) -> Issue:
    if isinstance(time, Unpriced):
        return Issue(index, op.operator, round(dispatch * NS), (), syncs=op.syncs)
    dispatch *= _share_of(op, time, machine)
    if not time.kernels:
        return Issue(index, op.operator, round(dispatch * NS), (), syncs=op.syncs)
    gap = 0.0 if machine.kind == "cpu" else machine.overheads.graph_gap.value
    # A kernel's time reaches to the next one's start; what runs is that less the gap.
    whole = float(getattr(time, which))
    total = max(time.kernels, round(max(whole - gap * time.kernels, min(whole, time.bound)) * NS))
    part = total // time.kernels
    durations = (total - part * (time.kernels - 1), *([part] * (time.kernels - 1)))
    spread = time.spread
    info = Launch(grid=(spread.grid, 1, 1), block=(spread.block, 1, 1)) if spread else None
    return Issue(index, op.operator, round(dispatch * NS), durations, _kind(op), op.syncs, info)


def _share_of(op: Op, time: KernelTime, machine: Machine) -> float:
    """What an op's dispatch takes of a plain one's: a view less, a product, whose library chooses a kernel, more."""
    family = "" if isinstance(op.cost, Unpriced) else op.cost.family
    key = f"dispatch.{family if time.kernels else 'view'}"
    return tuning.constant(machine, key).value if tuning.known(machine, key) else 1.0


def _kind(op: Op) -> Kind:
    """A copy between host and device is a copy; every other copy is a kernel like any."""
    if isinstance(op.cost, Unpriced):
        return "kernel"
    return "collective" if op.cost.family == "collective" else "kernel"


def _geometry(priced: Sequence[tuple[Op, KernelTime]]) -> tuple[Geometry, ...]:
    counts: Counter[tuple[str, Spread]] = Counter()
    for op, time in priced:
        if time.spread is not None:
            counts[(op.operator, time.spread)] += 1
    return tuple(Geometry(operator, count, spread) for (operator, spread), count in counts.items())


def _rows(priced: Sequence[tuple[Op, KernelTime]]) -> tuple[PricedOp, ...]:
    """Alike calls together, the dearest first."""
    rows: dict[tuple[Call, object], PricedOp] = {}
    for op, time in priced:
        if not time.kernels:
            continue
        row = rows.get((op.call, op.cost))
        if row is None:
            rows[(op.call, op.cost)] = PricedOp(op, 1, time.seconds, time)
        else:
            rows[(op.call, op.cost)] = replace(row, count=row.count + 1, seconds=row.seconds + time.seconds)
    return tuple(sorted(rows.values(), key=lambda row: -row.seconds))


def _unpriced(ops: Sequence[Op], times: Sequence[KernelTime | Unpriced]) -> tuple[NoPrice, ...]:
    counts = Counter((op.operator, t.reason) for op, t in zip(ops, times, strict=True) if isinstance(t, Unpriced))
    return tuple(NoPrice(operator, count, why) for (operator, why), count in counts.most_common())


def _does_not_fit(program: Program, machine: Machine) -> str:
    """That the program needs more memory than the machine has; "" where it fits or nothing is known."""
    dram = machine.level("dram")
    capacity = dram.capacity.value if dram is not None and dram.capacity is not None else 0.0
    if not capacity or program.peak_memory <= capacity:
        return ""
    needs, has = units.nbytes(program.peak_memory), units.nbytes(capacity)
    return f"does not fit: needs {needs} at its peak, {machine.name} has {has}; priced as if it did"


def _notes(program: Program, machine: Machine, mode: Mode) -> list[str]:
    notes = []
    if too_large := _does_not_fit(program, machine):
        notes.append(too_large)
    missing = sum(isinstance(op.cost, Unpriced) for op in program.ops)
    if missing:
        notes.append(f"{missing} of {len(program.ops)} ops have no price: the total is too low by their time")
    syncs = sum(op.syncs for op in program.ops)
    if mode == "graph" and syncs:
        notes.append(
            f"{syncs} op{'s make' if syncs > 1 else ' makes'} the CPU wait: no graph holds that, the wait is left out"
        )
    if mode == "compiled":
        notes.append("assumed: a compiled call costs the CPU a quarter of a framework op's dispatch")
    if machine.overheads.dispatch.source.kind != "measured" and mode != "graph":
        notes.append(f"launch costs are {machine.overheads.dispatch.source}")
    return notes

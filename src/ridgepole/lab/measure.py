"""A machine measured: the experiments it takes, and the figures they make, each with how and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from types import MappingProxyType

from ridgepole import units
from ridgepole.errors import RidgepoleError
from ridgepole.lab import host, peaks
from ridgepole.lab.bench import Bench
from ridgepole.lab.conditions import conditions
from ridgepole.lab.conduct import INTERRUPTED, TERMINATED, conduct_at, find
from ridgepole.lab.experiment import Row
from ridgepole.lab.experiments.bandwidth import CACHE, MEMORY
from ridgepole.lab.experiments.latency import cycles_at, named
from ridgepole.lab.values import amount
from ridgepole.machine import catalog, detect
from ridgepole.machine.measured import SUFFIX, Measured, build
from ridgepole.machine.model import Figure, Machine, MemoryLevel, Source
from ridgepole.price.undiscounted import constants

LEVELS = {"L1": "shared", "L2": "l2", "L3": "llc", "HBM": "dram", "DRAM": "dram"}
"""What an experiment calls a level, and what a machine does."""


def measure(bench: Bench, *, full: bool = False) -> Machine:
    """The machine of this bench with every figure that can be had here measured.

    A CPU: bandwidth, peaks and caches by torch's own kernels, latencies by the chase. A GPU: bandwidth, peaks, what it
    costs to run at all, and with `full` latencies and the L2's bandwidth too. What fails is left as the catalog has it,
    and said in the notes. Raises Missing where torch or a device is missing, BadInput for a GPU that no table has.
    """
    return _cpu(bench) if bench.on_cpu else _gpu(bench, full)


def _how(bench: Bench, what: str) -> Source:
    now = conditions(bench.device)
    return Source("measured", f"{what}, {date.today().isoformat()}; {now['driver']}; clocks {now['clocks']}")


def _cpu(bench: Bench) -> Machine:
    bench.note("bandwidth and products by torch's own kernels")
    here = detect.cpu(measure_again=True)
    notes = list(detect.crowded())
    levels = _latencies(bench, _rows(bench, "latency", notes))
    memory = tuple(
        replace(level, latency=levels[level.name].latency) if level.name in levels else level for level in here.memory
    )
    first = levels.get("shared")
    said = (f"the first cache answers in {first.latency.value * 1e9:.2f} ns",) if first and first.latency else ()
    return replace(
        here,
        name=here.name + SUFFIX,
        aliases=("cpu-measured",),
        memory=memory,
        notes=(*here.notes, *said, *notes),
        measured_of=here.name,
    )


def _gpu(bench: Bench, full: bool) -> Machine:
    base = catalog.datasheet(detect.local())
    notes: list[str] = []
    levels: dict[str, MemoryLevel] = {}
    for of, figure in _bandwidths(bench, notes):
        levels[of] = MemoryLevel(of, "device", None, figure, None)
    rates = {}
    for peak in peaks.measure(bench):
        if peak.rate is None:
            notes.append(f"{peak.unit} {peak.dtype} was not measured: {peak.why}")
            continue
        source = _how(bench, f"product of {peak.side} x {peak.side} by the vendor's library, median")
        rates[peak.unit, peak.dtype] = Figure(peak.rate, "FLOP/s", source)
    overheads = _overheads(bench, notes)
    if full:
        for of, level in _latencies(bench, _rows(bench, "latency", notes)).items():
            levels[of] = replace(levels.get(of, level), latency=level.latency)
    limits = bench.device.limits
    said = _how(bench, "the driver's report")
    found = build(
        base,
        Measured(
            peaks=rates,
            levels=levels,
            limits={
                "sms": Figure(float(limits.sms), "1", said),
                "shared_per_block": Figure(float(limits.shared_per_block), "B", said),
                **({"clock": Figure(limits.clock, "Hz", said)} if limits.clock else {}),
            },
            overheads=overheads,
            notes=tuple(notes),
        ),
    )
    return replace(found, tuning=MappingProxyType(dict(constants(base, found))))


def _rows(bench: Bench, name: str, notes: list[str]) -> Sequence[Row]:
    """The rows of an experiment; where it fails, none or those before, and a note. An interruption goes on up."""
    bench.note(f"lab {name}")
    try:
        result = conduct_at(bench, find(name))
    except RidgepoleError as error:
        notes.append(f"{name} was not measured: {error}")
        return ()
    if result.stopped in (INTERRUPTED, TERMINATED):
        raise KeyboardInterrupt
    if result.stopped:
        notes.append(f"{name} ended early: {result.stopped}")
    return result.rows


def _bandwidths(bench: Bench, notes: list[str]) -> Iterator[tuple[str, Figure]]:
    """The highest believed bandwidth of device memory and, where the experiment copies within it, of the L2."""
    rows = _rows(bench, "bandwidth", notes)
    for of, where in (("dram", MEMORY), ("l2", CACHE)):
        held = [row for row in rows if row["where"] == where and amount(row, "bandwidth") and not row["note"]]
        if held:
            best = max(held, key=lambda row: amount(row, "bandwidth"))
            what = f"{best['kernel']}, {units.nbytes(amount(best, 'bytes'))} a call, {best['method']}, median"
            yield of, Figure(amount(best, "bandwidth"), "B/s", _how(bench, what))


def _latencies(bench: Bench, rows: Sequence[Row]) -> dict[str, MemoryLevel]:
    """Levels by the machine's names, with the latency that the chase found."""
    found = {}
    for name, level in named(rows, bench.device.backend, bench.last_cache):
        if name not in LEVELS:
            continue
        cycles = cycles_at(rows, level)
        said = f"pointer chase, median of {level.points} working sets up to {level.most:,.0f} B"
        source = _how(bench, said + (f", {cycles:.0f} cycles" if cycles is not None else ""))
        of = LEVELS[name]
        scope = "sm" if of == "shared" else "device"
        found[of] = MemoryLevel(of, scope, None, None, Figure(level.latency, "s", source))  # type: ignore[arg-type]
    return found


def _overheads(bench: Bench, notes: list[str]) -> dict[str, Figure]:
    bench.note("dispatch, launch, floor, gap, round trip, queue depth")
    try:
        costs = host.measure(bench)
    except RidgepoleError as error:
        notes.append(f"what it costs to run at all was not measured: {error}")
        return {}
    version = bench.torch.__version__

    def said(what: str) -> Source:
        return _how(bench, f"{what}, torch {version}, median")

    return {
        "dispatch": Figure(costs.dispatch, "s", said("torch.mul of 1,024 floats queued, less a launch")),
        "launch": Figure(costs.launch, "s", said("replay of a graph of one kernel")),
        "floor": Figure(costs.floor, "s", said("recorded duration of such multiplies in a graph")),
        "graph_gap": Figure(costs.graph_gap, "s", said("recorded idle time between two of them")),
        "round_trip": Figure(costs.round_trip, "s", said("one of them and the wait for it")),
        "queue_depth": Figure(
            float(costs.queue_depth), "1", said("launches queued behind a long kernel until one waits")
        ),
    }

"""A machine measured: the experiments it takes, and the figures they make, each with how and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from types import MappingProxyType

from ridgepole.errors import RidgepoleError
from ridgepole.lab import host, peaks
from ridgepole.lab.bench import Bench
from ridgepole.lab.conditions import conditions
from ridgepole.lab.conduct import conduct_at, find
from ridgepole.lab.experiment import Row
from ridgepole.lab.experiments.latency import cycles_at, named
from ridgepole.machine import catalog, detect
from ridgepole.machine.measured import SUFFIX, Measured, build
from ridgepole.machine.model import Figure, Machine, MemoryLevel, Source
from ridgepole.price.undiscounted import constants

LEVELS = {"L1": "shared", "L2": "l2", "L3": "llc", "HBM": "dram", "DRAM": "dram"}
"""What an experiment calls a level, and what a machine does."""
WITHIN = 0.25
"""Share of the last-level cache that a copy takes which measures it: two buffers, and room for what else runs."""
ITEM = 4


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
    levels = _latencies(bench, _rows(bench, "latency"))
    memory = tuple(
        replace(level, latency=levels[level.name].latency) if level.name in levels else level for level in here.memory
    )
    first = levels.get("shared")
    notes = (f"the first cache answers in {first.latency.value * 1e9:.2f} ns",) if first and first.latency else ()
    return replace(
        here,
        name=here.name + SUFFIX,
        aliases=("cpu-measured",),
        memory=memory,
        notes=(*here.notes, *notes),
        measured_of=here.name,
    )


def _gpu(bench: Bench, full: bool) -> Machine:
    base = detect.local()
    if base.measured_of:
        base = catalog.find(base.measured_of)
    notes: list[str] = []
    levels: dict[str, MemoryLevel] = {}
    moved = _best(_rows(bench, "bandwidth"), bench.last_cache)
    if moved is not None:
        source = _how(bench, f"{moved['kernel']}, {float(moved['bytes'] or 0) / 1e9:.2f} GB a call, median")
        levels["dram"] = MemoryLevel("dram", "device", None, Figure(float(moved["bandwidth"] or 0), "B/s", source))
    rates = {}
    for peak in peaks.measure(bench):
        if peak.rate is None:
            notes.append(f"{peak.unit} {peak.dtype} was not measured: {peak.why}")
            continue
        source = _how(bench, f"product of {peak.side} x {peak.side} by the vendor's library, median")
        rates[peak.unit, peak.dtype] = Figure(peak.rate, "FLOP/s", source)
    overheads = _overheads(bench, notes)
    if full:
        levels |= _latencies(bench, _rows(bench, "latency"))
        levels["l2"] = replace(levels.get("l2", MemoryLevel("l2", "device")), bandwidth=_within_l2(bench))
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


def _rows(bench: Bench, name: str) -> Sequence[Row]:
    bench.note(f"lab {name}")
    return conduct_at(bench, find(name)).rows


def _best(rows: Sequence[Row], last_cache: int) -> Row | None:
    """The row of the highest believed bandwidth whose bytes no cache holds."""
    past = [
        row for row in rows if row.get("bandwidth") and not row.get("note") and float(row["bytes"] or 0) > last_cache
    ]
    return max(past, key=lambda row: float(row["bandwidth"] or 0), default=None)


def _within_l2(bench: Bench) -> Figure:
    """B/s of copying back and forth within the last-level cache, as a graph so that launching is not in it."""
    ready = bench.kernel("copy_wide", int(bench.last_cache * WITHIN) // (2 * ITEM))
    timing = bench.time(ready.run, "graph")
    return Figure(
        ready.bytes / timing.seconds, "B/s", _how(bench, f"copy within {WITHIN:.0%} of it, as a graph, median")
    )


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

"""What does 100 % utilisation mean? nvidia-smi's figure beside the share of time that kernels ran, and of the peak.

A multiply of 1,024 floats is 1,024 FLOPs and 8 KiB, under 3 ns at the roofs of any GPU, and takes about 1 µs of it;
launched one by one every 7 µs it keeps the GPU busy 13 % of the time and reaches a millionth of the peak. (A kernel's
time is the one in a graph, the gap to the next included, so the busy share is rather too high.) nvidia-smi
counts its last sample period as used wherever a kernel was resident, so expect it to say far more than that. On a
machine without nvidia-smi the system's own account of this process stands in: a core is 100 % busy with anything.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ridgepole import units
from ridgepole.lab import timing, utilisation
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.values import number

ELEMENTS = 1024
SECONDS, CPU_SECONDS = 3.0, 2.0
QUICK_SECONDS, QUICK_CPU_SECONDS = 2.0, 0.5
"""Of each load; on a GPU long enough for several of nvidia-smi's samples after it has settled."""
SHARES = (0.05, 0.01)
"""Shares of the time for which the tiny kernels run, host work filling the rest."""
CPU_WORK = 50e-6
"""Seconds of host work between two tiny ops on a CPU."""
GPU_SIDE, CPU_SIDE = 4096, 1024
AT_ONCE = 0.02
"""Seconds of work queued before the clock is read again."""
MOST_AT_ONCE = 500
HARD = 0.5
"""Utilisation from which a device is called busy."""
TINY, PRODUCT = "tiny", "large product"


@dataclass(frozen=True, slots=True)
class Load:
    """What is run again and again. `kernel`: seconds of one on the device, None where that is not known.

    `period`: seconds from one call to the next, filled with host work; 0: as quick as it goes.
    """

    name: str
    act: Callable[[], object]
    kernel: float | None
    flops: float
    dtype: str
    period: float = 0.0


@dataclass(frozen=True, slots=True)
class Ran:
    """`calls` of a load from `start` to `end` by perf_counter, and the CPU seconds this process had."""

    calls: int
    start: float
    end: float
    cpu: float

    @property
    def wall(self) -> float:
        return self.end - self.start


def run(load: Load, seconds: float, synchronize: Callable[[], None]) -> Ran:
    """`load` for `seconds`, waited for at the end. With host work each call comes at its time, unless it is late."""
    calls = 0
    start = time.perf_counter()

    def act() -> None:
        nonlocal calls
        once = load.kernel or 0.0
        many = max(1, min(MOST_AT_ONCE, int(AT_ONCE / once) if once else MOST_AT_ONCE)) if not load.period else 1
        until, due = start + seconds, start
        while time.perf_counter() < until:
            for _ in range(many):
                load.act()
            calls += many
            due = max(due + load.period, time.perf_counter() - load.period)
            while load.period and time.perf_counter() < due:
                pass
        synchronize()

    spent = utilisation.spent(act)
    return Ran(calls, start, start + spent.wall, spent.cpu)


def _rows(bench: Bench) -> Iterator[Row]:
    if bench.device.backend == "cuda":
        yield from _on_gpu(bench)
    else:
        yield from _on_cpu(bench)


def _on_gpu(bench: Bench) -> Iterator[Row]:
    torch = bench.torch
    index = int(str(bench.device.torch).partition(":")[2] or 0)
    loads = list(_gpu_loads(bench))
    with utilisation.Watch(utilisation.identity(torch, index)) as watch:
        if watch.why:
            bench.note(watch.why)
        for load in loads:
            bench.note(load.name)
            ran = run(load, QUICK_SECONDS if bench.quick else SECONDS, bench.device.synchronize)
            samples = watch.between(ran.start, ran.end)
            reported = [s.utilisation for s in samples if s.utilisation is not None]
            clocks = [s.clock for s in samples if s.clock is not None]
            powers = [s.power for s in samples if s.power is not None]
            why = watch.why or ("" if reported else "nvidia-smi gave no utilisation (under MIG it has none)")
            yield _row(
                bench,
                load,
                ran,
                reported=statistics.median(reported) if reported else None,
                clock=statistics.median(clocks) if clocks else None,
                power=statistics.median(powers) if powers else None,
                samples=len(reported),
                note=why,
            )


def _gpu_loads(bench: Bench) -> Iterator[Load]:
    torch, device = bench.torch, bench.device.torch
    x = torch.ones(ELEMENTS, device=device)
    y = torch.empty_like(x)
    act: Callable[[], object] = lambda: torch.mul(x, 2.0, out=y)  # noqa: E731
    timed = timing.graphed(bench.device, lambda i: act(), quick=bench.quick)
    each = timed.seconds if timed is not None else None
    yield Load(f"{TINY}, back to back", act, each, ELEMENTS, "float32")
    for share in SHARES if each else ():
        name = f"{TINY}, {units.percent(share)} of the time"
        yield Load(name, act, each, ELEMENTS, "float32", (each or 0.0) / share)
    a, b = (torch.randn(GPU_SIDE, GPU_SIDE, device=device).bfloat16() for _ in range(2))
    out = torch.empty_like(a)
    product: Callable[[], object] = lambda: torch.mm(a, b, out=out)  # noqa: E731
    long = bench.time(bench.framework(product)).seconds
    yield Load(PRODUCT, product, long, 2.0 * GPU_SIDE**3, "bfloat16")


STANDS_IN = "the system's CPU time of this process stands in for nvidia-smi"


def _on_cpu(bench: Bench) -> Iterator[Row]:
    torch = bench.torch
    x = torch.ones(ELEMENTS)
    y = torch.empty_like(x)
    tiny: Callable[[], object] = lambda: torch.mul(x, 2.0, out=y)  # noqa: E731
    a, b = (torch.randn(CPU_SIDE, CPU_SIDE) for _ in range(2))
    out = torch.empty_like(a)
    once = bench.time(bench.framework(tiny)).seconds
    product: Callable[[], object] = lambda: torch.mm(a, b, out=out)  # noqa: E731
    long = bench.time(bench.framework(product)).seconds
    loads = (
        Load(f"{TINY}, back to back", tiny, once, ELEMENTS, "float32"),
        Load(f"{TINY}, host work between", tiny, once, ELEMENTS, "float32", once + CPU_WORK),
        Load(PRODUCT, product, long, 2.0 * CPU_SIDE**3, "float32"),
    )
    for load in loads:
        bench.note(load.name)
        ran = run(load, QUICK_CPU_SECONDS if bench.quick else CPU_SECONDS, lambda: None)
        yield _row(bench, replace(load, kernel=None), ran, reported=ran.cpu / ran.wall, note=STANDS_IN)


def _row(
    bench: Bench,
    load: Load,
    ran: Ran,
    *,
    reported: float | None,
    clock: float | None = None,
    power: float | None = None,
    samples: int | None = None,
    note: str = "",
) -> Row:
    rate = ran.calls * load.flops / ran.wall
    unit = bench.unit(load.dtype)
    peak = bench.machine.rate(unit, load.dtype) if bench.machine is not None else None
    wrong = gate(rate, bench.most_flops(unit, load.dtype), "rate")
    return {
        "load": load.name,
        "reported": reported,
        "busy": min(1.0, ran.calls * load.kernel / ran.wall) if load.kernel is not None else None,
        "of_peak": rate / peak.value if peak is not None else None,
        "flops": rate,
        "calls": ran.calls,
        "a_call": ran.wall / ran.calls if ran.calls else None,
        "kernel": load.kernel,
        "wall": ran.wall,
        "clock": clock,
        "power": power,
        "samples": samples,
        "note": "; ".join(filter(None, (note, wrong))),
    }


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    said = []
    who = "the system" if bench.on_cpu else "nvidia-smi"
    tiny = [row for row in rows if str(row["load"]).startswith(TINY)]
    for row in tiny:
        said.append(_sentence(row, who))
    large = next((row for row in rows if row["load"] == PRODUCT), None)
    if large is not None:
        said.append(_sentence(large, who))
    if any((number(row, "reported") or 0) >= HARD and (number(row, "of_peak") or 1) < 0.01 for row in tiny):
        said.append("So a high figure says that something ran, not that it did much: look at the share of the roofs.")
    if bench.on_cpu:
        said.append("Here the CPU time of this process, 100 % a core, stands in for what nvidia-smi says of a GPU.")
    return " ".join(filter(None, said)) or "Too little was measured."


def _sentence(row: Row, who: str) -> str:
    reported, busy, of_peak = (number(row, key) for key in ("reported", "busy", "of_peak"))
    told = f"{who} says {units.percent(reported)}" if reported is not None else f"{who} says nothing"
    believed = "not believed" not in str(row["note"])
    parts = [
        f"kernels ran {units.percent(busy)} of the time" if busy is not None else "",
        f"the arithmetic is {share(of_peak)} of the peak" if of_peak is not None and believed else "",
    ]
    rest = " and ".join(filter(None, parts))
    name = str(row["load"]).replace(TINY, "Tiny kernels", 1).replace(PRODUCT, "One large product after another")
    return f"{name}: {told}" + (f", {rest}." if rest else ".")


def share(value: float) -> str:
    """A share, the smallest as one part in so many."""
    return f"one part in {1 / value:,.0f}" if 0 < value < 1e-4 else units.percent(value)


def _picture(rows: Sequence[Row], bench: Bench) -> Picture:
    names = tuple(str(row["load"]) for row in rows)
    series = [
        Series(label, names, tuple(number(row, key) or 0.0 for row in rows), "bars")
        for key, label in (
            ("reported", "CPU time of this process" if bench.on_cpu else "nvidia-smi says"),
            ("busy", "kernels ran"),
            ("of_peak", "of the peak"),
        )
        if any(number(row, key) is not None for row in rows)
    ]
    return Picture("What utilisation means", Axis("", "text"), Axis("share", "share"), tuple(series))


def _refuse(bench: Bench) -> str:
    if bench.device.backend == "cuda" or bench.on_cpu:
        return ""
    return f"nothing here reports the utilisation of {bench.device.name} by itself (nvidia-smi does of an NVIDIA GPU)"


register(
    Experiment(
        name="overhead",
        question="What does 100 % utilisation mean?",
        columns=(
            Column("load", "load", "text"),
            Column("reported", "reported", "share", bar=True),
            Column("busy", "busy", "share"),
            Column("of_peak", "of peak", "share"),
            Column("a_call", "a call", "s"),
            Column("kernel", "a kernel", "s"),
            Column("clock", "SM clock", "Hz"),
            Column("power", "W", "number"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
        refuse=_refuse,
    )
)

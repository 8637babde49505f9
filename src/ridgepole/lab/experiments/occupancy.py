"""What does occupancy buy? Residency predicted from registers, shared memory and block size, and the driver's count.

No floor of its own: `hungry` reads 4 n bytes, and what it reaches of bandwidth is set beside how many warps it had.
Expect the predictions to equal the driver's answers; and bandwidth to need not warps but bytes in flight, bandwidth x
latency of them (Little's law): many warps with a few loads each, or few warps with many (Volkov 2010).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ridgepole import units
from ridgepole.errors import BadInput
from ridgepole.kernels import kernel as library
from ridgepole.kernels.device import Launch, Program, Refused
from ridgepole.kernels.library.hungry import LIVES
from ridgepole.kernels.library.shared_probe import THREADS, WORD
from ridgepole.kernels.prepare import Prepared, prepare
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, Value, register
from ridgepole.lab.values import believed, number
from ridgepole.machine import geometry
from ridgepole.machine.model import Machine

BLOCKS, QUICK_BLOCKS = (64, 128, 256, 512, 1024), (128, 1024)
QUICK_LIVES = (8, 128)
ELEMENTS, QUICK_ELEMENTS = 1 << 25, 1 << 24
"""float32 that `hungry` reads a call; rotated sets of them pass the last-level cache."""
SWEPT, SWEPT_BLOCK = "hungry8", 256
"""The kernel with the least in flight is run at ever less occupancy, by giving its blocks shared memory they ignore."""
SHARED = (0, 8 << 10, 16 << 10, 32 << 10, 48 << 10, 64 << 10, 96 << 10, 128 << 10, 192 << 10)
"""Dynamic shared memory of a block, bytes; the most there is comes last."""
ITEM = 4
LIVE_OF = {f"hungry{live}": live for live in LIVES}

Ask = Callable[[Program, int, int], int]
"""Blocks of (threads, dynamic shared bytes) resident on one SM, by the driver."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """Residency by arithmetic: blocks and warps on an SM, the share of the most warps, and what binds.

    `why`: why not even one block fits, "" where one does.
    """

    blocks: int
    warps: int
    share: float
    limit: str
    why: str = ""


def predict(machine: Machine, block: int, registers: int, shared: int) -> Predicted:
    """As `geometry.occupancy`, with no block resident where not even one fits."""
    try:
        found = geometry.occupancy(machine, block, registers, shared)
    except BadInput as error:
        return Predicted(0, 0, 0.0, "", str(error))
    return Predicted(found.blocks, found.warps, found.occupancy, found.limit)


def _refuse(bench: Bench) -> str:
    if bench.on_cpu:
        return "A core runs one work-group at a time, so there is no occupancy to speak of: this needs a GPU"
    if _ask(bench) is None:
        return f"{bench.device.backend} has no count of resident blocks to hold a prediction to: this needs CUDA"
    if bench.machine is None:
        return f"No table has the registers and shared memory of {bench.device.name}, so nothing can be predicted"
    return ""


def _ask(bench: Bench) -> Ask | None:
    return getattr(bench.device, "occupancy", None)


def _rows(bench: Bench) -> Iterator[Row]:
    ask, machine = _ask(bench), bench.machine
    assert ask is not None and machine is not None  # else it was refused
    n = QUICK_ELEMENTS if bench.quick else ELEMENTS
    for live in QUICK_LIVES if bench.quick else LIVES:
        name = f"hungry{live}"
        bench.note(f"{name}: {n:,} elements")
        ready = prepare(bench.device, name, n, sets=bench.sets(round(library.find(name).bytes(n))))
        for block in QUICK_BLOCKS if bench.quick else BLOCKS:
            yield _timed(bench, machine, ask, ready, block, 0)
        if name == SWEPT:
            for shared in dynamic(bench, ready.program)[1:]:
                yield _timed(bench, machine, ask, ready, SWEPT_BLOCK, shared)
        del ready
    probe = bench.kernel("shared_probe", THREADS, 1)
    for shared in dynamic(bench, probe.program):
        yield _residency(bench, machine, ask, "shared_probe", probe.program, THREADS, shared)


def dynamic(bench: Bench, program: Program) -> list[int]:
    """Bytes of dynamic shared memory from none to the most a block of `program` gets."""
    most = bench.device.limits.shared_per_block - (program.shared or 0)
    return [shared for shared in SHARED if shared < most] + [most // WORD * WORD]


def _residency(
    bench: Bench, machine: Machine, ask: Ask, name: str, program: Program, block: int, shared: int
) -> dict[str, Value]:
    """What is predicted, what the driver says, and whether they are equal."""
    expected = predict(machine, block, program.registers or 0, (program.shared or 0) + shared)
    note = expected.why or (f"spills {program.spilled} B a thread" if program.spilled else "")
    try:
        counted: int | None = ask(program, block, shared)
    except Refused as error:
        counted, note = None, str(error)
    return {
        "kernel": name,
        "registers": program.registers,
        "block": block,
        "shared": (program.shared or 0) + shared,
        "blocks": expected.blocks,
        "driver": counted,
        "equal": None if counted is None else counted == expected.blocks,
        "warps": expected.warps,
        "occupancy": expected.share,
        "limit": expected.limit,
        "in_flight": expected.warps * bench.device.limits.warp * LIVE_OF[name] * ITEM if name in LIVE_OF else None,
        "note": note,
    }


def _timed(bench: Bench, machine: Machine, ask: Ask, ready: Prepared, block: int, shared: int) -> Row:
    name = ready.kernel.name
    row = _residency(bench, machine, ask, name, ready.program, block, shared)
    if row["driver"] == 0 or row["driver"] is None:
        return {**row, "note": row["note"] or "not run: by the driver no block of this size fits an SM"}
    threads = ready.sizes[0] // LIVE_OF[name]
    launch = Launch((-(-threads // block), 1, 1), (block, 1, 1), shared)
    calls = [bench.device.bind(ready.program, launch, held, ready.sizes) for held in ready.sets]
    timing = bench.time(lambda i: calls[i % len(calls)]())
    rate = ready.bytes / timing.seconds
    return {
        **row,
        "seconds": timing.seconds,
        "spread": timing.spread,
        "bandwidth": rate,
        "note": gate(rate, bench.most_bandwidth(), "bandwidth") or row["note"],
    }


def little(machine: Machine) -> float | None:
    """Bytes that must be in flight on each SM to keep memory busy: bandwidth x latency / SMs; None where unknown."""
    level = machine.level("dram")
    if level is None or level.latency is None or level.bandwidth is None:
        return None
    return level.bandwidth.value * level.latency.value / machine.limits.sms.value


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    said = [_agreement(rows), *_registers(bench.machine), *_bought(rows)]
    wanted = little(bench.machine) if bench.machine is not None else None
    if wanted is not None:
        said.append(
            f"What memory wants is bytes in flight, bandwidth x latency = {units.nbytes(wanted)} on each SM "
            "(Little's law), whether of many warps or of few with many loads each."
        )
    return " ".join(said)


def _agreement(rows: Sequence[Row]) -> str:
    asked = [row for row in rows if row.get("equal") is not None]
    if not asked:
        return "The driver answered none of the questions, so the predictions stand alone."
    wrong = [row for row in asked if not row["equal"]]
    if not wrong:
        return f"All {len(asked)} predictions of resident blocks equal the driver's own count."
    first = wrong[0]
    return (
        f"{len(asked) - len(wrong)} of {len(asked)} predictions equal the driver's own count. The first that does not: "
        f"{first['kernel']} in blocks of {first['block']}, {first['blocks']} predicted and {first['driver']} counted."
    )


def _registers(machine: Machine | None) -> Iterator[str]:
    """The division everyone should know: registers of an SM over its threads."""
    if machine is None:
        return
    held, threads = machine.limits.registers_per_sm, machine.limits.threads_per_sm
    if held is None or threads is None:
        return
    heavy = predict(machine, 128, 128, 0)
    yield (
        f"{held.value:,.0f} registers / {threads.value:,.0f} threads = {held.value / threads.value:.0f} a thread fill "
        f"an SM; 128 a thread leave {heavy.warps} warps of {threads.value / machine.limits.warp.value:.0f}."
    )


def _bought(rows: Sequence[Row]) -> Iterator[str]:
    """What occupancy does for bandwidth where all else is equal, and what few warps with much in flight reach."""
    run = [row for row in rows if believed(row, "bandwidth")]
    swept = [row for row in run if row["kernel"] == SWEPT and row["block"] == SWEPT_BLOCK]
    if len(swept) > 1:
        full = max(swept, key=lambda row: number(row, "occupancy") or 0.0)
        least = min(swept, key=lambda row: number(row, "occupancy") or 0.0)
        yield f"The same kernel, {SWEPT}, moves {_reached(full)} and {_reached(least)}."
    most = max(run, key=lambda row: LIVE_OF.get(str(row["kernel"]), 0), default=None)
    if most is not None and most["kernel"] != SWEPT:
        same = [row for row in run if row["kernel"] == most["kernel"]]
        best = max(same, key=lambda row: number(row, "bandwidth") or 0.0)
        yield f"{best['kernel']} ({best['registers']} registers) moves {_reached(best)}."


def _reached(row: Row) -> str:
    rate, share, flight = (number(row, key) or 0.0 for key in ("bandwidth", "occupancy", "in_flight"))
    return f"{units.rate_bytes(rate)} at {units.percent(share)} occupancy with {units.nbytes(flight)} in flight an SM"


def _picture(rows: Sequence[Row], bench: Bench) -> Picture | None:
    run = [row for row in rows if believed(row, "bandwidth")]
    series = []
    for name in dict.fromkeys(str(row["kernel"]) for row in run):
        mine = [row for row in run if row["kernel"] == name]
        x = tuple(number(row, "warps") or 0.0 for row in mine)
        series.append(Series(name, x, tuple(number(row, "bandwidth") or 0.0 for row in mine), "points"))
    if not series:
        return None
    return Picture(
        "What occupancy buys", Axis("resident warps an SM", "count"), Axis("bandwidth", "B/s"), tuple(series)
    )


register(
    Experiment(
        name="occupancy",
        question="How many warps fit an SM, and what does that buy?",
        columns=(
            Column("kernel", "kernel", "text"),
            Column("registers", "regs", "count"),
            Column("block", "block", "count"),
            Column("shared", "shared", "B"),
            Column("blocks", "predicted", "count"),
            Column("driver", "driver", "count"),
            Column("equal", "equal", "text"),
            Column("warps", "warps", "count"),
            Column("limit", "limit", "text"),
            Column("in_flight", "in flight", "B"),
            Column("bandwidth", "bandwidth", "B/s", bar=True),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
        refuse=_refuse,
        notes=(
            "predicted and driver: blocks resident on one SM; in flight: bytes of loads that those warps can have open",
        ),
    )
)

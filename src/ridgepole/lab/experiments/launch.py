"""What does a launch cost, where do its microseconds go, and how far does the CPU run ahead?

The empty kernel moves nothing and computes nothing: all of its time is overhead. On an H200 expect 14-23 µs waited for,
2-8 µs of CPU queued, about 1 µs in a graph, and 1,021 launches queued. Kernels shorter than a launch leave the device
idle: expect max(time on the device, CPU time of a launch) a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from ridgepole import units
from ridgepole.errors import BadInput, Missing
from ridgepole.kernels.device import Run
from ridgepole.lab import launch_costs, running_ahead, timing
from ridgepole.lab.bench import Bench
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.launch_costs import Call
from ridgepole.lab.values import amount

EMPTY, FRAMEWORK, PARTS, AHEAD, QUEUE = "empty", "framework", "where", "ahead", "queue"
"""Kinds of rows."""
ONE_BY_ONE, SIDE, GRAPHED = "empty", "empty, the CPU's side", "empty, gap included"
SIZES = (1e-6, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6)
QUICK_SIZES = (2e-6, 10e-6, 50e-6)
"""Seconds on the device of the kernels queued back to back."""
KEEPS_AHEAD = 1.15
"""Wall clock a call within this of the device's time: the queue did not run dry."""
ISSUES = 0.6
"""Share of the wall clock of a call from which the CPU's side of it is what it waits for."""
OF = "of "
NO_GRAPHS = "not run: no graphs here, so our part and the driver's cannot be told apart either"
UNLAUNCHED = "torch runs this in the calling thread: nothing is launched, and the op itself is in it"
BY_ROUNDS = "no graphs here: the device's time is the rounds alone, the hand-over to it left out"


def _rows(bench: Bench) -> Iterator[Row]:
    empty = bench.kernel("empty")
    known: dict[str, Call] = {}
    bench.note("the empty kernel")
    for method in (timing.waited, timing.queued):
        timed = method(bench.device, empty.run, quick=bench.quick)
        yield _row(EMPTY, ONE_BY_ONE, timed.method, seconds=timed.seconds, spread=timed.spread)
    known["kernel"] = _cpu(bench, empty.run)
    yield _call(EMPTY, SIDE, known["kernel"])
    graphed = timing.graphed(bench.device, empty.run, quick=bench.quick)
    once = bench.device.graph(empty.run, 1)
    if graphed is None or once is None:
        yield _row(EMPTY, GRAPHED, "graph", note=NO_GRAPHS)
    else:
        yield _row(EMPTY, GRAPHED, "graph", seconds=graphed.seconds, spread=graphed.spread)
        replay = once
        known["replay"] = _cpu(bench, lambda i: replay())
        yield _call(EMPTY, "graph of one, the CPU's side", known["replay"])
    yield from _framework(bench, known)
    known["python"] = _cpu(bench, launch_costs.calls_nothing())
    for part in launch_costs.parts(known):
        note = part.how if part.seconds is not None else f"{part.how}: no more than the noise"
        yield _row(PARTS, f"{OF}{part.call}: {part.name}", "less", seconds=part.seconds, note=note)
    yield from _ahead(bench)


def _framework(bench: Bench, known: dict[str, Call]) -> Iterator[Row]:
    """The CPU's side of three torch calls; the one that launches a kernel and nothing else is kept in `known`."""
    try:
        torch = bench.torch
    except Missing as error:
        yield _row(FRAMEWORK, "torch", "queued", note=f"not run: {error}")
        return
    bench.note("torch's dispatch")
    x = torch.ones(1, device=bench.device.torch)
    y = torch.empty_like(x)
    note = UNLAUNCHED if bench.on_cpu else ""
    yield _call(FRAMEWORK, "torch.add, 1 element", _cpu(bench, lambda i: torch.add(x, x)), note)
    mul = _cpu(bench, lambda i: torch.mul(x, 2.0, out=y))
    if not bench.on_cpu:
        known["torch"] = mul
    yield _call(FRAMEWORK, "torch.mul out=, 1 element", mul, note)
    yield _call(FRAMEWORK, "a view", _cpu(bench, lambda i: x.view(1, 1)), "no kernel on any device")


def _ahead(bench: Bench) -> Iterator[Row]:
    bench.note("kernels of a chosen length")
    try:
        spinning = running_ahead.calibrate(bench)
    except BadInput as error:
        yield _row(AHEAD, "spin", "queued", note=f"not run: {error}")
        return
    for size in QUICK_SIZES if bench.quick else SIZES:
        bench.note(f"spin for {units.seconds(size)}")
        found = running_ahead.queued(bench, spinning, size)
        yield _row(
            AHEAD,
            f"spin, {found.rounds:,} rounds",
            "queued",
            seconds=found.wall,
            spread=found.spread,
            device_seconds=found.device,
            idle=found.idle,
            note="" if spinning.by_graph else BY_ROUNDS,
        )
    bench.note("the depth of the queue")
    deep = running_ahead.depth(bench, spinning)
    said = (
        f"none of them waited: the queue holds more than {deep.launches:,}"
        if deep.blocked is None
        else f"the next one waited {units.seconds(deep.blocked)} for room"
    )
    yield _row(QUEUE, "launches behind a long one", "queued", count=deep.launches, note=said)


def _cpu(bench: Bench, run: Run) -> Call:
    return launch_costs.of_cpu(bench.device, run, quick=bench.quick)


def _call(part: str, what: str, call: Call, note: str = "") -> Row:
    return _row(part, what, "CPU", seconds=call.seconds, spread=call.spread, note=note)


def _row(
    part: str,
    what: str,
    method: str,
    *,
    seconds: float | None = None,
    spread: float | None = None,
    device_seconds: float | None = None,
    idle: float | None = None,
    count: int | None = None,
    note: str = "",
) -> Row:
    return {
        "part": part,
        "what": what,
        "method": method,
        "seconds": seconds,
        "spread": spread,
        "device_seconds": device_seconds,
        "idle": idle,
        "count": count,
        "note": note,
    }


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    return " ".join(filter(None, (_cost(rows, bench), _places(rows), _starves(rows), _depth(rows)))) or (
        "Too little was measured to say what a launch costs."
    )


def _cost(rows: Sequence[Row], bench: Bench) -> str:
    at = {str(row["method"]): row["seconds"] for row in rows if row["what"] in (ONE_BY_ONE, SIDE, GRAPHED)}
    ways = (
        ("CPU", "{} of CPU time"),
        ("queued", "{} a kernel queued back to back"),
        ("graph", "{} a kernel in a graph"),
        ("waited", "{} when each is waited for"),
    )
    said = [form.format(units.seconds(v)) for key, form in ways if isinstance(v := at.get(key), float)]
    if not said:
        return ""
    known = bench.machine.overheads if bench.machine is not None else None
    expected = ""
    if known is not None and known.launch.value > 0:
        expected = (
            f"; expected {units.seconds(known.launch.value)} a launch and {units.seconds(known.round_trip.value)} "
            f"waited for ({known.launch.source.kind})"
        )
    return f"A launch of nothing costs {', '.join(said)}{expected}."


def _places(rows: Sequence[Row]) -> str:
    parts = [row for row in rows if row["part"] == PARTS and isinstance(row["seconds"], float)]
    said = []
    for call in (launch_costs.TORCH, launch_costs.KERNEL):
        mine = [row for row in parts if str(row["what"]).startswith(f"{OF}{call}: ")]
        if len(mine) > 1:
            listed = ", ".join(
                f"{units.seconds(float(row['seconds'] or 0))} {str(row['what']).removeprefix(f'{OF}{call}: ')}"
                for row in mine
            )
            said.append(f"Of {'the empty kernel' if call == launch_costs.KERNEL else call}'s CPU time: {listed}.")
    return " ".join(said)


def crossing(rows: Sequence[Row]) -> tuple[Row | None, Row | None]:
    """The longest kernel up to which the device ran dry between calls, and the next longer one, at which it did not.

    None: it never did, or always. One late call at a longer kernel is no sign of a dry queue.
    """
    measured = sorted(
        (row for row in rows if row["part"] == AHEAD and amount(row, "device_seconds") and amount(row, "seconds")),
        key=lambda row: amount(row, "device_seconds"),
    )
    dry = list(takewhile(lambda r: amount(r, "seconds") > KEEPS_AHEAD * amount(r, "device_seconds"), measured))
    return (dry[-1] if dry else None), (measured[len(dry)] if len(dry) < len(measured) else None)


def _side(rows: Sequence[Row]) -> float:
    """Seconds of CPU time of a launch; 0 where it was not measured."""
    return next((amount(row, "seconds") for row in rows if row["what"] == SIDE), 0.0)


def _starves(rows: Sequence[Row]) -> str:
    dry, full = crossing(rows)
    if dry is None:
        kept = units.seconds(amount(full, "device_seconds")) if full is not None else ""
        return f"The CPU kept ahead of every kernel, down to {kept} on the device." if kept else ""
    wall, device, launch = amount(dry, "seconds"), amount(dry, "device_seconds"), _side(rows)
    ahead = f"Kernels of {units.seconds(amount(full, 'device_seconds'))} keep the device busy. " if full else ""
    if launch >= ISSUES * wall:
        why = f"since the CPU takes {units.seconds(launch)} to issue one: the queue runs dry"
    else:
        why = f"though the CPU issues one every {units.seconds(launch)}: the rest is handing it over to the device"
    return (
        f"{ahead}One of {units.seconds(device)} comes only every {units.seconds(wall)}, so the device idles "
        f"{units.percent(amount(dry, 'idle'))} of the time, {why}."
    )


def _depth(rows: Sequence[Row]) -> str:
    found = next((row for row in rows if row["part"] == QUEUE and isinstance(row["count"], int)), None)
    if found is None:
        return ""
    count = int(found["count"] or 0)
    if "waited" in str(found["note"]) and "none" not in str(found["note"]):
        return f"The CPU may run {count:,} launches ahead; then a launch waits for the device."
    return f"The queue took {count:,} launches and none waited: the CPU may run as far ahead as it likes."


def _picture(rows: Sequence[Row], bench: Bench) -> Picture | None:
    measured = [row for row in rows if row["part"] == AHEAD and isinstance(row["device_seconds"], float)]
    if not measured:
        return None
    device = tuple(float(row["device_seconds"] or 0) for row in measured)
    wall = tuple(float(row["seconds"] or 0) for row in measured)
    series = [Series("wall clock a call, queued", device, wall, "points"), Series("the kernel alone", device, device)]
    if launch := _side(rows):
        series.append(Series("max(kernel, CPU time of a launch)", device, tuple(max(launch, d) for d in device)))
    return Picture(
        "The queue runs dry below the time of a launch",
        Axis("kernel on the device", "s", 10),
        Axis("a call", "s", 10),
        tuple(series),
    )


register(
    Experiment(
        name="launch",
        question="What does a launch cost, and where does its time go?",
        columns=(
            Column("what", "what", "text"),
            Column("method", "timed", "text"),
            Column("seconds", "time", "s", bar=True),
            Column("spread", "spread", "share", extra=True),
            Column("device_seconds", "device", "s"),
            Column("idle", "idle", "share"),
            Column("count", "count", "count"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
    )
)

"""What does one token cost? A Llama-3-8B-shaped decode step, eager and as one CUDA graph, batch 1 to 64.

A step reads every weight but the embedding's once (7.50e9 bfloat16, 15.0 GB) and the cache (16.8 MB a sequence): 3.1 ms
at an H200's 4.8 TB/s. Eager, some thousand kernels at 7 µs of CPU each take longer; expect 13 ms eager and 6 ms as a
graph there, and nearly as many times the tokens as the batch has sequences. On a CPU a model that reads 71 MB
stands in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ridgepole import dtypes, units
from ridgepole.errors import BadInput
from ridgepole.kernels.device import Run
from ridgepole.lab import timing
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.decoder import LLAMA_3_8B, SMALL, Decoder, Shape
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, Value, register
from ridgepole.lab.values import amount

BATCHES = (1, 2, 4, 8, 16, 32, 64)
CPU_BATCHES = (1, 2, 4, 8)
QUICK_BATCHES = (1, 8, 64)
QUICK_CPU_BATCHES = (1, 8)
STEPS = 10
"""Steps queued with one wait in a sample."""
ROOM = 0.9
"""Share of the free memory that may be used."""
MAY_USE = 0.5
"""Share of all memory that may be used where nothing says how much is free."""
SAME = 0.02
"""Relative distance within which the graph's logits are the eager step's, in bfloat16."""
NO_LAUNCHES = "not run: a CPU runs torch's ops itself, so there is no launch for a graph to save"
NO_GRAPHS = "not run: no graphs here"
EAGER, GRAPH, COUNTED = "eager", "graph", "counted"


def _rows(bench: Bench) -> Iterator[Row]:
    torch = bench.torch
    name = "float32" if bench.on_cpu else "bfloat16"
    batches = _batches(bench)
    whole = SMALL if bench.on_cpu else LLAMA_3_8B
    shape = fitting(whole, _free(bench), batches[-1], dtypes.itemsize(name))
    if shape is None:
        raise BadInput(f"{bench.device.name} has no room for one layer: {units.nbytes(_free(bench))} are free")
    bench.note(f"{units.nbytes(shape.parameters * dtypes.itemsize(name))} of weights")
    model = Decoder(torch, shape, str(bench.device.torch), getattr(torch, name))
    for batch in batches:
        bench.note(f"batch {batch}")
        yield from _batch(bench, model, whole, batch)
    if bench.device.backend == "cuda":
        for batch in dict.fromkeys((batches[0], batches[-1])):
            yield _counted(bench, model, batch)


def _batches(bench: Bench) -> tuple[int, ...]:
    if bench.on_cpu:
        return QUICK_CPU_BATCHES if bench.quick else CPU_BATCHES
    return QUICK_BATCHES if bench.quick else BATCHES


def _free(bench: Bench) -> float:
    """Bytes of the device's memory that may be used."""
    if bench.device.backend == "cuda":
        return ROOM * float(bench.torch.cuda.mem_get_info(bench.device.torch)[0])
    return MAY_USE * bench.device.limits.memory


def fitting(whole: Shape, free: float, batch: int, item: int) -> Shape | None:
    """`whole` with as many of its layers as fit in `free` bytes, with the cache of `batch`; None if not even one."""
    once = replace(whole, layers=0)
    a_layer = item * (whole.layer_parameters + replace(whole, layers=1).cached(batch))
    layers = min(whole.layers, int((free - item * once.parameters) // a_layer))
    return replace(whole, layers=layers) if layers >= 1 else None


def _batch(bench: Bench, model: Decoder, whole: Shape, batch: int) -> Iterator[Row]:
    state = model.start(batch)
    latest: list[Any] = []

    def act() -> None:
        latest[:] = [model.step(state)]

    run = bench.framework(act)
    run(0)
    expected = latest[0].float().clone()
    note = "" if bool(expected.isfinite().all()) else "the logits are not finite: not believed"
    yield _row(
        bench,
        model,
        whole,
        batch,
        EAGER,
        timing.queued(bench.device, run, quick=bench.quick, count=_steps(bench)),
        note,
    )
    replay = bench.device.graph(run, 1)
    if replay is None:
        if batch == _batches(bench)[0]:
            yield {"batch": batch, "way": GRAPH, "note": NO_LAUNCHES if bench.on_cpu else NO_GRAPHS}
        return
    again = _replayed(replay)
    again(0)
    bench.device.synchronize()
    far = float((latest[0].float() - expected).norm() / expected.norm())
    note = "" if far <= SAME else f"the graph's logits are off by {far:.2g} of the norm: not believed"
    yield _row(
        bench,
        model,
        whole,
        batch,
        GRAPH,
        timing.queued(bench.device, again, quick=bench.quick, count=_steps(bench)),
        note,
    )


def _replayed(replay: Callable[[], None]) -> Run:
    return lambda i: replay()


def _steps(bench: Bench) -> int:
    return STEPS if not bench.quick else STEPS // 3


def _row(bench: Bench, model: Decoder, whole: Shape, batch: int, way: str, timed: timing.Timing, note: str) -> Row:
    item = model.dtype.itemsize
    moved = model.shape.moved(batch, item)
    rate = moved / timed.seconds
    known = None if bench.machine is None else bench.machine.bandwidth
    if model.shape.layers < whole.layers:
        part = f"{model.shape.layers} of {whole.layers} layers fit in memory"
        note = f"{note}; {part}" if note else part
    wrong = gate(rate, bench.most_bandwidth(), "bandwidth")
    return {
        "batch": batch,
        "way": way,
        "layers": model.shape.layers,
        "seconds": timed.seconds,
        "spread": timed.spread,
        "tokens": batch / timed.seconds,
        "bytes": moved,
        "bandwidth": rate,
        "of_bandwidth": rate / known if known else None,
        "travel": moved / known if known else None,
        "believed": not wrong and "not believed" not in note,
        "note": "; ".join(filter(None, (note, wrong))),
    }


def _counted(bench: Bench, model: Decoder, batch: int) -> Row:
    """The kernels of one step."""
    bench.note("counting kernels")
    state = model.start(batch)
    row: dict[str, Value] = {"batch": batch, "way": COUNTED, "layers": model.shape.layers}
    count = getattr(bench.device, "kernels", None)
    kernels = count(lambda i: model.step(state)) if count is not None else None
    if kernels is None:
        return {**row, "note": "this torch does not show its graphs, so kernels were not counted"}
    return {**row, "launches": kernels, "note": "kernels of one step: the nodes of its graph"}


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    timed = [row for row in rows if amount(row, "seconds") and row.get("believed", True)]
    if not timed:
        return "No step was measured that can be believed."
    said = [_first(timed), _priced(rows, timed, bench), _batched(timed)]
    return " ".join(filter(None, said))


def _at(rows: Sequence[Row], batch: Value, way: str) -> Row | None:
    return next((row for row in rows if row["batch"] == batch and row["way"] == way), None)


def _first(timed: Sequence[Row]) -> str:
    batch = timed[0]["batch"]
    eager, graph = _at(timed, batch, EAGER), _at(timed, batch, GRAPH)
    ways = [
        f"{units.seconds(amount(row, 'seconds'))} {way}" for row, way in ((eager, EAGER), (graph, "as a graph")) if row
    ]
    gain = amount(eager, "seconds") / amount(graph, "seconds") if eager and graph else 0.0
    return f"A step of batch {batch} takes {' and '.join(ways)}" + (
        f": the graph is {gain:.2f}x as fast." if gain else "."
    )


def _priced(rows: Sequence[Row], timed: Sequence[Row], bench: Bench) -> str:
    """The arithmetic of a price: the bytes at the known bandwidth, and the launches at their known cost."""
    first = timed[0]
    travel = amount(first, "travel")
    if not travel or bench.machine is None:
        return ""
    best = min((row for row in timed if row["batch"] == first["batch"]), key=lambda row: amount(row, "seconds"))
    said = (
        f"Its {units.nbytes(amount(first, 'bytes'))} need {units.seconds(travel)} at "
        f"{units.rate_bytes(bench.machine.bandwidth)}, {units.percent(travel / amount(best, 'seconds'))} of the "
        f"{best['way']} step"
    )
    counted = next((row for row in rows if row["way"] == COUNTED and amount(row, "launches")), None)
    costs = bench.machine.overheads
    each = costs.dispatch.value + costs.launch.value
    if counted is None or not each:
        return f"{said}."
    issuing = amount(counted, "launches") * each
    larger = "overhead" if issuing > travel else "memory"
    return (
        f"{said}; its {amount(counted, 'launches'):,.0f} kernels need {units.seconds(issuing)} of CPU to issue at "
        f"{units.seconds(each)} each ({costs.launch.source.kind}), which a graph does not pay: the eager step is "
        f"priced {larger}-bound, at {units.seconds(max(issuing, travel))} overlapped and "
        f"{units.seconds(issuing + travel)} one after the other."
    )


def _batched(timed: Sequence[Row]) -> str:
    """What a batch buys, in the quickest way that both ends were run in."""
    for way in (GRAPH, EAGER):
        mine = [row for row in timed if row["way"] == way]
        if len(mine) > 1:
            few, many = mine[0], mine[-1]
            times = amount(many, "batch") / amount(few, "batch")
            gain = amount(many, "tokens") / amount(few, "tokens")
            why = ", since the weights are read once for all of them" if gain > 1 else ""
            return (
                f"Batch {many['batch']} {'as a graph' if way == GRAPH else way} makes {amount(many, 'tokens'):,.0f} "
                f"tokens/s against {amount(few, 'tokens'):,.0f} at batch {few['batch']}: {gain:.1f}x for {times:.0f}x "
                f"the sequences{why}."
            )
    return ""


def _picture(rows: Sequence[Row], bench: Bench) -> Picture | None:
    series = []
    for way in (EAGER, GRAPH):
        mine = [row for row in rows if row["way"] == way and amount(row, "seconds")]
        if mine:
            x = tuple(amount(row, "batch") for row in mine)
            series.append(Series(way, x, tuple(amount(row, "seconds") for row in mine), "points"))
    travel = [row for row in rows if row["way"] == EAGER and amount(row, "travel")]
    if travel:
        x = tuple(amount(row, "batch") for row in travel)
        series.append(Series("bytes / bandwidth", x, tuple(amount(row, "travel") for row in travel)))
    if not series:
        return None
    return Picture("A decode step", Axis("batch", "count", 2), Axis("a step", "s"), tuple(series))


register(
    Experiment(
        name="decode",
        question="What does a token of a language model cost, eager and as a graph?",
        columns=(
            Column("batch", "batch", "count"),
            Column("way", "way", "text"),
            Column("seconds", "a step", "s", bar=True),
            Column("spread", "spread", "share", extra=True),
            Column("tokens", "tokens/s", "count"),
            Column("bytes", "moves", "B"),
            Column("bandwidth", "bandwidth", "B/s"),
            Column("of_bandwidth", "of known", "share"),
            Column("travel", "travel", "s"),
            Column("launches", "kernels", "count"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
    )
)

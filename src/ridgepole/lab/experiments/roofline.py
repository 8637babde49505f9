"""Where do vector addition, matrix-vector and matrix products lie under this machine's roof?

Floors, fp32: an addition does n FLOP on 12 n bytes, 1/12 FLOP/B; a matrix-vector product 2 n² on about 4 n², 0.5; a
product 2 n³ on 12 n², n/6 (bf16: n/3); 1,024 products of 64 have the intensity of one, 10.7. Attainable is
min(peak, intensity x bandwidth) (Roofline, Williams et al. 2009), here with the roofs that were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from ridgepole import units
from ridgepole.errors import Missing
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.peaks import products_in
from ridgepole.lab.roof import Roof, bucket
from ridgepole.lab.timing import Timing
from ridgepole.lab.values import amount

SIDES = (64, 128, 256, 512, 1024, 2048, 4096)
VECTORS = (4096, 8192)
BATCH, BATCHED = 1024, 64
ITEMSIZE = {"float32": 4, "bfloat16": 2}
SHORT_NAMES = {"bfloat16": "bf16"}
PATIENCE, QUICK_PATIENCE = 4.0, 0.7
"""Seconds that one row may take, by what the rows before it reached."""
CALLS = 5
"""Calls that the timing of a long row takes at least, warming included."""
SHORT = 200e-6
"""Below this a launch shows in a queued time, and a graph is timed as well."""
LITTLE, TRIAL = 8, 512
"""The product that tells what a call costs, and the one that tells how long larger ones take."""
ADD_PAST_CACHE, LEAST_ADD, MOST_ADD = 2, 1 << 22, 1 << 28
"""An addition's arrays hold so many last-level caches each; and the elements they have at least and at most."""


@dataclass(frozen=True, slots=True)
class Work:
    """One operation: its name, FLOPs and least bytes, and what makes inputs for it and gives the call on them."""

    name: str
    dtype: str
    flops: float
    bytes: float
    make: Callable[[Any, str], Callable[[], object]]

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes


def add(n: int) -> Work:
    def make(torch: Any, device: str) -> Callable[[], object]:
        a, b = (torch.randn(n, device=device) for _ in range(2))
        out = torch.empty_like(a)
        return lambda: torch.add(a, b, out=out)

    return Work("vector add", "float32", float(n), 12.0 * n, make)


def matrix_vector(n: int, dtype: str) -> Work:
    def make(torch: Any, device: str) -> Callable[[], object]:
        kind = getattr(torch, dtype)
        a, x = torch.randn(n, n, device=device).to(kind), torch.randn(n, device=device).to(kind)
        out = torch.empty_like(x)
        return lambda: torch.mv(a, x, out=out)

    return Work(f"matrix-vector {n}", dtype, 2.0 * n * n, float(ITEMSIZE[dtype] * (n * n + 2 * n)), make)


def product(n: int, dtype: str) -> Work:
    def make(torch: Any, device: str) -> Callable[[], object]:
        kind = getattr(torch, dtype)
        a, b = (torch.randn(n, n, device=device).to(kind) for _ in range(2))
        out = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=out)

    return Work(f"matmul {n}", dtype, 2.0 * n**3, 3.0 * ITEMSIZE[dtype] * n * n, make)


def batch(many: int, n: int, dtype: str) -> Work:
    def make(torch: Any, device: str) -> Callable[[], object]:
        kind = getattr(torch, dtype)
        a, b = (torch.randn(many, n, n, device=device).to(kind) for _ in range(2))
        out = torch.empty_like(a)
        return lambda: torch.bmm(a, b, out=out)

    one = product(n, dtype)
    return Work(f"{many:,} matmuls of {n}", dtype, many * one.flops, many * one.bytes, make)


def plan(dtypes: Sequence[str], elements: int) -> list[Work]:
    """The rows in order: by dtype, from memory to arithmetic."""
    found = [add(elements)]
    for dtype in dtypes:
        found += [matrix_vector(n, dtype) for n in VECTORS]
        found += [product(n, dtype) for n in SIDES]
        found.append(batch(BATCH, BATCHED, dtype))
    return found


def _rows(bench: Bench) -> Iterator[Row]:
    dtypes = ("float32",) if bench.on_cpu else ("float32", "bfloat16")
    work = plan(dtypes, _elements(bench))
    overhead, graphed = _overhead(bench)
    timed = {(work[0].name, work[0].dtype): _timed(bench, work[0])}
    bandwidth = work[0].bytes / timed[work[0].name, work[0].dtype].seconds
    peaks: dict[str, float] = {}
    quickest: dict[str, float] = {}
    for dtype in dtypes:
        trial = product(TRIAL, dtype)
        timed[trial.name, dtype] = _timed(bench, trial)
        # The quicker calls: what disturbs short ones must not keep long ones from being run.
        quickest[dtype] = trial.flops / timed[trial.name, dtype].low
        peaks[dtype] = trial.flops / timed[trial.name, dtype].seconds
        # The roof has to be known before what lies under it: the largest products that can be had, first.
        large = [each for n in sorted(SIDES, reverse=True) if _fits(bench, each := product(n, dtype), quickest[dtype])]
        for each in large[:2]:
            timed[each.name, dtype] = _timed(bench, each)
            peaks[dtype] = max(peaks[dtype], each.flops / timed[each.name, dtype].seconds)
    for each in work:
        if not _fits(bench, each, max(quickest[each.dtype], peaks[each.dtype])):
            limit = units.seconds(QUICK_PATIENCE if bench.quick else PATIENCE)
            yield {**_known(each), "note": f"not run: {CALLS} calls would take more than {limit} here"}
            continue
        timing = timed.get((each.name, each.dtype)) or _timed(bench, each)
        # No share is above 100 %: what is reached can be had.
        peaks[each.dtype] = max(peaks[each.dtype], each.flops / timing.seconds)
        roof = Roof(peaks[each.dtype], max(bandwidth, each.bytes / timing.seconds), overhead)
        in_graph = _graph(bench, each) if graphed and timing.seconds < SHORT else None
        yield _row(bench, each, timing, in_graph, roof)


def _fits(bench: Bench, work: Work, peak: float) -> bool:
    return CALLS * work.flops / peak < (QUICK_PATIENCE if bench.quick else PATIENCE)


def _elements(bench: Bench) -> int:
    wanted = MOST_ADD if not bench.on_cpu and not bench.quick else ADD_PAST_CACHE * bench.last_cache // 4
    room = bench.device.limits.memory // 8 // 4
    return 1 << (max(LEAST_ADD, min(wanted, MOST_ADD, room)).bit_length() - 1)


def _runs(bench: Bench, work: Work) -> Callable[[int], object]:
    """Calls on rotated inputs, so that no call finds its own in a cache."""
    torch, device = bench.torch, bench.device.torch or "cpu"
    many = bench.sets(int(work.bytes))
    torch.manual_seed(many)
    acts = [work.make(torch, device) for _ in range(many)]

    def run(i: int) -> object:
        with torch.no_grad():
            return acts[i % many]()

    return run


def _timed(bench: Bench, work: Work) -> Timing:
    bench.note(f"{work.name} {work.dtype}")
    with _plainly(bench):
        return bench.time(_runs(bench, work))


def _graph(bench: Bench, work: Work) -> float | None:
    with _plainly(bench):
        timing = bench.time(_runs(bench, work), "graph")
    return timing.seconds if timing.method == "graph" else None


def _plainly(bench: Bench) -> Any:
    """fp32 products on the vector units, and not in TF32. Elsewhere than on CUDA the setting means other things."""
    return products_in(bench.torch, "highest") if bench.device.backend == "cuda" else nullcontext()


def _overhead(bench: Bench) -> tuple[float, bool]:
    """Seconds that a product takes whose work is next to nothing, and whether the device has graphs."""
    return _timed(bench, product(LITTLE, "float32")).seconds, bench.device.backend == "cuda"


def _known(work: Work) -> Row:
    return {
        "name": _called(work.name, work.dtype),
        "work": work.name,
        "dtype": work.dtype,
        "flops": work.flops,
        "bytes": work.bytes,
        "intensity": work.intensity,
        "seconds": None,
        "rate": None,
        "bandwidth": None,
        "attainable": None,
        "share": None,
        "bucket": None,
    }


def _row(bench: Bench, work: Work, timing: Timing, graph: float | None, roof: Roof) -> Row:
    rate = work.flops / timing.seconds
    attainable = roof.attainable(work.intensity)
    unit = bench.unit(work.dtype)
    sheet, memory = bench.most_flops(unit, work.dtype), bench.most_bandwidth()
    # Half a cache of data may still be there at the next call, so only what is past it is held to the memory's limit.
    past = work.bytes * bench.sets(int(work.bytes)) >= 2 * bench.last_cache
    why = gate(rate, sheet, "rate") or (gate(work.bytes / timing.seconds, memory, "bandwidth") if past else "")
    return {
        **_known(work),
        "seconds": timing.seconds,
        "graph": graph,
        "spread": timing.spread,
        "rate": rate,
        "bandwidth": work.bytes / timing.seconds,
        "attainable": attainable,
        "share": rate / attainable,
        "bucket": bucket(work.flops, work.bytes, roof),
        "overhead": roof.overhead,
        "note": why,
    }


def measured(rows: Sequence[Row]) -> tuple[dict[str, float], float]:
    """The measured roofs: the best believable FLOP/s of each dtype, and the best bytes a second of what is past caches
    by its own size, the addition (0 where it was not measured)."""
    sound = [row for row in rows if row["rate"] is not None and not row["note"]]
    peaks: dict[str, float] = {}
    for row in sound:
        if str(row["work"]).startswith("matmul "):
            peaks[str(row["dtype"])] = max(peaks.get(str(row["dtype"]), 0.0), amount(row, "rate"))
    bandwidth = max((amount(r, "bandwidth") for r in sound if r["work"] == "vector add"), default=0.0)
    return peaks, bandwidth


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    peaks, bandwidth = measured(rows)
    parts = []
    for dtype, peak in peaks.items():
        ridge = f", so the ridge is at {peak / bandwidth:.0f} FLOP/B" if bandwidth else ""
        parts.append(f"The measured roof: {units.rate_flops(peak)} in {dtype}{_of_sheet(bench, dtype, peak)}{ridge}.")
    if bandwidth:
        parts.append(f"Memory gives {units.rate_bytes(bandwidth)}{_of_memory(bench, bandwidth)}.")
    for name in ("memory", "compute", "overhead"):
        mine = [row for row in rows if row.get("bucket") == name and not row["note"]]
        if mine:
            parts.append(f"{_TELLS[name]}: {', '.join(_named(row) for row in mine)}.")
    far = [_named(r) for r in rows if r.get("bucket") in ("memory", "compute") and amount(r, "share") < FAR]
    if far:
        parts.append(
            f"Below {units.percent(FAR)} of what the roof allows, so something else holds them back, too little "
            f"work for all of the device or another program: {', '.join(far)}."
        )
    parts += _alone(rows)
    missing = [_named(row) for row in rows if row["rate"] is None]
    if missing:
        parts.append(f"Not run: {', '.join(missing)}.")
    doubted = [_named(row) for row in rows if row["rate"] is not None and row["note"]]
    if doubted:
        parts.append(f"Not believed: {', '.join(doubted)}.")
    return " ".join(parts)


FAR = 0.5
"""Share of the attainable below which the roof does not explain a time."""
_TELLS = {
    "memory": "Memory is the limit, so fewer bytes would help, of",
    "compute": "Arithmetic is the limit of",
    "overhead": "Neither is, the call itself takes longer than the work, of",
}


def _called(name: str, dtype: str) -> str:
    return name if dtype == "float32" else f"{name} {SHORT_NAMES.get(dtype, dtype)}"


def _named(row: Row) -> str:
    return str(row["name"])


def _of_sheet(bench: Bench, dtype: str, peak: float) -> str:
    sheet = bench.machine.rate(bench.unit(dtype), dtype) if bench.machine is not None and not bench.on_cpu else None
    return f", {units.percent(peak / sheet.value)} of the datasheet's" if sheet is not None else ""


def _of_memory(bench: Bench, bandwidth: float) -> str:
    if bench.machine is None or bench.on_cpu:
        return ""
    return f", {units.percent(bandwidth / bench.machine.bandwidth)} of the datasheet's"


def _alone(rows: Sequence[Row]) -> list[str]:
    """One product of 64 beside 1,024 of them in one call."""
    said = []
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        at = {row["work"]: row for row in rows if row["dtype"] == dtype and row["rate"] is not None}
        one, many = at.get(f"matmul {BATCHED}"), at.get(f"{BATCH:,} matmuls of {BATCHED}")
        if one is None or many is None:
            continue
        at_roof = amount(one, "flops") / amount(one, "attainable")
        said.append(
            f"One matmul of {BATCHED} in {dtype} takes {units.seconds(amount(one, 'seconds'))}: its work takes "
            f"{units.seconds(at_roof)} at the roof, and a call on 8 x 8 elements "
            f"{units.seconds(amount(one, 'overhead'))}, so it reaches {units.percent(amount(one, 'share'))} of what "
            f"its intensity allows. {BATCH:,} of them in one call reach {units.percent(amount(many, 'share'))}, "
            f"{amount(many, 'rate') / amount(one, 'rate'):,.1f}x the FLOP/s at the same intensity."
        )
    return said


def _picture(rows: Sequence[Row], bench: Bench) -> Picture | None:
    known = [row for row in rows if row["rate"] is not None]
    if not known:
        return None
    peaks, bandwidth = measured(rows)
    x = [amount(row, "intensity") for row in known]
    span = (min(x) / 2, max(x) * 2)
    series = [
        Series(f"measured roof, {dtype}", *_roof(Roof(peak, bandwidth, 0.0), span)) for dtype, peak in peaks.items()
    ] if bandwidth else []  # fmt: skip
    if bench.machine is not None and not bench.on_cpu:
        for dtype in peaks:
            sheet = bench.machine.rate(bench.unit(dtype), dtype)
            if sheet is not None:
                roof = Roof(sheet.value, bench.machine.bandwidth, 0.0)
                series.append(Series(f"datasheet, {dtype}", *_roof(roof, span)))
    for dtype in dict.fromkeys(str(row["dtype"]) for row in known):
        mine = [row for row in known if row["dtype"] == dtype]
        points, rates = tuple(amount(row, "intensity") for row in mine), tuple(amount(row, "rate") for row in mine)
        series.append(Series(dtype, points, rates, "points", tuple(str(row["work"]) for row in mine)))
    return Picture("Roofline", Axis("FLOP/B", "FLOP/B", 10), Axis("FLOP/s", "FLOP/s", 10), tuple(series))


def _roof(roof: Roof, span: tuple[float, float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    x = tuple(sorted({span[0], min(max(roof.ridge, span[0]), span[1]), span[1]}))
    return x, tuple(roof.attainable(intensity) for intensity in x)


def _refuse(bench: Bench) -> str:
    try:
        assert bench.torch is not None
    except Missing as error:
        return str(error)
    return ""


register(
    Experiment(
        name="roofline",
        question="Which of memory, arithmetic and overhead limits an operation here?",
        columns=(
            Column("name", "work", "text"),
            Column("flops", "FLOP", "number", extra=True),
            Column("bytes", "bytes", "B", extra=True),
            Column("intensity", "FLOP/B", "FLOP/B"),
            Column("seconds", "queued", "s"),
            Column("graph", "in a graph", "s", extra=True),
            Column("spread", "spread", "share", extra=True),
            Column("rate", "rate", "FLOP/s"),
            Column("bandwidth", "bandwidth", "B/s", extra=True),
            Column("attainable", "attainable", "FLOP/s"),
            Column("share", "share", "share"),
            Column("bucket", "limit", "text"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
        refuse=_refuse,
        notes=(
            "FLOPs and bytes are the least there can be: each input read once, each output written once",
            "attainable: min(best product's FLOP/s, intensity x the addition's bandwidth); share: of it, as queued",
        ),
    )
)

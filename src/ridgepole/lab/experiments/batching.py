"""What does a batch buy? One weight matrix times 1 to 1,024 rows, and small products one by one against one call.

A batch of b rows costs 2 b k n FLOPs and moves the weights once, k n + b (k + n) elements: about b FLOP/B in bfloat16,
b / 2 in float32. Expect the time to stay flat, and each row to get cheaper, until the intensity reaches the ridge
point (206 FLOP/B on an H200); past it time grows with the batch. Small products are overhead: expect one call for all
of them to cost little more than one of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Any

from ridgepole import dtypes, units
from ridgepole.kernels.device import Run
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.timing import Timing
from ridgepole.lab.values import amount

GPU_WEIGHT = (4096, 14336)
"""k and n: an MLP's weight of Llama 3 8B."""
CPU_WEIGHT = (1024, 3584)
"""The same proportions at a 16th: 14.7 MB of float32, rotated past the caches."""
LARGEST = 1024
SMALL_SIDE = 64
SMALL_COUNT, QUICK_SMALL_COUNT = 1024, 256
FLAT = 2.0
"""The batch has stopped being free once it takes this many times what one row does."""
GAINS = 1.1
"""Below this, two timings of the small products are the same."""
WEIGHT, ONE_BY_ONE, ONE_CALL = "weight", "one by one", "one bmm"


def batches(quick: bool) -> list[int]:
    """Powers of two up to LARGEST, every other one where quick."""
    found = [1]
    while found[-1] < LARGEST:
        found.append(found[-1] * (4 if quick else 2))
    return found


def cost(batch: int, k: int, n: int, item: int) -> tuple[float, float]:
    """FLOPs, and bytes that must move at least, of `batch` rows of k times a k x n matrix."""
    return 2.0 * batch * k * n, float(item * (k * n + batch * (k + n)))


def _rows(bench: Bench) -> Iterator[Row]:
    torch = bench.torch
    dtype = "float32" if bench.on_cpu else "bfloat16"
    kind, device = getattr(torch, dtype), bench.device.torch
    k, n = CPU_WEIGHT if bench.on_cpu else GPU_WEIGHT
    item = dtypes.itemsize(dtype)
    weights = [torch.randn(n, k, device=device).to(kind) for _ in range(bench.sets(item * k * n))]
    for batch in batches(bench.quick):
        bench.note(f"{batch} rows")
        x = torch.randn(batch, k, device=device).to(kind)
        run = _products(bench, torch, x, weights)
        flops, moved = cost(batch, k, n, item)
        yield _row(bench, WEIGHT, batch, batch, flops, moved, dtype, bench.time(run))
    del weights
    yield from _small(bench, torch, kind, dtype)


def _products(bench: Bench, torch: Any, x: Any, weights: Sequence[Any]) -> Run:
    out = torch.empty(x.shape[0], weights[0].shape[0], device=x.device, dtype=x.dtype)
    transposed = [weight.t() for weight in weights]

    def run(i: int) -> None:
        torch.mm(x, transposed[i % len(transposed)], out=out)

    return run


def _small(bench: Bench, torch: Any, kind: Any, dtype: str) -> Iterator[Row]:
    """Products of SMALL_SIDE, each by its own call and all by one."""
    many = QUICK_SMALL_COUNT if bench.quick else SMALL_COUNT
    bench.note(f"{many} products of {SMALL_SIDE}")
    a, b = (torch.randn(many, SMALL_SIDE, SMALL_SIDE, device=bench.device.torch).to(kind) for _ in range(2))
    out = torch.empty_like(a)
    triples = [(a[i], b[i], out[i]) for i in range(many)]

    def each(i: int) -> None:
        left, right, into = triples[i % many]
        torch.mm(left, right, out=into)

    together: Callable[[], object] = lambda: torch.bmm(a, b, out=out)  # noqa: E731
    flops = 2.0 * SMALL_SIDE**3
    moved = 3.0 * dtypes.itemsize(dtype) * SMALL_SIDE**2
    yield _row(bench, ONE_BY_ONE, 1, 1, flops, moved, dtype, bench.time(each))
    yield _row(bench, ONE_CALL, many, many, many * flops, many * moved, dtype, bench.time(bench.framework(together)))


def _row(bench: Bench, what: str, batch: int, done: int, flops: float, moved: float, dtype: str, timing: Timing) -> Row:
    unit = bench.unit(dtype)
    in_cache = what != WEIGHT and moved < 2 * bench.last_cache
    wrong = [
        gate(flops / timing.seconds, bench.most_flops(unit, dtype), "rate"),
        "" if in_cache else gate(moved / timing.seconds, bench.most_bandwidth(), "bandwidth"),
    ]
    peak = bench.machine.rate(unit, dtype) if bench.machine is not None else None
    return {
        "what": what,
        "batch": batch,
        "seconds": timing.seconds,
        "spread": timing.spread,
        "rate_rows": done / timing.seconds,
        "flops": flops / timing.seconds,
        "of_peak": flops / timing.seconds / peak.value if peak is not None else None,
        "bandwidth": moved / timing.seconds,
        "intensity": flops / moved,
        "note": "; ".join(filter(None, wrong)),
    }


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    sound = [row for row in rows if not row["note"]]
    said = [_free(sound), _ridge(sound, bench), _together(sound)]
    return " ".join(filter(None, said)) or "Too little was measured that can be believed."


def _of_weight(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["what"] == WEIGHT and amount(row, "seconds")]


def _free(rows: Sequence[Row]) -> str:
    """Up to where more rows cost nothing, and what the largest batch makes of each."""
    found = _of_weight(rows)
    if len(found) < 2 or found[0]["batch"] != 1:
        return ""
    one, most = found[0], found[-1]
    alone = amount(one, "seconds")
    free = list(takewhile(lambda row: amount(row, "seconds") < FLAT * alone, found))[-1]
    after = next((row for row in found if amount(row, "batch") > amount(free, "batch")), None)
    gain = amount(most, "rate_rows") / amount(one, "rate_rows")
    said = f"One row takes {units.seconds(alone)}"
    if free is not one:
        said += (
            f" and {amount(free, 'batch'):,.0f} rows {units.seconds(amount(free, 'seconds'))}: up to there a batch "
            f"costs less than {FLAT:.0f}x one row, since the weights are read once for all"
        )
    elif after is not None:
        said += f", and {amount(after, 'batch'):,.0f} rows already {amount(after, 'seconds') / alone:.1f}x as long"
    each = f"{gain:.1f}x cheaper" if gain >= 1 else f"{1 / gain:.1f}x dearer"
    return f"{said}. At {amount(most, 'batch'):,.0f} rows each is {each} than alone."


def _ridge(rows: Sequence[Row], bench: Bench) -> str:
    """Where memory stops being the limit: by the ridge point, and as measured."""
    found = _of_weight(rows)
    if len(found) < 2 or bench.machine is None:
        return ""
    dtype = "float32" if bench.on_cpu else "bfloat16"
    ridge = bench.machine.ridge(dtype, bench.unit(dtype))
    if ridge is None:
        return ""
    above = next((row for row in found if amount(row, "intensity") >= ridge), None)
    where = f"reached at {above['batch']} rows" if above is not None else "not reached"
    best = max(found, key=lambda row: amount(row, "flops"))
    share = f", {units.percent(amount(best, 'of_peak'))} of the known peak" if amount(best, "of_peak") else ""
    return (
        f"The ridge point is {ridge:.0f} FLOP/B, {where}: past it arithmetic is the limit; "
        f"the best rate is {units.rate_flops(amount(best, 'flops'))} at {best['batch']} rows{share}."
    )


def _together(rows: Sequence[Row]) -> str:
    alone = next((row for row in rows if row["what"] == ONE_BY_ONE), None)
    together = next((row for row in rows if row["what"] == ONE_CALL), None)
    if alone is None or together is None or not amount(alone, "seconds") or not amount(together, "seconds"):
        return ""
    each = amount(together, "seconds") / amount(together, "batch")
    gain = amount(alone, "seconds") / each
    verdict = f"{gain:.1f}x as fast, for the same arithmetic" if gain > GAINS else "no gain here"
    return (
        f"A product of {SMALL_SIDE} takes {units.seconds(amount(alone, 'seconds'))} by its own call and "
        f"{units.seconds(each)} as one of {amount(together, 'batch'):,.0f} in one bmm: {verdict}."
    )


def _picture(rows: Sequence[Row], bench: Bench) -> Picture | None:
    found = _of_weight(rows)
    if not found:
        return None
    x = tuple(amount(row, "batch") for row in found)
    one = amount(found[0], "seconds")
    gain = tuple(amount(row, "rate_rows") / amount(found[0], "rate_rows") for row in found)
    time = tuple(amount(row, "seconds") / one for row in found)
    return Picture(
        "What a batch buys",
        Axis("batch", "count", 2),
        Axis("against one row", "ratio", 2),
        (Series("time", x, time), Series("rows a second", x, gain)),
        tuple(_marks(found, bench)),
    )


def _marks(found: Sequence[Row], bench: Bench) -> Iterator[tuple[str, float]]:
    """The batch at which the intensity is the ridge point's, between the two measured that lie around it."""
    dtype = "float32" if bench.on_cpu else "bfloat16"
    ridge = bench.machine.ridge(dtype, bench.unit(dtype)) if bench.machine is not None else None
    if ridge is None:
        return
    for below, above in pairwise(found):
        low, high = amount(below, "intensity"), amount(above, "intensity")
        if low < ridge <= high:
            share = (ridge - low) / (high - low)
            yield "ridge point", amount(below, "batch") * (amount(above, "batch") / amount(below, "batch")) ** share


register(
    Experiment(
        name="batching",
        question="What does a batch buy?",
        columns=(
            Column("what", "what", "text"),
            Column("batch", "batch", "count"),
            Column("seconds", "time", "s", bar=True),
            Column("spread", "spread", "share", extra=True),
            Column("rate_rows", "rows/s", "count"),
            Column("flops", "rate", "FLOP/s"),
            Column("of_peak", "of peak", "share"),
            Column("bandwidth", "bandwidth", "B/s"),
            Column("intensity", "FLOP/B", "FLOP/B"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
    )
)

"""What does attention cost without the n x n matrix? Tiles with an online softmax, three kernels, and torch's own.

FLOPs 4 heads n² d in each. Bytes at least 16 heads n d (q, k, v, out); three kernels also write the scores, read them,
write their softmax and read it: 16 heads n² more. Expect three kernels to fall behind as n passes d, by n/d at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from ridgepole import units
from ridgepole.errors import Missing
from ridgepole.kernels.kernel import find
from ridgepole.kernels.library.attention import DEPTH, SAMPLE
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, Value, register
from ridgepole.lab.patience import patience
from ridgepole.lab.peaks import products_in
from ridgepole.lab.rungs import first_line
from ridgepole.lab.timing import Timing
from ridgepole.lab.values import believed, number

SIZES = (256, 512, 1024, 2048, 4096)
QUICK_SIZES, QUICK_CPU_SIZES = (512, 2048), (256, 512)
HEADS, CPU_HEADS = 32, 1
"""As in a layer of an 8-billion-parameter model; one on a CPU, whose cores a single head keeps busy."""
ITEM = 4
PASSES = 4
"""Times that three kernels move the n x n matrix: scores out, in, their softmax out, in."""
TILED, NAIVE, VENDOR, VENDOR_HALF = "tiled", "three kernels", "torch sdpa", "torch sdpa, bfloat16"


def flops(heads: int, n: int) -> float:
    """Two products of n x n by d deep: 2 x 2 heads n² d."""
    return find("attention").flops(heads, n)


def least_bytes(heads: int, n: int, itemsize: int = ITEM) -> float:
    """q, k and v read and the output written, once each."""
    return find("attention").bytes(heads, n) * itemsize / ITEM


def matrix_bytes(heads: int, n: int) -> float:
    """What the scores and their softmax move when they are kept in memory."""
    return float(PASSES * ITEM * heads * n * n)


def _rows(bench: Bench) -> Iterator[Row]:
    heads = CPU_HEADS if bench.on_cpu else HEADS
    sizes = SIZES if not bench.quick else QUICK_CPU_SIZES if bench.on_cpu else QUICK_SIZES
    limit = patience(bench)
    for n in sizes:
        work = flops(heads, n)
        bench.note(f"{TILED}, n = {n}")
        why = limit.why_not(TILED, work)
        if why:
            yield _not_run(heads, n, TILED, why, limit.predicted(TILED, work))
        else:
            ready = bench.kernel("attention", heads, n)
            timing = bench.time(ready.run)
            limit.learn(TILED, work, timing.low)
            yield _row(bench, heads, n, TILED, "float32", timing, ready.error.relative)
            del ready
        for name in _ways(bench):
            bench.note(f"{name}, n = {n}")
            why = limit.why_not(name, work)
            if why:
                yield _not_run(heads, n, name, why, limit.predicted(name, work))
                continue
            try:
                row = _framework(bench, heads, n, name)
            except RuntimeError as error:  # torch's own: no room for the matrix
                yield _not_run(heads, n, name, f"not run: {first_line(error)}")
                continue
            limit.learn(name, work, number(row, "seconds") or 0.0)
            yield row


def _ways(bench: Bench) -> tuple[str, ...]:
    try:
        assert bench.torch is not None
    except Missing as error:
        bench.note(str(error))
        return ()
    return (NAIVE, VENDOR) if bench.on_cpu else (NAIVE, VENDOR, VENDOR_HALF)


def _framework(bench: Bench, heads: int, n: int, name: str) -> Row:
    torch = bench.torch
    dtype = "bfloat16" if name == VENDOR_HALF else "float32"
    generator = torch.Generator(device=bench.device.torch).manual_seed(n)
    q, k, v = (
        torch.randn(1, heads, n, DEPTH, device=bench.device.torch, generator=generator).to(getattr(torch, dtype))
        for _ in range(3)
    )
    act = _three_kernels(torch, q, k, v) if name == NAIVE else _fused(torch, q, k, v)
    # Elsewhere than on CUDA the setting means other things.
    with products_in(torch, "highest") if bench.device.backend == "cuda" else nullcontext():
        timing = bench.time(bench.framework(act))
        with torch.no_grad():
            error = _error(torch, q, k, v, act())
    return _row(bench, heads, n, name, dtype, timing, error)


def _three_kernels(torch: Any, q: Any, k: Any, v: Any) -> Callable[[], Any]:
    """Scores, softmax, output: the scale is folded into q beforehand, as a model would into its weights."""
    scaled, keys, values = (q[0] * DEPTH**-0.5), k[0].transpose(1, 2), v[0]
    return lambda: torch.bmm(torch.softmax(torch.bmm(scaled, keys), -1), values)


def _fused(torch: Any, q: Any, k: Any, v: Any) -> Callable[[], Any]:
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)


def _error(torch: Any, q: Any, k: Any, v: Any, out: Any) -> float:
    """‖out - ref‖ / ‖ref‖ in float64, of a sample of queries of each head."""
    n = q.shape[-2]
    rows = torch.linspace(0, n - 1, min(n, SAMPLE)).long()
    q, k, v = (part.reshape(-1, n, DEPTH) for part in (q, k, v))
    q, k, v, out = (part.cpu().double() for part in (q[:, rows], k, v, out.reshape(-1, n, DEPTH)[:, rows]))
    reference = torch.softmax(q @ k.transpose(1, 2) * DEPTH**-0.5, -1) @ v
    return float((out - reference).norm() / reference.norm())


def _not_run(heads: int, n: int, name: str, why: str, would_take: float | None = None) -> Row:
    return {"n": n, "heads": heads, "way": name, "seconds": None, "would_take": would_take, "note": why}


def _row(bench: Bench, heads: int, n: int, name: str, dtype: str, timing: Timing, error: float) -> Row:
    rate = flops(heads, n) / timing.seconds
    least = least_bytes(heads, n, 2 if dtype == "bfloat16" else ITEM)
    row: dict[str, Value] = {
        "n": n,
        "heads": heads,
        "way": name,
        "seconds": timing.seconds,
        "spread": timing.spread,
        "rate": rate,
        "bytes": least + (matrix_bytes(heads, n) if name == NAIVE else 0.0),
        "intensity": flops(heads, n) / (least + (matrix_bytes(heads, n) if name == NAIVE else 0.0)),
        "error": error,
        "note": gate(rate, _most(bench, name, dtype), "rate"),
    }
    return row


def _most(bench: Bench, name: str, dtype: str) -> float | None:
    """FLOP/s it cannot exceed. The library's fused kernel may split float32 over the tensor units, as tf32 parts."""
    if name == VENDOR and not bench.on_cpu:
        return bench.most_flops("tensor", "tf32")
    return bench.most_flops(bench.unit(dtype), dtype)


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    run = [row for row in rows if believed(row, "seconds")]
    tiled = {number(row, "n"): row for row in run if row["way"] == TILED}
    if not tiled:
        return "The tiled kernel gave no figure to be believed: the notes say why."
    naive = {number(row, "n"): row for row in run if row["way"] == NAIVE}
    both = [n for n in tiled if n in naive]
    n = max(both or tiled, key=lambda size: size or 0.0)
    at, heads = tiled[n], int(number(tiled[n], "heads") or 1)
    size = int(n or 0)
    spared, least = matrix_bytes(heads, size), least_bytes(heads, size)
    said = [
        f"At n = {size:,} ({heads} head{'s' if heads > 1 else ''} of {DEPTH}) tiles never write the n x n scores: that "
        f"spares {PASSES} x {ITEM} x {heads} x n² = {units.nbytes(spared)} and leaves {units.nbytes(least)}, "
        f"{(spared + least) / least:,.0f}x fewer bytes than three kernels move.",
        f"The tiled kernel takes {units.seconds(number(at, 'seconds') or 0.0)} "
        f"({units.rate_flops(number(at, 'rate') or 0.0)})" + _beside(run, n, number(at, "seconds") or 0.0) + ".",
    ]
    slower = n in naive and (number(at, "seconds") or 0.0) > (number(naive[n], "seconds") or 0.0)
    if slower:
        said.append(
            "Sparing bytes did not make it faster here: its products are one thread a query, where the library's are "
            "tiles in registers, so arithmetic is what it lacks."
        )
    memory = bench.machine.bandwidth if bench.machine is not None else None
    if spared / PASSES <= bench.last_cache:
        said.append(
            f"Here the matrix, {units.nbytes(spared / PASSES)}, fits the last cache, so memory need not see it."
        )
    elif memory is not None:
        said.append(f"The spared bytes alone are {units.seconds(spared / memory)} at {units.rate_bytes(memory)}.")
    return " ".join(said)


def _beside(run: Sequence[Row], n: float | None, seconds: float) -> str:
    parts = []
    for way in (NAIVE, VENDOR, VENDOR_HALF):
        row = next((row for row in run if row["way"] == way and number(row, "n") == n), None)
        if row is not None:
            took = number(row, "seconds") or 0.0
            parts.append(f"{way} {units.seconds(took)} ({took / seconds:.2f}x its time)")
    return "; " + ", ".join(parts) if parts else ""


def _picture(rows: Sequence[Row], bench: Bench) -> Picture | None:
    series = []
    for way in dict.fromkeys(str(row["way"]) for row in rows):
        mine = [row for row in rows if row["way"] == way and believed(row, "seconds")]
        if mine:
            x = tuple(number(row, "n") or 0.0 for row in mine)
            y = tuple(number(row, "seconds") or 0.0 for row in mine)
            series.append(Series(way, x, y, "line" if len(mine) > 1 else "points"))
    return Picture("Attention forward", Axis("n", "count", 2), Axis("time", "s", 10), tuple(series)) if series else None


register(
    Experiment(
        name="attention",
        question="What does attention cost without the n x n matrix?",
        columns=(
            Column("n", "n", "count"),
            Column("heads", "heads", "count"),
            Column("way", "way", "text"),
            Column("seconds", "time", "s", bar=True),
            Column("rate", "rate", "FLOP/s"),
            Column("bytes", "moves", "B"),
            Column("intensity", "FLOP/B", "FLOP/B"),
            Column("error", "error", "number"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
        notes=(
            "moves: the least it can move of device memory; error: of the norm, against float64 on the inputs it was "
            "given",
        ),
    )
)

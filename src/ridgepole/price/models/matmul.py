"""Matrix products: the best of the candidate tiles, in waves; split along k where tiles are few; or its bytes."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from ridgepole.price.kernel import Ask, Estimate, model, overlapped
from ridgepole.work.op import Gemm

ALIGNED = 16
"""Bytes: what a row pitch must divide by for the 16-byte loads and TMA of the fast kernels."""


class Tile(NamedTuple):
    m: int
    n: int


TENSOR_TILES = tuple(
    Tile(m, n)
    for m, n in (
        (128, 256), (256, 128), (128, 192), (192, 128), (128, 128), (192, 96), (96, 192), (256, 64), (64, 256),
        (128, 96), (96, 128), (128, 64), (64, 128), (64, 96), (96, 64), (64, 64), (128, 32), (32, 128),
        (64, 32), (32, 64), (16, 128), (128, 16), (16, 64), (64, 16),
    )
)  # fmt: skip
"""Output tiles that the vendors' libraries choose among on matrix units."""

VECTOR_TILES = tuple(
    Tile(m, n)
    for m, n in ((128, 128), (128, 64), (64, 128), (64, 64), (32, 128), (128, 32), (32, 64), (64, 32), (32, 32))
)
"""The same for fp32 and fp64 on the vector units."""

SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 32)
PARTIAL_BYTES = 2
"""Device-memory bytes of a part of an element: 4 written and 4 read, three quarters of them in the L2."""


class Plan(NamedTuple):
    """One way to run a product. `compute`: seconds of its waves; `extra`: of adding the parts of a split k.

    `waves`: begun; `paid`: as many waves' time as it takes, the last one's idle time being partly shared out.
    """

    tile: Tile
    split: int
    tiles: int
    waves: int
    paid: float
    compute: float
    memory: float
    extra: float

    @property
    def seconds(self) -> float:
        return overlapped(self.compute, self.memory) + self.extra


@model("matmul")
def matmul(ask: Ask) -> Estimate:
    detail = ask.cost.detail
    if not isinstance(detail, Gemm) or not ask.peak:
        return plain(ask)
    return product(ask, detail)


def plain(ask: Ask) -> Estimate:
    """Without its dimensions: FLOPs at the achieved share of peak, or bytes."""
    math = ask.cost.flops / (ask.peak * achieved(ask)) if ask.peak else 0.0
    travel = ask.travel(ask.cost.bytes, ask.constant("gemm.dram"))
    start = ask.floor + ask.constant("gemm.start")
    if math > travel:
        return Estimate(start + math, unit(ask), "arithmetic at the achieved share of peak")
    return Estimate(start + travel, "dram", "bytes at achieved bandwidth")


def product(ask: Ask, g: Gemm) -> Estimate:
    """Seconds of the fastest plan for one (batched) product."""
    if min(g.m, g.n) == 1:
        return _vector(ask, g)
    slow = alignment(ask, g.aligned)
    plan = best(ask, g, slow)
    start = ask.floor + ask.constant("gemm.start")
    seconds = start + plan.seconds
    grid = plan.tiles * plan.split
    shape = f"{plan.tiles:,} tiles of {plan.tile.m}x{plan.tile.n}"
    shape += f", k split {plan.split} ways" if plan.split > 1 else ""
    if plan.memory >= plan.compute:
        return Estimate(seconds, "dram", f"{shape}: bytes at achieved bandwidth", grid, 128, 1)
    if slow < 1:
        why = f"rows are {g.aligned}-byte aligned, the fast kernels want {ALIGNED}: {slow:.0%} of their rate"
        return Estimate(seconds, "alignment", why, grid, 128, 1)
    full = grid / (plan.waves * ask.sms)
    useful = g.m * g.n * g.batch / (plan.tiles * plan.tile.m * plan.tile.n)
    if grid / (plan.paid * ask.sms) * useful < 0.75:
        why = f"{shape}: {plan.waves} waves of {ask.sms}, {full:.0%} full, {useful:.0%} of each tile useful"
        return Estimate(seconds, "waves", why, grid, 128, 1)
    return Estimate(seconds, unit(ask), f"{shape}, {plan.waves} waves {full:.0%} full", grid, 128, 1)


def best(ask: Ask, g: Gemm, slow: float = 1.0) -> Plan:
    """The fastest plan over the candidate tiles and splits."""
    use = _use(ask, g, slow)
    tiles = TENSOR_TILES if on_tensor(ask) else VECTOR_TILES
    return min((_plan(g, use, tile, split) for tile in tiles for split in _splits(g, use, tile)), key=_order)


def _order(plan: Plan) -> tuple[float, int, int]:
    return (plan.seconds, plan.split, -plan.tile.m * plan.tile.n)


class Use(NamedTuple):
    """What every plan of one product shares: the machine's figures (FLOP/s of an SM, seconds) and the bytes' time."""

    sms: int
    rate: float
    feed: float
    pace: float
    wave: float
    quantum: float
    reach: float
    ramp: float
    travel: float
    join: float
    part: float


def _use(ask: Ask, g: Gemm, slow: float) -> Use:
    assert ask.peak
    return Use(
        sms=ask.sms,
        rate=ask.peak / ask.sms * achieved(ask) * slow,
        feed=ask.constant("gemm.feed" if on_tensor(ask) else "gemm.feed_vector"),
        pace=ask.constant("gemm.pace"),
        wave=ask.constant("gemm.wave"),
        quantum=ask.constant("gemm.quantum"),
        reach=ask.sms * ask.constant("gemm.reach"),
        ramp=ask.ramp(ask.cost.bytes, ask.constant("gemm.ramp")),
        travel=ask.cost.bytes / (ask.machine.bandwidth * ask.constant("gemm.dram")),
        join=ask.constant("gemm.split"),
        part=PARTIAL_BYTES * g.m * g.n * g.batch / ask.bandwidth,
    )


def _splits(g: Gemm, use: Use, tile: Tile) -> tuple[int, ...]:
    """Splits of k that make sense: only while the tiles leave SMs idle, and each part keeps some depth."""
    tiles = ceil(g.m / tile.m) * ceil(g.n / tile.n) * g.batch
    if tiles >= use.sms:
        return (1,)
    return tuple(s for s in SPLITS if s == 1 or (tiles * s <= 2 * use.sms and g.k >= 256 * s))


def _plan(g: Gemm, use: Use, tile: Tile, split: int) -> Plan:
    tiles = ceil(g.m / tile.m) * ceil(g.n / tile.n) * g.batch
    blocks = tiles * split
    waves = ceil(blocks / use.sms)
    depth = ceil(g.k / split)
    # Persistent kernels share out some of the last wave's idle time; none of the first.
    exact = max(1.0, blocks / use.sms)
    counted = exact + (waves - exact) * use.quantum
    # A block walks k step by step, and no step is shorter than its loads' way to the matrix unit.
    step = max(2.0 * tile.m * tile.n / (use.rate * feed(use.feed, tile)), use.pace)
    compute = counted * (depth * step + use.wave)
    memory = use.ramp + use.travel / min(1.0, blocks / use.reach)
    extra = use.join + use.part * split if split > 1 else 0.0
    return Plan(tile, split, tiles, waves, counted, compute, memory, extra)


def feed(weight: float, tile: Tile) -> float:
    """How well a tile feeds the unit, against the largest: operands grow with its sides, work with its area."""
    largest = 1 + weight * (1 / 128 + 1 / 256)
    return largest / (1 + weight * (1 / tile.m + 1 / tile.n))


def achieved(ask: Ask) -> float:
    """Share of peak that a large product reaches: power, not the pipeline, sets it on big GPUs."""
    if not on_tensor(ask):
        return ask.share("achieved.vector")
    return ask.share("achieved.fp8" if ask.dtype.startswith("float8") else "achieved.tensor")


def on_tensor(ask: Ask) -> bool:
    return ask.machine.peak("tensor", ask.dtype) is not None


def unit(ask: Ask) -> str:
    return "tensor" if on_tensor(ask) else "vector"


def alignment(ask: Ask, aligned: int) -> float:
    """Share of the fast kernels' rate that is left when rows are only `aligned` bytes aligned."""
    if aligned >= ALIGNED or not on_tensor(ask):
        return 1.0
    return ask.constant(f"align.{max(2, aligned)}")


def _vector(ask: Ask, g: Gemm) -> Estimate:
    """Matrix-vector: every byte of the matrix once, no reuse to speak of."""
    travel = ask.travel(ask.cost.bytes, ask.constant("gemv.fraction"))
    start = ask.floor + ask.constant("gemv.start")
    math = ask.cost.flops / (ask.peak * achieved(ask)) if ask.peak else 0.0
    rows = max(g.m, g.n) * g.batch
    if math > travel:
        return Estimate(start + math, unit(ask), "arithmetic at the achieved share of peak", rows, 128)
    return Estimate(start + travel, "dram", "matrix-vector: each weight is used once", rows, 128)

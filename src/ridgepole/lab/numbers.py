"""The numbers every reader should know, each computed by the functions that price and explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ridgepole import units
from ridgepole.attribute.three_times import times
from ridgepole.machine import catalog, geometry
from ridgepole.machine.model import Machine
from ridgepole.work.cost import assess
from ridgepole.work.op import Call, Cost, Tensor

LAPTOP_BANDWIDTH = 93e9
LAPTOP_RATE = 2878e9
"""An Apple M4 as measured: bytes and fp32 FLOP a second."""

LLAMA_LAYERS, KERNELS_A_LAYER, LLAMA_BYTES = 32, 15, 16e9
"""Llama 3 8B in bf16, a textbook layer of about fifteen kernels."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number: its name, its values by name, and how it reads."""

    name: str
    values: Mapping[str, float]
    text: str


def table() -> tuple[Row, ...]:
    """All rows, for the H100 SXM of the catalog unless a row says otherwise."""
    h100 = catalog.find("h100")
    return (
        _ridge(h100),
        _double(h100),
        _grid(h100),
        _occupancy(h100),
        *_ladder(h100),
        _coalescing(),
        _intensity(),
        _tiles(),
        *_waves(h100),
        _pipeline(h100),
        _decode(h100),
        _vocabulary(),
        _laptop(),
    )


def _cost(call: Call) -> Cost:
    cost = assess(call)
    assert isinstance(cost, Cost)
    return cost


def _ridge(h100: Machine) -> Row:
    tensor = h100.ridge("bfloat16") or 0.0
    vector = h100.ridge("float32", "vector") or 0.0
    return Row(
        "ridge point",
        {"bf16_tensor": tensor, "fp32_vector": vector},
        f"bf16 tensor {tensor:.0f} FLOP/B, fp32 vector {vector:.0f} FLOP/B",
    )


def _double(h100: Machine) -> Row:
    x = Tensor((4096, 4096), "bfloat16")
    cost = _cost(Call("aten::mul", (x, 2)))
    found = times(cost.flops, cost.bytes, cost.dtype, cost.unit, h100)
    memory, compute = found.t_memory or 0.0, found.t_compute or 1.0
    values = {
        "elements": x.numel,
        "read": cost.read,
        "written": cost.written,
        "bytes": cost.bytes,
        "memory_seconds": memory,
        "compute_seconds": compute,
        "ratio": memory / compute,
        "two_kernels": 2 * memory,
        "fused": memory,
    }
    return Row(
        "y = x*2, 4096x4096 bf16",
        values,
        f"{x.numel:,} elements; {units.nbytes(cost.read)} in + {units.nbytes(cost.written)} out = "
        f"{units.nbytes(cost.bytes)} → {units.seconds(memory)} memory; {units.flops(cost.flops)} → "
        f"{units.seconds(compute)}; {memory / compute:.0f}x; x*2+1 {units.seconds(2 * memory)} as two kernels, "
        f"{units.seconds(memory)} fused",
    )


def _grid(h100: Machine) -> Row:
    g = geometry.launch_geometry(4096 * 4096, 256, h100)
    values = {
        "blocks": g.grid,
        "blocks_per_sm": g.blocks_per_sm,
        "wave": g.wave,
        "waves": g.waves,
        "launches": -(-g.grid // g.wave),
        "full": g.full_waves,
    }
    return Row(
        "its grid at 256 threads",
        values,
        f"{g.grid:,} blocks; {g.blocks_per_sm} an SM; {g.wave:,} a wave; {g.waves:.2f} → {-(-g.grid // g.wave)} waves, "
        f"{g.full_waves} full",
    )


def _occupancy(h100: Machine) -> Row:
    limits = h100.limits
    assert limits.registers_per_sm is not None and limits.threads_per_sm is not None
    each = limits.registers_per_sm.value / limits.threads_per_sm.value
    heavy = geometry.occupancy(h100, 128, registers=128)
    return Row(
        "occupancy",
        {"registers_a_thread": each, "warps_at_128": heavy.warps},
        f"{limits.registers_per_sm.value:,.0f} registers / {limits.threads_per_sm.value:,.0f} threads = "
        f"{each:.0f} a thread; 128 a thread → {heavy.warps} warps",
    )


def _ladder(h100: Machine) -> tuple[Row, ...]:
    rows, capacity, cycles = [], {}, {}
    clock = h100.limits.clock.value if h100.limits.clock is not None else 1.0
    for level in h100.memory:
        capacity[level.name] = level.capacity.value if level.capacity is not None else 0.0
        cycles[level.name] = level.latency.value * clock if level.latency is not None else 0.0
        rows.append(f"{level.name} {units.nbytes(capacity[level.name])} {cycles[level.name]:.0f} cycles")
    on_chip = capacity["registers"] * h100.limits.sms.value
    # Decimal gigabytes over binary kilobytes, as the ladder is usually told: 80 GB / 256 KB.
    steps = capacity["dram"] / (capacity["registers"] / 1024 * 1000)
    ratio = capacity["dram"] / on_chip
    values = {
        "registers_bytes": capacity["registers"],
        "shared_bytes": capacity["shared"],
        "l2_bytes": capacity["l2"],
        "dram_bytes": capacity["dram"],
        "registers_cycles": cycles["registers"],
        "shared_cycles": cycles["shared"],
        "l2_cycles": cycles["l2"],
        "dram_cycles": cycles["dram"],
        "dram_over_registers": steps,
        "all_registers_bytes": on_chip,
        "dram_over_all_registers": ratio,
    }
    return (
        Row("capacity ladder", values, "; ".join(rows)),
        Row(
            "capacity ratios",
            values,
            f"device memory / one SM's registers = {steps:,.0f}; all registers {units.nbytes(on_chip)}, "
            f"{ratio:,.0f}x less",
        ),
    )


def _coalescing() -> Row:
    near, far = geometry.strided_sectors(1, 4), geometry.strided_sectors(32, 4)
    values = {
        "sectors": near,
        "bytes": near * geometry.SECTOR,
        "scattered": far,
        "scattered_bytes": far * geometry.SECTOR,
    }
    return Row(
        "coalescing",
        values,
        f"32 consecutive fp32 = {near} sectors, {near * geometry.SECTOR} B; scattered = {far} sectors, "
        f"{far * geometry.SECTOR:,} B: {far / near:.0f}x",
    )


def _intensity() -> Row:
    vector = Tensor((1 << 20,), "float32")
    add = _cost(Call("aten::add", (vector, vector))).intensity or 0.0
    n = 4096
    square, column = Tensor((n, n), "float32"), Tensor((n,), "float32")
    mv = _cost(Call("aten::mv", (square, column))).intensity or 0.0
    fp32 = _cost(Call("aten::mm", (square, square))).intensity or 0.0
    half = Tensor((n, n), "bfloat16")
    bf16 = _cost(Call("aten::mm", (half, half))).intensity or 0.0
    return Row(
        "arithmetic intensity",
        {"add": add, "mv": mv, "matmul_fp32_over_n": fp32 / n, "matmul_bf16_over_n": bf16 / n},
        f"vector add {add:.3f}; matrix-vector n={n} {mv:.2f}; "
        f"matmul fp32 n/{n / fp32:.0f}, bf16 n/{n / bf16:.0f} FLOP/B",
    )


def _tiles() -> Row:
    sizes = (1, 16, 32, 64, 128)
    values = {str(t): geometry.tile_intensity(t) for t in sizes}
    reads = geometry.tile_reads(16, 4096) / geometry.tile_reads(1, 4096)
    return Row(
        "tile T x T, fp32",
        values | {"reads_16_over_1": reads},
        "2/T x n reads an output, T/4 FLOP/B: " + ", ".join(f"{t} → {geometry.tile_intensity(t):g}" for t in sizes),
    )


def _waves(h100: Machine) -> tuple[Row, ...]:
    sms = int(h100.limits.sms.value)
    rows = []
    for n in (1024, 1408, 1536, 4096, 4097, 4224):
        t = geometry.tile_waves(n, n, 128, 128, sms)
        values = {"tiles": t.tiles, "waves": t.waves, "sm": t.sm_efficiency, "useful": t.useful, "overall": t.overall}
        rows.append(
            Row(
                f"waves, 128x128 tiles, n={n}",
                values,
                f"{t.tiles:,} tiles, {t.waves} wave{'s' if t.waves > 1 else ''}, SM {t.sm_efficiency:.0%}, "
                f"useful {t.useful:.0%}, overall {t.overall:.0%}",
            )
        )
    return tuple(rows)


def _pipeline(h100: Machine) -> Row:
    size = geometry.slice_bytes(128, 128, 64, 2)
    level = h100.level("shared")
    held = level.capacity.value if level is not None and level.capacity is not None else 0.0
    # Stages of this tile beside its epilogue: what fits with one block, and with two, on a SM.
    most, two = int(held // size), int(held / 2 // size)
    return Row(
        "pipeline slice",
        {"bytes": size, "fit": most, "fit_two_blocks": two, "held": held},
        f"128x128 bf16 tile, 64 deep: {size // 1024} KB for A and B; {two} to {min(most, 5)} used of the {most} "
        f"that fit {held / 1024:.0f} KB",
    )


def _decode(h100: Machine) -> Row:
    launches = LLAMA_LAYERS * KERNELS_A_LAYER
    over = h100.overheads
    each = over.dispatch.value + over.launch.value
    launch, travel = launches * each, LLAMA_BYTES / h100.bandwidth
    share = launch / (launch + travel)
    return Row(
        "Llama 3 8B decode",
        {
            "launches": launches,
            "launch_each": each,
            "launch_seconds": launch,
            "travel_seconds": travel,
            "overhead": share,
        },
        f"{LLAMA_LAYERS} layers x {KERNELS_A_LAYER} kernels = {launches} launches x {units.seconds(each)} = "
        f"{units.seconds(launch)}; {units.nbytes(LLAMA_BYTES)} / {units.rate_bytes(h100.bandwidth)} = "
        f"{units.seconds(travel)}; unoverlapped overhead {share:.0%}",
    )


def _vocabulary() -> Row:
    padded = geometry.round_up(50_257, 64)
    return Row("vocabulary", {"padded": padded}, f"50,257 → {padded:,} (multiple of 64)")


def _laptop() -> Row:
    ridge = LAPTOP_RATE / LAPTOP_BANDWIDTH
    spec = catalog.find("m4").bandwidth
    return Row(
        "Apple M4, measured",
        {"ridge": ridge, "bandwidth": LAPTOP_BANDWIDTH, "spec": spec, "rate": LAPTOP_RATE},
        f"{units.rate_bytes(LAPTOP_BANDWIDTH)} ({units.rate_bytes(spec)} by its datasheet), "
        f"{units.rate_flops(LAPTOP_RATE)}, ridge {ridge:.0f} FLOP/B",
    )

"""How work spreads over a machine: blocks, occupancy, waves, tiles, and the sectors a warp touches.

Pure functions over plain numbers and a Machine; nothing here knows what a kernel computes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor

from ridgepole.errors import BadInput
from ridgepole.machine.model import Figure, Machine

REGISTER_UNIT = 256
"""Registers are given to a warp in units of 256 (cuda_occupancy.h, compute capability 3.0 and later)."""
REGISTER_UNIT_AMD = 512
"""To a wavefront of 64 in units of 8 a lane (LLVM AMDGPU usage guide, gfx90a and later)."""
SHARED_UNIT = {"modern": 128, "older": 256, "AMD": 512}
"""Bytes that a block's shared memory is rounded up to: compute capability 8.0 and later, before (cuda_occupancy.h),
and AMD's (LLVM AMDGPU usage guide, gfx9)."""
RESERVED_SHARED = 1024
"""Bytes of shared memory the system keeps of each block (compute capability 8.0 and later)."""
MOST_REGISTERS = {"NVIDIA": 255, "AMD": 512}
"""Registers a thread can have."""
QUARTERS = 4
"""Schedulers (SIMD units) of a SM, each with its share of the registers."""
SECTOR = 32
"""Bytes of a sector: what one request to L2 or device memory moves at least (CUDA best practices guide)."""
WARP = 32


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Residency on one SM. `limit` names what binds: "threads", "blocks", "registers", "shared" or "block size".

    `blocks`, `warps`: resident; `occupancy`: warps over the most there can be.
    """

    blocks: int
    warps: int
    occupancy: float
    limit: str


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a launch of `grid` blocks of `block` threads spreads.

    `wave`: blocks resident at once on all SMs; `waves`: grid / wave; `full_waves`: whole ones;
    `wave_efficiency`: waves / ceil(waves), the share of block slots in use over the run.
    """

    grid: int
    block: int
    blocks_per_sm: int
    wave: int
    waves: float
    full_waves: int
    wave_efficiency: float
    occupancy: float
    limit: str


@dataclass(frozen=True, slots=True)
class Tiling:
    """An m x n output cut into tiles, one a block, `per_wave` at once.

    `sm_efficiency`: tiles over the tile slots of the waves begun; `useful`: outputs over the outputs the tiles cover;
    `overall`: their product.
    """

    tiles: int
    waves: int
    sm_efficiency: float
    useful: float
    overall: float


def _known(figure: Figure | None, what: str, machine: Machine) -> int:
    if figure is None:
        raise BadInput(f"{machine.name}: its {what} is not known, so nothing can be said of residency")
    return int(figure.value)


def occupancy(machine: Machine, block: int, registers: int = 32, shared: int = 0) -> Occupancy:
    """Blocks and warps of a kernel resident on one SM, as CUDA's occupancy calculator counts.

    `block`: threads of a block; `registers`: of a thread; `shared`: bytes of a block. Raises BadInput for a launch
    that the machine refuses.
    """
    limits = machine.limits
    warp = int(limits.warp.value)
    most_block = int(limits.threads_per_block.value) if limits.threads_per_block is not None else 1024
    if not 1 <= block <= most_block:
        raise BadInput(f"a block of {block} threads: {machine.name} takes 1 to {most_block}")
    most_registers = MOST_REGISTERS.get(machine.vendor, MOST_REGISTERS["AMD"])
    if not 0 <= registers <= most_registers:
        raise BadInput(f"{registers} registers a thread: {machine.name} takes 0 to {most_registers}")
    if shared < 0:
        raise BadInput(f"{shared} B of shared memory a block: at least 0")
    warps = ceil(block / warp)
    most_warps = _known(limits.threads_per_sm, "threads a SM", machine) // warp
    bounds = {"threads": most_warps // warps}
    if limits.blocks_per_sm is not None:
        bounds["blocks"] = int(limits.blocks_per_sm.value)
    if registers and limits.registers_per_sm is not None:
        unit = REGISTER_UNIT_AMD if machine.vendor == "AMD" else REGISTER_UNIT
        bounds["registers"] = _by_registers(int(limits.registers_per_sm.value), registers * warp, unit, warps)
    if limits.shared_per_sm is not None:
        bounds["shared"] = _by_shared(machine, shared)
    limit = min(bounds, key=lambda name: bounds[name])
    blocks = bounds[limit]
    if blocks < 1:
        raise BadInput(f"no block of {block} threads, {registers} registers and {shared} B fits a SM: {limit}")
    return Occupancy(blocks, blocks * warps, blocks * warps / most_warps, limit)


def _by_registers(held: int, wanted: int, unit: int, warps: int) -> int:
    a_warp = ceil(wanted / unit) * unit
    room = (held // QUARTERS // a_warp) * QUARTERS
    return room // warps


def _by_shared(machine: Machine, shared: int) -> int:
    held = int(machine.limits.shared_per_sm.value) if machine.limits.shared_per_sm is not None else 0
    modern = machine.vendor == "NVIDIA" and machine.compute != "" and float(machine.compute) >= 8.0
    most = machine.limits.shared_per_block
    if most is not None and shared > most.value:
        raise BadInput(f"{shared} B of shared memory a block: {machine.name} takes at most {most.value:.0f}")
    unit = SHARED_UNIT["AMD" if machine.vendor == "AMD" else "modern" if modern else "older"]
    a_block = ceil(shared / unit) * unit + (RESERVED_SHARED if modern else 0)
    return held // a_block if a_block else 1 << 30


def launch_geometry(
    elements: int, block: int, machine: Machine, *, registers: int = 32, shared: int = 0, per_thread: int = 1
) -> Geometry:
    """The spread of one thread for every `per_thread` elements.

    >>> launch_geometry(16_777_216, 256, machine("h100")).waves     # 65,536 blocks, 8 a SM, 1,056 a wave
    62.06...

    Raises BadInput for counts below 1 or a launch the machine refuses.
    """
    if elements < 1 or per_thread < 1:
        raise BadInput("a launch needs at least one element, and at least one a thread")
    grid = ceil(elements / (block * per_thread)) if block > 0 else 0
    return grid_geometry(grid, block, machine, registers=registers, shared=shared)


def grid_geometry(grid: int, block: int, machine: Machine, *, registers: int = 32, shared: int = 0) -> Geometry:
    """The spread of `grid` blocks. Raises BadInput for none, or a launch the machine refuses."""
    if grid < 1:
        raise BadInput(f"a grid of {grid} blocks: at least 1")
    held = occupancy(machine, block, registers, shared)
    wave = held.blocks * int(machine.limits.sms.value)
    waves = grid / wave
    return Geometry(
        grid=grid,
        block=block,
        blocks_per_sm=held.blocks,
        wave=wave,
        waves=waves,
        full_waves=floor(waves),
        wave_efficiency=waves / ceil(waves),
        occupancy=held.occupancy,
        limit=held.limit,
    )


def tile_waves(m: int, n: int, tile_m: int, tile_n: int, per_wave: int) -> Tiling:
    """An m x n output in tiles of tile_m x tile_n, `per_wave` of them at once (one a SM for large tiles)."""
    if min(m, n, tile_m, tile_n, per_wave) < 1:
        raise BadInput("tiles need sizes of at least 1")
    tiles = ceil(m / tile_m) * ceil(n / tile_n)
    waves = ceil(tiles / per_wave)
    busy = tiles / (waves * per_wave)
    useful = m * n / (tiles * tile_m * tile_n)
    return Tiling(tiles, waves, busy, useful, busy * useful)


def tile_reads(tile: int, n: int) -> float:
    """Elements of A and B read for one output of an n-deep product in square tiles: 2 n / tile."""
    return 2 * n / tile


def tile_intensity(tile: int, itemsize: int = 4) -> float:
    """FLOP per byte that a square tile reads: 2 t² FLOP and 2 t elements a step of k. T/4 for fp32."""
    return tile / itemsize


def slice_bytes(tile_m: int, tile_n: int, deep: int, itemsize: int) -> int:
    """Bytes of the slices of A and B that one pipeline stage holds."""
    return (tile_m + tile_n) * deep * itemsize


def sectors(addresses: Iterable[int], itemsize: int) -> int:
    """32-byte sectors that a warp touches which reads `itemsize` bytes at each of `addresses` (in bytes)."""
    touched: set[int] = set()
    for address in addresses:
        touched.update(range(address // SECTOR, (address + itemsize - 1) // SECTOR + 1))
    return len(touched)


def strided_sectors(stride: int, itemsize: int, lanes: int = WARP, offset: int = 0) -> int:
    """Sectors of a warp whose lane i reads element i x stride."""
    return sectors((offset + lane * stride * itemsize for lane in range(lanes)), itemsize)


def round_up(value: int, multiple: int) -> int:
    """The next multiple: a vocabulary of 50,257 padded to 64 is 50,304."""
    return ceil(value / multiple) * multiple

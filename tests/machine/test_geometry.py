"""How work spreads: occupancy as CUDA's calculator counts it, waves, tiles, sectors."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.errors import BadInput
from ridgepole.machine import catalog, geometry
from ridgepole.machine.model import Machine

H100 = catalog.find("h100")


@pytest.mark.parametrize(
    ("block", "registers", "shared", "blocks", "limit"),
    [
        # 2,048 threads a SM; 65,536 registers in four quarters, 256 at a time a warp; 228 KB, 1 KB kept of each block.
        (256, 32, 0, 8, "threads"),
        (1024, 32, 0, 2, "threads"),
        (32, 16, 0, 32, "blocks"),
        (128, 128, 0, 4, "registers"),
        (256, 64, 0, 4, "registers"),
        (256, 33, 0, 6, "registers"),
        (128, 32, 48 * 1024, 4, "shared"),
        (128, 32, 227 * 1024, 1, "shared"),
    ],
)
def test_residency_on_an_h100(block: int, registers: int, shared: int, blocks: int, limit: str) -> None:
    held = geometry.occupancy(H100, block, registers, shared)
    assert (held.blocks, held.limit) == (blocks, limit)
    assert held.warps == blocks * ceil(block / 32)
    assert held.occupancy == held.warps / 64


@pytest.mark.parametrize(
    ("block", "registers", "shared"), [(0, 32, 0), (1025, 32, 0), (128, 256, 0), (128, 32, 228 * 1024)]
)
def test_a_launch_that_the_machine_refuses_is_refused(block: int, registers: int, shared: int) -> None:
    with pytest.raises(BadInput):
        geometry.occupancy(H100, block, registers, shared)


@given(st.integers(1, 1024), st.integers(1, 64), st.integers(0, 100_000))
def test_more_registers_or_shared_memory_never_raise_residency(block: int, registers: int, shared: int) -> None:
    held = geometry.occupancy(H100, block, registers, shared)
    assert 0 < held.occupancy <= 1
    assert geometry.occupancy(H100, block, min(registers + 8, 64), shared).blocks <= held.blocks
    assert geometry.occupancy(H100, block, registers, shared + 4096).blocks <= held.blocks


@given(st.integers(1, 10**9), st.sampled_from([32, 64, 128, 256, 512, 1024]))
def test_waves_times_a_wave_is_the_grid(elements: int, block: int) -> None:
    spread = geometry.launch_geometry(elements, block, H100)
    assert spread.waves * spread.wave == pytest.approx(spread.grid)
    assert spread.grid == ceil(elements / block)
    assert 0 < spread.wave_efficiency <= 1


@given(st.integers(1, 5000), st.integers(1, 5000), st.sampled_from([16, 64, 128, 256]), st.integers(1, 200))
def test_a_tiling_is_never_more_than_useful(m: int, n: int, tile: int, sms: int) -> None:
    cut = geometry.tile_waves(m, n, tile, tile, sms)
    assert 0 < cut.overall <= min(cut.sm_efficiency, cut.useful) <= 1
    assert (cut.waves - 1) * sms < cut.tiles <= cut.waves * sms


@pytest.mark.parametrize(
    ("stride", "itemsize", "sectors"), [(1, 4, 4), (2, 4, 8), (8, 4, 32), (1, 2, 2), (1, 8, 8), (0, 4, 1)]
)
def test_sectors_of_a_strided_warp(stride: int, itemsize: int, sectors: int) -> None:
    assert geometry.strided_sectors(stride, itemsize) == sectors


def test_a_warp_off_by_one_element_touches_one_sector_more() -> None:
    assert geometry.strided_sectors(1, 4, offset=4) == 5


@given(st.lists(st.integers(0, 1 << 20), min_size=1, max_size=32), st.sampled_from([1, 2, 4, 8, 16]))
def test_sectors_lie_between_the_bytes_and_the_lanes(addresses: list[int], itemsize: int) -> None:
    count = geometry.sectors(addresses, itemsize)
    touched = {address + offset for address in addresses for offset in range(itemsize)}
    assert ceil(len(touched) / 32) <= count <= 2 * len(set(addresses))
    aligned = {address // itemsize * itemsize for address in addresses}
    assert geometry.sectors(aligned, itemsize) <= len(aligned)


@pytest.mark.parametrize(
    ("name", "block", "registers", "shared", "blocks", "limit"),
    [
        # A100: 164 KB and 32 blocks; a block of 20 KB takes 21 with what the system keeps.
        ("a100", 256, 32, 20 * 1024, 7, "shared"),
        ("a100", 64, 32, 0, 32, "threads"),
        # GA102: 1,536 threads and 16 blocks a SM; Ada the same with 24; Turing 1,024 and 16.
        ("a10", 64, 32, 0, 16, "blocks"),
        ("l4", 64, 32, 0, 24, "threads"),
        ("l4", 32, 32, 0, 24, "blocks"),
        ("t4", 256, 32, 0, 4, "threads"),
        ("t4", 32, 32, 0, 16, "blocks"),
        # Before compute capability 8.0 the system keeps nothing of a block's shared memory, and units are 256 B.
        ("v100", 128, 32, 48 * 1024, 2, "shared"),
        ("v100", 128, 32, 100, 16, "threads"),
        ("t4", 128, 16, 64 * 1024, 1, "shared"),
        # CDNA: 512 registers a lane in each of four SIMD units of 8 wavefronts; 64 KB of LDS, nothing kept.
        ("mi300x", 256, 64, 0, 8, "threads"),
        ("mi300x", 256, 65, 0, 7, "registers"),
        ("mi300x", 256, 256, 0, 2, "registers"),
        ("mi300x", 256, 512, 0, 1, "registers"),
        ("mi300x", 256, 32, 16 * 1024, 4, "shared"),
    ],
)
def test_residency_by_architecture(name: str, block: int, registers: int, shared: int, blocks: int, limit: str) -> None:
    held = geometry.occupancy(catalog.find(name), block, registers, shared)
    assert (held.blocks, held.limit) == (blocks, limit)


@pytest.mark.parametrize("name", ["h100", "v100", "mi300x", "m1"])
@pytest.mark.parametrize(("registers", "shared"), [(-1, 0), (32, -1), (4096, 0)])
def test_what_no_kernel_asks_for_is_refused(name: str, registers: int, shared: int) -> None:
    with pytest.raises(BadInput):
        geometry.occupancy(catalog.find(name), 128, registers, shared)


def test_more_registers_than_a_sm_has_fit_no_block() -> None:
    with pytest.raises(BadInput, match="registers"):
        geometry.occupancy(H100, 1024, 65)


@pytest.mark.parametrize(("elements", "block", "per_thread"), [(0, 256, 1), (-5, 256, 1), (100, 0, 1), (100, 256, 0)])
def test_a_launch_of_nothing_is_refused(elements: int, block: int, per_thread: int) -> None:
    with pytest.raises(BadInput):
        geometry.launch_geometry(elements, block, H100, per_thread=per_thread)


def test_a_grid_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 1"):
        geometry.grid_geometry(0, 256, H100)


def test_a_machine_whose_threads_a_sm_are_not_known_is_said_to_be_so() -> None:
    with pytest.raises(BadInput, match="not known"):
        geometry.occupancy(catalog.find("gaudi3"), 1)


@given(
    st.sampled_from([m for m in catalog.load().values() if m.limits.threads_per_sm is not None]),
    st.integers(1, 1024),
    st.integers(1, 255),
    st.integers(0, 60_000),
)
def test_no_machine_holds_more_than_it_has(machine: Machine, block: int, registers: int, shared: int) -> None:
    try:
        held = geometry.occupancy(machine, block, registers, shared)
    except BadInput:
        return
    limits = machine.limits
    assert 0 < held.occupancy <= 1
    for figure, taken in (
        (limits.threads_per_sm, held.blocks * block),
        (limits.blocks_per_sm, held.blocks),
        (limits.registers_per_sm, held.blocks * block * registers),
        (limits.shared_per_sm, held.blocks * shared),
    ):
        assert figure is None or taken <= figure.value

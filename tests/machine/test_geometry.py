"""How work spreads: occupancy as CUDA's calculator counts it, waves, tiles, sectors."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.errors import BadInput
from ridgepole.machine import catalog, geometry

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
    assert 1 <= count <= 2 * len(addresses)

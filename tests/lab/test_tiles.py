"""Tiles: what they ask by arithmetic, and what caches must have given where that is more than memory can."""

from __future__ import annotations

import pytest

from ridgepole.kernels.device import Device
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import find
from ridgepole.lab.experiment import Row
from ridgepole.lab.experiments.tiles import asked
from tests.lab.made import gpu_bench

TILES = find("tiles")
N = 4096


def row(tile: int, seconds: float | None) -> Row:
    rate = asked(tile, N) / seconds if seconds else None
    factor = rate / 4.8e12 if rate else None
    return {"tile": tile, "n": N, "reads": 2 * N / tile, "intensity": tile / 4, "asked": asked(tile, N),
            "seconds": seconds, "asked_rate": rate, "factor": factor, "cached": 1 - 1 / factor if factor else None,
            "note": "" if seconds else "not run"}  # fmt: skip


def test_the_naive_product_at_4096_asks_550_gigabytes() -> None:
    assert asked(1, N) == 2 * N * N * N * 4 == 549_755_813_888
    assert asked(16, N) == asked(1, N) / 16 and asked(64, N) == asked(1, N) / 64


def test_what_memory_cannot_have_given_came_from_caches(device: Device) -> None:
    # 549.8 GB in 28.6 ms is 19.2 TB/s, four times 4.8: three quarters from caches. 8.6 GB in 7 ms is 1.23 TB/s.
    said = TILES.meaning([row(1, asked(1, N) / 19.2e12), row(64, 7e-3)], gpu_bench(device))
    assert "a tile of 1 asked 19.2 TB/s, 4.0x as much, so that caches gave 75.0 % of it at least" in said
    assert "tile of 64 asked 1.23 TB/s, which memory alone could give" in said
    assert "1 → 8,192 reads an output, 0.25 FLOP/B; 64 → 128 reads an output, 16 FLOP/B" in said
    assert "The ridge here is 14 FLOP/B: from a tile of 64 on" in said


def test_tiles_all_below_the_ridge_lean_on_caches(device: Device) -> None:
    assert "every one of these tiles lies below it" in TILES.meaning([row(16, 1e-2)], gpu_bench(device))


def test_without_a_time_there_is_still_the_arithmetic_and_nothing_else(device: Device) -> None:
    said = TILES.meaning([row(32, None)], gpu_bench(device))
    assert "32 → 256 reads an output, 8 FLOP/B" in said and "nothing is said of the caches" in said
    assert TILES.picture([row(32, None)], gpu_bench(device)) is None


def test_each_tile_is_measured_and_asks_what_its_arithmetic_says(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgepole.lab.experiments.tiles.QUICK_CPU_SIDE", 128)
    rows = list(TILES.rows(bench))
    assert [r["tile"] for r in rows] == [1, 16, 32, 64]
    assert [r["reads"] for r in rows] == [256, 16, 8, 4] and [r["intensity"] for r in rows] == [0.25, 4, 8, 16]
    for r in rows:
        assert float(r["asked_rate"] or 0) == pytest.approx(float(r["asked"] or 0) / float(r["seconds"] or 1))
        assert float(r["asked_rate"] or 0) == pytest.approx(float(r["rate"] or 0) / float(r["intensity"] or 1))

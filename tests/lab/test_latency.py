"""Latency: a chase long enough that what it says is of its level and no other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.kernels.device import Device
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import conduct_at, find
from ridgepole.lab.experiment import Result, Row
from ridgepole.lab.experiments import latency
from tests.lab.made import gpu_bench

L2 = 60 << 20
CLOCK = 1.98e9


def test_a_chase_round_memory_does_not_find_its_lines_in_the_cache() -> None:
    slots = (1 << 30) // 128
    assert latency.steps_for(slots, 128, L2) * 128 >= 2 * L2


def test_the_first_lap_of_a_chase_within_l1_does_not_count() -> None:
    slots = (128 << 10) // 128
    assert latency.steps_for(slots, 128, L2) >= 200 * slots


@given(st.integers(1, 1 << 25), st.sampled_from([64, 128]), st.integers(1 << 20, 1 << 30))
def test_every_chase_is_long_and_none_overflows_a_counter_of_cycles(slots: int, line: int, cache: int) -> None:
    steps = latency.steps_for(slots, line, cache)
    assert steps >= 20_000
    if line == 128 and cache <= 128 << 20:
        assert steps * 1000 < 1 << 32


@given(st.integers(1 << 20, 1 << 29), st.booleans())
def test_working_sets_rise_and_are_whole_lines(cache: int, quick: bool) -> None:
    found = latency.sizes(1024, 4 * cache, cache, quick)
    assert all(a < b for a, b in pairwise(found))
    assert all(size % 128 == 0 for size in found)
    assert found[-1] > 2 * cache - 1
    within = [size for size in found if 4096 <= size < 8192]
    assert len(within) == (2 if quick else 4)


def point(size: int, cycles: float) -> Row:
    return {
        "level": None, "bytes": size, "seconds": cycles / CLOCK, "cycles": cycles, "raw_seconds": cycles / CLOCK,
        "spread": 0.0, "note": "",
    }  # fmt: skip


def hopper() -> list[Row]:
    """As a chase on an H200 gave them, its addresses taken off."""
    found: list[Row] = [{**point(4, 4.0), "level": "registers"}, {**point(1 << 14, 29.0), "level": "shared"}]
    for size in latency.sizes(1024, 1 << 30, L2, quick=False):
        cycles = 34.0 if size <= 208 << 10 else 283.0 if size <= 28 << 20 else 420.0 if size < 56 << 20 else 560.0
        found.append(point(size, cycles))
    return found


def test_hoppers_levels_are_found_and_set_beside_the_published_figures(device: Device) -> None:
    bench = gpu_bench(device)
    bench.device.backend = "cuda"  # type: ignore[misc]
    said = latency._meaning(hopper(), bench)
    assert "registers 2.02 ns, 4 cycles" in said
    assert "L1 (up to 197 kB) 17.2 ns, 34 cycles (published 32)" in said
    assert "L2 (up to 29.4 MB) 143 ns, 283 cycles (published 280)" in said
    assert "HBM (beyond) 283 ns, 560 cycles (published 690)" in said


def test_what_was_not_run_is_no_level(device: Device) -> None:
    rows = [{**point(1 << 20, 10.0), "seconds": None, "cycles": None, "note": "not run"}]
    assert "no working set was measured" in latency._meaning(rows, gpu_bench(device))
    assert latency._picture(rows, gpu_bench(device)).series[0].x == ()


def test_memory_is_chased_however_long_the_caches_took(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's last-level cache of 300 MB took all the time there was, and memory had no latency."""
    monkeypatch.setattr(latency, "QUICK_BUDGET", 0.0)
    monkeypatch.setattr(latency, "CPU_PAST", 2)
    rows = conduct_at(bench, find("latency")).rows
    chased = [row for row in rows if row["level"] is None]
    assert [row["seconds"] is not None for row in chased] == [False] * (len(chased) - 1) + [True]
    assert [row["level"] for row in rows if row.get("summary")] == ["DRAM"]


def test_each_level_has_a_row_and_is_slower_than_the_one_before(conducted: Callable[[str], Result]) -> None:
    levels = [r for r in conducted("latency").rows if r.get("summary")]
    assert len(levels) >= 2
    assert all(float(a["seconds"] or 0) < float(b["seconds"] or 0) for a, b in pairwise(levels))
    assert all(float(a["bytes"] or 0) < float(b["least"] or 0) for a, b in pairwise(levels))

"""Shared memory: the largest size that truly works, and what bounds it."""

from __future__ import annotations

from collections.abc import Callable

from ridgepole.kernels.device import Device
from ridgepole.lab.experiment import Result, Row
from ridgepole.lab.experiments import shared_memory
from tests.lab.made import gpu_bench

KB = 1024


def row(size: int, accepted: bool) -> Row:
    note = "" if accepted else "refused: too much"
    return {"bytes": size, "kb": size / KB, "accepted": accepted, "within": True, "note": note}


def test_on_hopper_227_of_228_kilobytes_are_had_and_one_is_the_systems(device: Device) -> None:
    rows = [row(48 * KB, True), row(227 * KB, True), row(227 * KB + 4, False), row(228 * KB, False)]
    said = shared_memory._meaning(rows, gpu_bench(device))
    assert "A block gets up to 227 KB of shared memory" in said
    assert "exactly what the device reports" in said
    assert "The bound is the SM's 228 KB, of which the system keeps 1 KB for each block." in said


def test_a_device_that_gives_less_than_it_reports_is_caught(device: Device) -> None:
    said = shared_memory._meaning([row(48 * KB, True), row(64 * KB, False)], gpu_bench(device))
    assert "The device reports 227 KB, which it does not give" in said


def test_a_size_above_a_refused_one_does_not_count() -> None:
    assert shared_memory.largest([row(16 * KB, True), row(64 * KB, False), row(128 * KB, True)]) == 16 * KB


def test_nothing_had_is_said(device: Device) -> None:
    assert "No block got any: refused: too much" in shared_memory._meaning([row(KB, False)], gpu_bench(device))


def test_the_reported_limit_and_a_word_more_are_tried() -> None:
    for quick in (False, True):
        found = shared_memory.sizes(232_448, quick)
        assert {232_448, 232_452} <= set(found) and all(size % 4 == 0 for size in found)
    assert max(shared_memory.sizes(1 << 20, False)) == 2 << 20


def test_what_the_cpu_reports_is_had_and_more_is_refused(conducted: Callable[[str], Result]) -> None:
    rows = conducted("shared-memory").rows
    limit = shared_memory.largest(rows)
    assert limit >= 16 * KB
    assert any(not r["accepted"] and r["note"] for r in rows)
    assert str(limit // KB) in conducted("shared-memory").meaning.replace(",", "")

"""Bandwidth: what a variant keeps in flight, what Little's law asks of it, and which figures are believed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ridgepole import units
from ridgepole.kernels.device import Device
from ridgepole.lab.bench import Bench
from ridgepole.lab.experiment import Result, Row
from ridgepole.lab.experiments import bandwidth
from tests.lab.made import gpu_bench

GIB = 1 << 30


def row(kernel: str, rate: float, where: str = bandwidth.MEMORY, note: str = "", threads: int | None = 2048) -> Row:
    moved = (3.0 if "add" in kernel else 2.0) * GIB
    held = bandwidth.HELD.get(kernel)
    return {
        "kernel": kernel, "where": where, "bytes": moved, "method": "queued", "seconds": moved / rate, "spread": 0.01,
        "bandwidth": rate, "of_known": rate / 4.8e12, "threads": threads,
        "in_flight": threads * held if threads and held else None, "note": note,
    }  # fmt: skip


H200 = [
    row("add", 3.9e12), row("add_wide", 4.25e12), row("add_stream", 4.3e12, threads=1536), row("copy", 3.7e12),
    row("copy_stream", 4.2e12), row("torch add", 4.2e12, threads=None),
    row("copy", 9e12, bandwidth.CACHE), row("add", 5.2e12, note="above the physical limit"),
]  # fmt: skip


def test_a_thread_has_its_loads_in_flight() -> None:
    assert bandwidth.HELD == {
        "add": 8, "add_wide": 32, "add_stream": 128, "copy": 4, "copy_wide": 16, "copy_stream": 64,
    }  # fmt: skip


def test_little_asks_eight_kilobytes_of_loads_an_sm_for_an_addition_on_an_h200(device: Device) -> None:
    bench = gpu_bench(device)
    latency = 690 / 1.98e9
    assert bandwidth._needed(bench, "add") == pytest.approx(latency * 4.8e12 * 2 / 3 / 132)
    assert bandwidth._needed(bench, "copy") == pytest.approx(latency * 4.8e12 / 2 / 132)


def test_the_best_believed_variants_are_named_with_their_share_of_the_datasheet(device: Device) -> None:
    said = bandwidth._meaning(H200, gpu_bench(device))
    assert "the best add, add_stream, moves 4.30 TB/s, 89.6 % of the datasheet's 4.80 TB/s" in said
    assert "the best copy, copy_stream, moves 4.20 TB/s" in said
    assert "Not believed, as above the physical limit: add." in said
    assert "Within the last-level cache copy moves 9.00 TB/s, 2.1x what memory gives" in said


def test_the_plain_variant_is_explained_by_the_bytes_it_keeps_in_flight(device: Device) -> None:
    said = bandwidth._meaning(H200, gpu_bench(device))
    assert "Plain add reaches 90.7 % of the best" in said
    assert "2048 resident threads of 2 x 4 bytes keep 16.4 kB, where add_stream keeps 197 kB" in said
    assert "each of its 1,048,576 blocks lives for one load" in said


def test_too_few_resident_threads_are_too_few_bytes(device: Device) -> None:
    rows = [row("copy", 2.0e12, threads=512), row("copy_wide", 4.2e12)]
    assert "too few" in bandwidth._meaning(rows, gpu_bench(device))


def test_a_plain_variant_as_good_as_the_best_is_said_to_be(device: Device) -> None:
    rows = [row("copy", 4.18e12), row("copy_wide", 4.2e12)]
    assert "Plain copy, one thread an element, is as good" in bandwidth._meaning(rows, gpu_bench(device))


def test_on_a_cpu_the_share_is_of_a_rate_that_torch_reached(bench: Bench) -> None:
    said = bandwidth._meaning([row("add", 1e9), row("copy", 1e9)], bench)
    assert bench.machine is not None
    assert f"of the {units.rate_bytes(bench.machine.bandwidth)} that torch's own copy or sum reached" in said


def test_nothing_believed_is_said(device: Device) -> None:
    rows = [row("add", 9e12, note="above")]
    assert bandwidth._meaning(rows, gpu_bench(device)).startswith("Not believed")


def test_a_gpu_gets_arrays_of_a_gigabyte_and_a_small_one_what_fits(device: Device) -> None:
    bench = gpu_bench(device)
    bench.quick = False
    assert bandwidth.elements(bench) * 4 == GIB
    assert 3 * bandwidth.cached(bench) * 4 <= bench.last_cache // 2


def test_both_places_are_measured_with_every_variant(conducted: Callable[[str], Result]) -> None:
    rows = conducted("bandwidth").rows
    for where in (bandwidth.MEMORY, bandwidth.CACHE):
        names = {r["kernel"] for r in rows if r["where"] == where}
        assert set(bandwidth.KERNELS) <= names
    assert all(r["bandwidth"] == pytest.approx(float(r["bytes"] or 0) / float(r["seconds"] or 1)) for r in rows)

"""Who has a nanosecond in which several things run: the order of the design's section 4."""

from __future__ import annotations

import pytest

from ridgepole.attribute.ledger import Bucket
from ridgepole.attribute.sweep import Gap, Piece, sweep, union

from .made import Scene, did

BUCKETS_OF_KERNELS: tuple[Bucket, ...] = ("compute", "memory", "transfer", "unknown", "overhead", "communication")


@pytest.mark.parametrize(
    ("first", "second"),
    [(a, b) for i, a in enumerate(BUCKETS_OF_KERNELS) for b in BUCKETS_OF_KERNELS[i + 1 :]],
)
def test_of_two_at_once_the_one_named_first_has_the_time(first: Bucket, second: Bucket) -> None:
    scene = Scene()
    scene.kernel(0, 60, second, lane="0/7")
    scene.kernel(40, 100, first, lane="0/8")
    buckets = scene.ledger().busiest.buckets
    assert buckets[first] == 60
    assert buckets[second] == 40


def test_a_collective_behind_a_kernel_is_hidden_and_only_the_rest_is_exposed() -> None:
    scene = Scene()
    scene.add("0/20", 0, 100, "collective", "ncclDevKernel_AllReduce")
    scene.kernel(10, 30, "memory")
    scene.kernel(50, 60, "unknown")
    assert scene.causes() == {"exposed-communication": 70, "memory": 20, "unknown": 10}


def test_a_copy_under_a_kernel_costs_nothing() -> None:
    scene = Scene()
    scene.add("0/9", 0, 80, "copy", "Memcpy HtoD (Pinned -> Device)")
    scene.kernel(0, 100, "memory")
    assert scene.causes() == {"memory": 100}


def test_a_kernel_below_its_floor_is_overhead_though_the_device_is_busy() -> None:
    scene = Scene()
    scene.kernel(0, 100, "overhead")
    device = scene.ledger().busiest
    assert device.buckets["overhead"] == 100
    assert device.resident_ns == 100
    assert [entry.cause for entry in device.entries] == ["kernel-floor"]


def test_a_kernel_nobody_assessed_is_unknown() -> None:
    scene = Scene()
    scene.kernel(0, 100, None)
    assert scene.causes() == {"unknown": 100}


def test_work_outside_the_window_is_clipped_to_it() -> None:
    scene = Scene(start=10, end=60)
    scene.kernel(0, 20)
    scene.kernel(20, 40, "memory")
    scene.kernel(40, 90, "unknown")
    assert scene.causes() == {"compute": 10, "memory": 20, "unknown": 20}


def test_a_kernel_of_no_duration_takes_no_time_and_is_still_a_call() -> None:
    scene = Scene()
    scene.kernel(0, 100, "memory", name="long")
    scene.kernel(50, 50, "memory", name="none")
    device = scene.ledger().busiest
    assert device.buckets["memory"] == 100
    assert {row.op: row.kernels for row in device.ops} == {"long": 1, "none": 1}


def test_each_device_has_its_own_account_and_the_busiest_is_first() -> None:
    scene = Scene()
    scene.kernel(0, 10, "compute", lane="0/7")
    scene.kernel(0, 70, "memory", lane="1/7")
    ledger = scene.ledger()
    assert [device.device for device in ledger.devices] == ["1", "0"]
    assert all(sum(device.buckets.values()) == 100 for device in ledger.devices)


def test_the_sweep_says_what_came_before_and_after_each_gap_even_outside_the_window() -> None:
    pieces = [Piece(a, b, ("compute", "compute"), i) for i, (a, b) in enumerate([(0, 10), (30, 40), (90, 95)])]
    swept = sweep(pieces, 20, 80)
    assert swept.gaps == (Gap(20, 30, 0, 1), Gap(40, 80, 1, 2))
    assert swept.owned == {1: 10}


def test_union_counts_overlapped_time_once_and_nothing_outside() -> None:
    assert union([(5, 20), (0, 10), (15, 18), (90, 200)], 2, 100) == 28


def test_the_roofs_of_overlapping_kernels_never_exceed_busy_time() -> None:
    scene = Scene()
    for lane in ("0/7", "0/8"):
        index = scene.kernel(0, 50, lane=lane)
        scene.work[index] = did("compute", t_compute=40e-9, t_memory=10e-9)
    assert scene.ledger().busiest.roof_ns == 40

"""Idle scaled to the wall clock measured without the profiler."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ridgepole.attribute.scale import apportion

from .made import Scene


def launch_bound(wall: int) -> Scene:
    """20 ns busy and 80 ns idle while recorded."""
    scene = Scene(more={"scaled_ns": wall})
    scene.kernel(0, 10, launch=scene.cpu(-5, -2, "launch", "cudaLaunchKernel"))
    scene.cpu(40, 85, "op", "aten::add")
    scene.kernel(90, 100, launch=scene.cpu(80, 84, "launch", "cudaLaunchKernel"))
    return scene


def test_idle_shrinks_to_the_unrecorded_wall_and_busy_time_stays() -> None:
    scene = launch_bound(60)
    assert scene.causes() == {"compute": 20, "dispatch": 20, "python": 15, "gap": 3, "launch": 2}
    ledger = scene.ledger()
    assert ledger.scaled and ledger.window_ns == 60
    assert any("scaled" in note for note in ledger.notes)


def test_idle_also_grows_where_the_recorded_run_was_the_faster() -> None:
    assert launch_bound(180).causes() == {"compute": 20, "dispatch": 80, "python": 60, "gap": 12, "launch": 8}


def test_busy_time_longer_than_the_wall_is_cut_and_said_so() -> None:
    ledger = launch_bound(15).ledger()
    assert sum(entry.ns for entry in ledger.busiest.entries) == 15
    assert ledger.busiest.resident_ns <= 15
    assert any("cut" in note for note in ledger.notes)


def test_a_wall_longer_than_a_fully_busy_window_leaves_idle_that_nothing_explains() -> None:
    scene = Scene(more={"scaled_ns": 130})
    scene.kernel(0, 100)
    assert scene.causes() == {"compute": 100, "idle-unrecorded-cpu": 30}


@given(st.lists(st.integers(0, 10**12), min_size=1), st.integers(0, 10**13))
def test_parts_add_up_exactly_and_none_is_off_by_a_unit(amounts: list[int], total: int) -> None:
    parts = apportion(amounts, total)
    whole = sum(amounts)
    if not whole:
        assert parts == [0] * len(amounts)
        return
    assert sum(parts) == total
    assert all(abs(part * whole - amount * total) < whole for part, amount in zip(parts, amounts, strict=True))

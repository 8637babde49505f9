"""Levels are found where a latency curve lies flat."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.lab import levels

H200 = [
    (1 << 10, 39.7), (1 << 14, 41.2), (1 << 16, 46.0), (1 << 19, 286.4), (1 << 22, 287.1), (1 << 24, 287.0),
    (1 << 25, 375.6), (1 << 26, 528.6), (1 << 27, 546.8), (1 << 28, 549.3), (1 << 30, 560.0),
]  # fmt: skip
"""Bytes and cycles as a chase on an H200 gave them, 2026-12-01."""


def test_a_gpu_has_three_levels_before_its_addresses_are_taken_off() -> None:
    found = levels.find(H200)
    assert [round(level.latency) for level in found] == [41, 287, 548]
    assert found[0].most == 1 << 16 and found[1].most == (1 << 25)


def test_a_point_on_the_way_up_is_of_no_level() -> None:
    found = levels.find([(1, 10.0), (2, 10.0), (4, 30.0), (8, 100.0), (16, 100.0)])
    assert [(level.least, level.most) for level in found] == [(1, 2), (8, 16)]


def test_a_disturbed_point_does_not_end_a_level() -> None:
    found = levels.find([(1, 10.0), (2, 90.0), (4, 10.0), (8, 10.5)])
    assert len(found) == 1 and found[0].points == 4


def test_one_point_is_one_level() -> None:
    assert [level.latency for level in levels.find([(4096, 1.5)])] == [1.5]


def test_nothing_has_no_levels() -> None:
    assert levels.find([]) == ()


@given(
    st.lists(st.tuples(st.integers(2, 6), st.floats(1.6, 30)), min_size=1, max_size=5),
    st.floats(0.5, 100),
)
def test_plateaus_that_were_made_are_found(steps: list[tuple[int, float]], first: float) -> None:
    curve, size, latency = [], 1024.0, first
    for points, rise in steps:
        latency *= rise
        for _ in range(points):
            curve.append((size, latency))
            size *= 2
    found = levels.find(curve)
    assert [level.points for level in found] == [points for points, _ in steps]
    assert found[-1].latency == pytest.approx(latency)

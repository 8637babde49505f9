"""A machine that others use at the same time is said to be so."""

from __future__ import annotations

import os

import pytest

from ridgepole.machine import detect


@pytest.mark.skipif(not hasattr(os, "getloadavg"), reason="this system has no load average")
@pytest.mark.parametrize(("a_core", "said"), [(0.9, False), (4.0, True)])
def test_more_running_tasks_than_cores_are_noted(monkeypatch: pytest.MonkeyPatch, a_core: float, said: bool) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (2 * a_core, 0.0, 0.0))
    assert bool(detect.crowded()) is said

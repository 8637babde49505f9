"""A machine that others use at the same time is said to be so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ridgepole.machine import detect


@pytest.mark.skipif(not hasattr(os, "getloadavg"), reason="this system has no load average")
@pytest.mark.parametrize(("a_core", "said"), [(0.9, False), (4.0, True)])
def test_more_running_tasks_than_cores_are_noted(monkeypatch: pytest.MonkeyPatch, a_core: float, said: bool) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (2 * a_core, 0.0, 0.0))
    assert bool(detect.crowded()) is said


@pytest.mark.parametrize("others", [(), ("other work ran here too",)])
def test_ceilings_measured_beside_other_work_are_not_kept(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...]
) -> None:
    pytest.importorskip("torch")
    figures = {"bandwidth": 1e10, "llc": 1e11, "float32": 1e11, "small": 1e-6}
    kept: list[object] = []
    monkeypatch.setattr(detect, "crowded", lambda: others)
    monkeypatch.setattr(detect, "_measure", lambda torch: figures)
    monkeypatch.setattr(detect, "_machine", lambda *parts: None)
    monkeypatch.setattr(detect, "_write", lambda path, measured: kept.append(measured))
    detect.cpu(measure_again=True)
    assert kept == ([] if others else [figures])

"""`ridgepole machine measure` on this CPU: a file of measured figures, used from then on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ridgepole.kernels.device import Device
from ridgepole.machine import catalog, detect

LIMIT = 60
"""Seconds that measuring a CPU may take."""


@pytest.fixture(scope="module")
def measured(device: Device, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object], float]:
    """The home it was written into, the document printed, and the seconds it took."""
    home = tmp_path_factory.mktemp("home")
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "ridgepole", "machine", "measure", "--device", "cpu", "--json"],
        capture_output=True, text=True, timeout=240, env={**os.environ, "RIDGEPOLE_HOME": str(home)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return home, json.loads(done.stdout), time.perf_counter() - start


def test_it_takes_less_than_a_minute_and_writes_one_file(measured: tuple[Path, dict[str, object], float]) -> None:
    home, _, seconds = measured
    assert seconds < LIMIT
    assert len(list((home / "machines").glob("*.toml"))) == 1


def test_every_rate_and_latency_says_how_and_when(measured: tuple[Path, dict[str, object], float]) -> None:
    figures = measured[1]["figures"]
    assert isinstance(figures, dict)
    rates = {name: f for name, f in figures.items() if f["unit"] in ("B/s", "FLOP/s") or name.endswith("latency")}
    assert "dram bandwidth" in rates and "dram latency" in rates
    for figure in rates.values():
        assert figure["source"].startswith("measured: ")
        assert "20" in figure["source"]


def test_this_cpu_is_the_measured_one_from_then_on(
    measured: tuple[Path, dict[str, object], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, document, _ = measured
    monkeypatch.setenv("RIDGEPOLE_HOME", str(home))
    catalog.forget()
    found = detect.cpu()
    catalog.forget()
    assert found.name == document["name"] and found.name.endswith(" measured")
    assert document["measured_of"] == detect.cpu_name()


def test_memory_answers_later_than_any_cache(measured: tuple[Path, dict[str, object], float]) -> None:
    figures = measured[1]["figures"]
    assert isinstance(figures, dict)
    caches = [f["value"] for name, f in figures.items() if name in ("l2 latency", "llc latency")]
    assert all(value < figures["dram latency"]["value"] for value in caches)


@pytest.mark.parametrize("name", ["x.json", "nowhere/x.toml"])
def test_a_file_that_could_not_be_written_is_refused_before_measuring(name: str, tmp_path: Path) -> None:
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "ridgepole", "machine", "measure", "-o", str(tmp_path / name)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert time.perf_counter() - start < 5

"""This machine as a machine: measured once, believed only where it can be, and never in the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ridgepole.machine import detect

pytest.importorskip("torch")

FIGURES: dict[str, float | str] = {
    "when": "2026-12-01", "copy": 4e10, "read": 5e10, "l2": 3e11, "llc": 2e11, "float32": 2e11, "float64": 1e11,
    "bfloat16": 9e11, "float16": 3e9, "small": 8e-7,
}  # fmt: skip


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often this machine was measured, while it measures as FIGURES say."""
    times: list[int] = []
    monkeypatch.setattr(detect, "crowded", lambda: ())
    monkeypatch.setattr(detect, "_cache_sizes", lambda threads: {"l2": 1e6 * threads, "llc": 3e7})
    monkeypatch.setattr(detect, "_measure", lambda torch: times.append(1) or dict(FIGURES))
    return times


def test_ceilings_are_measured_once(measured: list[int], own_home: Path) -> None:
    first, second = detect.cpu(), detect.cpu()
    assert measured == [1]
    assert first == second
    assert len(list(own_home.glob("cpu-*.json"))) == 1
    detect.cpu(measure_again=True)
    assert measured == [1, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"copy": "fast"}, {"copy": None}, {"copy": True}, {"copy": 0.0}, {"copy": -1.0}, {"copy": 4e30},
        {"float16": float("nan")}, {"small": float("inf")}, {"when": 3}, {"l2": "x"},
    ],
)  # fmt: skip
def test_a_cache_file_that_cannot_be_ours_is_measured_again(
    measured: list[int], own_home: Path, change: dict[str, object]
) -> None:
    detect.cpu()
    (path,) = own_home.glob("cpu-*.json")
    path.write_text(json.dumps({**FIGURES, **change}))
    machine = detect.cpu()
    assert measured == [1, 1]
    assert machine.bandwidth == 5e10


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"when": "2026-12-01"}', "\udcff"])
def test_a_torn_cache_file_is_measured_again(measured: list[int], own_home: Path, text: str) -> None:
    detect.cpu()
    (path,) = own_home.glob("cpu-*.json")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    detect.cpu()
    detect.cpu()
    assert measured == [1, 1]


def test_a_home_that_cannot_be_written_is_measured_each_time(
    measured: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RIDGEPOLE_HOME", str(tmp_path / "file"))
    assert detect.cpu() == detect.cpu()
    assert measured == [1, 1]


def test_a_cache_slower_than_memory_is_not_believed(
    measured: list[int], monkeypatch: pytest.MonkeyPatch, own_home: Path
) -> None:
    # The threads of a short copy waited for a core that another program had.
    slow = {key: value for key, value in FIGURES.items() if key not in ("l2", "llc")}
    monkeypatch.setattr(detect, "_measure", lambda torch: dict(slow))
    machine = detect.cpu()
    level = machine.level("llc")
    assert level is not None and level.capacity is not None and level.bandwidth is None
    assert not list(own_home.glob("cpu-*.json"))


def test_the_ladder_of_a_cpu_gets_faster_towards_the_core(measured: list[int]) -> None:
    machine = detect.cpu()
    rates = [level.bandwidth.value for level in machine.memory if level.bandwidth is not None]
    assert [level.name for level in machine.memory] == ["l2", "llc", "dram"]
    assert rates == sorted(rates, reverse=True)
    # Memory's roof is the faster of a copy and a sum: an operator that only reads must not beat it.
    assert machine.bandwidth == 5e10
    assert any("67 times slower" in note for note in machine.notes)


def test_measuring_here_takes_seconds_and_gives_what_a_cpu_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "SECONDS_A_CEILING", 0.05)
    monkeypatch.setattr(detect, "COPY_BYTES", 32 << 20)
    machine = detect.cpu(measure_again=True)
    assert machine.kind == "cpu"
    assert machine.name
    assert 1e8 < machine.bandwidth < 2e13
    for figure in machine.peaks.values():
        assert 1e7 < figure.value < 1e16
        assert figure.source.kind == "measured"
    assert 1e-8 < machine.overheads.floor.value < 1e-2
    assert machine.limits.sms.value >= 1


def test_an_apple_machine_says_how_many_cores_its_gpu_has(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"ioreg": '  | "gpu-core-count" = 30\n', "sysctl": "Apple M3 Max\n"}
    monkeypatch.setattr(detect, "_said", lambda *command: said[command[0]])
    described = detect.apple()
    assert (described.name, described.sms) == ("Apple M3 Max", 30)


def test_a_command_that_is_not_there_says_nothing() -> None:
    assert detect._said("no-such-command-here") == ""

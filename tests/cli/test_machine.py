"""`ridgepole machine` as a shell sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ridgepole.machine import catalog, writing
from ridgepole.machine.measured import Measured, build
from ridgepole.machine.model import Figure, MemoryLevel, Source

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def machine(own_home: Path, tmp_path: Path) -> Command:
    def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ridgepole", "machine", *args],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=240,
            env={**os.environ, "RIDGEPOLE_HOME": str(own_home), **env},
        )

    return run


def test_a_folder_as_output_is_refused_before_the_measuring(machine: Command, tmp_path: Path) -> None:
    (tmp_path / "x.toml").mkdir()
    done = machine("measure", "-o", "x.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ridgepole: x.toml cannot be written: it is a folder\n"


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_list_shows_every_machine_with_whole_figures(machine: Command, width: int) -> None:
    done = machine("list", COLUMNS=str(width))
    assert (done.returncode, done.stderr) == (0, "")
    assert "…" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= width
    row = next(line for line in done.stdout.splitlines() if line.startswith("H100 SXM"))
    assert row.split() == ["H100", "SXM", "80.0", "3,350", "989", "67.0", "295", "132", "high"]
    for name in catalog.load():
        assert all(word in done.stdout for word in name.split())


def test_the_list_as_json_has_every_figure_with_its_source(machine: Command) -> None:
    document = json.loads(machine("list", "--json").stdout)
    assert document["schema"] == 1
    assert [m["name"] for m in document["machines"]] == list(catalog.load())
    for each in document["machines"]:
        for figure in each["figures"].values():
            assert figure["value"] > 0 or (each["kind"] == "cpu" and figure["value"] == 0)
            assert figure["unit"]
            assert figure["source"].split(":")[0] in ("datasheet", "measured", "derived", "assumed")


@pytest.mark.parametrize("width", [80, 120])
def test_a_machine_is_shown_with_ridges_ladder_and_sources(machine: Command, width: int) -> None:
    done = machine("show", "H100", COLUMNS=str(width))
    assert done.returncode == 0
    assert "…" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= width
    lines = done.stdout.splitlines()
    assert lines[0] == "H100 SXM · NVIDIA Hopper 9.0 · high confidence"
    assert ["tensor", "bfloat16", "989", "TFLOP/s", "295", "FLOP/B"] in [line.split() for line in lines]
    ladder = next(line for line in lines if line.startswith("registers "))
    assert "262 kB/SM" in ladder and "34.6 MB" in ladder and "305,176x" in ladder
    assert any(line.startswith("dram (HBM3)") and "3.35 TB/s" in line for line in lines)
    assert "cuda_occupancy.h" in done.stdout


def test_a_machine_as_json_is_what_is_shown(machine: Command) -> None:
    document = json.loads(machine("show", "mi300x", "--json").stdout)
    assert document["name"] == "MI300X"
    assert document["memory_kind"] == "HBM3"
    assert document["ridge"]["tensor bfloat16"] == pytest.approx(1307.4 / 5.3)
    assert document["figures"]["dram bandwidth"]["value"] == 5.3e12


@pytest.mark.parametrize("name", ["h20", "rtx 2080", "nothing", "", "h100.toml"])
def test_an_unknown_machine_is_one_line_and_exit_2(machine: Command, name: str) -> None:
    done = machine("show", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ridgepole: ")
    assert done.stderr.count("\n") == 1


def test_a_broken_file_of_the_users_is_named_by_every_verb_that_needs_machines(
    machine: Command, own_home: Path, tmp_path: Path
) -> None:
    (own_home / "machines").mkdir()
    (own_home / "machines" / "mine.toml").write_text("machine = [3]")
    for args in (["list"], ["show", "h100"]):
        done = machine(*args)
        assert (done.returncode, done.stdout) == (2, "")
        assert "mine.toml" in done.stderr and done.stderr.count("\n") == 1
    assert machine("show", "h100", RIDGEPOLE_HOME=str(tmp_path / "other")).returncode == 0


def test_doctor_tries_each_thing_and_says_so_on_stdout_alone(machine: Command, own_home: Path) -> None:
    pytest.importorskip("torch")
    (own_home / "machines").mkdir()
    (own_home / "machines" / "mine.toml").write_text("machine = [3]")
    done = machine("doctor", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["torch"]["ok"] and checks["CPU profiler"]["ok"]
    assert "cpu_op" in checks["CPU profiler"]["detail"]
    assert checks["machine files"]["ok"] is False
    assert "mine.toml" in checks["machine files"]["detail"]
    assert all(check["fix"] for check in checks.values() if check["ok"] is False)


def test_two_machines_are_compared_with_the_verdict_first(machine: Command) -> None:
    done = machine("compare", "h100", "h200", COLUMNS="100")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("On H200 SXM, against H100 SXM: memory-bound work 1.43x")
    document = json.loads(machine("compare", "h100", "h200", "--json").stdout)
    assert [each["name"] for each in document["machines"]] == ["H100 SXM", "H200 SXM"]
    assert document["ratios"]["dram bandwidth"] == pytest.approx(4.8 / 3.35)


@pytest.mark.parametrize("names", [("h100", "h20x"), ("", "h100"), ("h100", "missing.toml")])
def test_comparing_with_a_machine_that_is_none_is_one_line_and_exit_2(machine: Command, names: tuple[str, str]) -> None:
    done = machine("compare", *names)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ridgepole: ") and done.stderr.count("\n") == 1


def test_a_measured_machine_is_listed_as_such_and_compared_by_its_own_name(machine: Command, own_home: Path) -> None:
    base = catalog.find("h200")
    here = Source("measured", "a test, 2026-12-01")
    levels = {"dram": MemoryLevel("dram", "device", None, Figure(4.2e12, "B/s", here), None)}
    writing.write(build(base, Measured(levels=levels)), own_home / "machines" / "h200.toml")
    rows = [line.split() for line in machine("list").stdout.splitlines()]
    assert [row[-1] for row in rows if row[:3] == ["H200", "SXM", "measured"]] == ["measured"]
    assert next(row for row in rows if row[:2] == ["H200", "SXM"] and row[-1] != "measured")[-1] == "high"
    assert machine("show", "h200").stdout.splitlines()[0].startswith("H200 SXM · NVIDIA")
    assert "measured on H200 SXM, 2026-12-01" in machine("show", "h200-measured").stdout.splitlines()[0]
    assert "87.5 % of its bandwidth" in machine("compare", "h200", "h200-measured").stdout

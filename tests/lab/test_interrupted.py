"""An experiment that something ends midway keeps what it measured, says in one line what ended it, and exits so."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ridgepole.errors import BadInput
from ridgepole.kernels.device import Device, Refused
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import Stopped, conduct_at
from ridgepole.lab.experiment import Column, Experiment, Row
from ridgepole.lab.journal import Journal
from ridgepole.machine import detect

PATIENCE = 60.0
"""Seconds until two rows must be in the journal, and until the process must have ended."""
LONG = """
import time
from ridgepole.lab import experiment

def rows(bench):
    for n in range(1000):
        yield {"n": n, "seconds": 1e-6 * (n + 1), "note": ""}
        time.sleep(0.02 if n < 3 else 60)

columns = (experiment.Column("n", "n", "count"), experiment.Column("seconds", "time", "s"))
experiment.register(experiment.Experiment("endless", "Does it end?", columns, rows, lambda rows, bench: "It goes on."))

from ridgepole.cli.main import main
main(["lab", "endless", *__import__("sys").argv[1:]])
"""
"""The command line with an experiment that never ends, so that a signal always comes midway."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which this CPU was measured, once for all."""
    made = tmp_path_factory.mktemp("measured")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RIDGEPOLE_HOME", str(made))
        detect.cpu()
    return made


@pytest.fixture
def home(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "home"))


def test_launch_interrupted_midway_prints_its_rows_and_what_ended_it(device: Device, home: Path) -> None:
    done = _signalled(["-m", "ridgepole", "lab", "launch", "--device", "cpu"], signal.SIGINT, home)
    kept = _kept(home)
    assert done.returncode == 130
    _one_line(done.stdout, "stopped: interrupted")
    assert str(next((home / "lab").glob("launch-*.jsonl"))) in "".join(done.stdout.split())
    assert len(kept) >= 2 and kept[0]["what"] == "empty" and kept[0]["method"] == "waited"
    assert "Traceback" not in done.stdout + done.stderr
    assert "A launch of nothing costs" in done.stdout


@pytest.mark.parametrize(
    ("sent", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_a_signal_ends_the_rows_and_not_the_report(
    device: Device, home: Path, sent: signal.Signals, code: int, said: str
) -> None:
    done = _signalled(["-c", LONG], sent, home)
    assert done.returncode == code
    _one_line(done.stdout, f"stopped: {said}")
    assert "It goes on." in done.stdout and "2.00 µs" in done.stdout
    assert [row["n"] for row in _kept(home)][:2] == [0, 1]
    assert done.stderr == ""


def test_json_of_an_interrupted_experiment_says_so_too(device: Device, home: Path) -> None:
    done = _signalled(["-c", LONG, "--json"], signal.SIGINT, home)
    document = json.loads(done.stdout)
    assert done.returncode == 130 and document["stopped"] == "interrupted"
    assert document["rows"] == _kept(home)


def test_a_killed_experiment_leaves_its_rows_in_the_journal(device: Device, home: Path) -> None:
    done = _signalled(["-c", LONG], signal.SIGKILL, home)
    assert done.returncode == -signal.SIGKILL and done.stdout == ""
    kept = _kept(home)
    assert len(kept) >= 2 and kept[1] == {"n": 1, "seconds": 2e-6, "note": ""}


def _signalled(arguments: Sequence[str], sent: signal.Signals, home: Path) -> subprocess.CompletedProcess[str]:
    """Runs python, and sends it a signal as soon as two rows are in the journal."""
    environment = {**os.environ, "RIDGEPOLE_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as child:
        try:
            until = time.monotonic() + PATIENCE
            while len(_lines(home)) < 2 and child.poll() is None:
                assert time.monotonic() < until, "no two rows came"
                time.sleep(0.01)
            child.send_signal(sent)
            out, err = child.communicate(timeout=PATIENCE)
        finally:
            child.kill()
    return subprocess.CompletedProcess(arguments, child.returncode, out, err)


def _lines(home: Path) -> list[str]:
    return [line for path in (home / "lab").glob("*.jsonl") for line in path.read_text().splitlines(keepends=True)]


def _kept(home: Path) -> list[dict[str, object]]:
    """The journal's rows, whole every one."""
    lines = _lines(home)
    assert all(line.endswith("\n") for line in lines)
    return [json.loads(line) for line in lines]


def _one_line(text: str, said: str) -> None:
    assert [line for line in text.splitlines() if line.startswith("stopped:")] == [
        f"{said}; what was measured until then is above"
    ]


def _experiment(error: BaseException | None, rows: int, meaning: BaseException | None = None) -> Experiment:
    """One that gives `rows` rows, then raises."""

    def measured(bench: Bench) -> Iterator[Row]:
        for n in range(rows):
            yield {"n": n}
        if error is not None:
            raise error

    def meant(rows: Sequence[Row], bench: Bench) -> str:
        if meaning is not None:
            raise meaning
        return f"{len(rows)} rows"

    return Experiment("ends", "Does it end?", (Column("n", "n", "count"),), measured, meant)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (Stopped(), "ended by SIGTERM"),
        (Refused("the GPU: no room for 8 B more"), "the GPU: no room for 8 B more"),
        (MemoryError(), "memory ran out"),
        (
            RuntimeError("CUDA out of memory. Tried to allocate 20 GiB.\nMore"),
            "memory ran out (CUDA out of memory. Tri",
        ),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you"),
            "memory ran out ([enforce fail]",
        ),
        (RuntimeError("CUDA error: an illegal memory access was encountered\nCUDA"), "CUDA error: an illegal memory"),
        (ZeroDivisionError("division by zero"), "a bug in ridgepole: ZeroDivisionError: division by zero"),
    ],
)
def test_whatever_ends_the_rows_is_said_in_one_line_beside_those_there_are(
    bench: Bench, error: BaseException, said: str
) -> None:
    kept: list[Row] = []
    result = conduct_at(bench, _experiment(error, 2), kept.append)
    assert result.stopped.startswith(said) and "\n" not in result.stopped
    assert result.rows == tuple(kept) == ({"n": 0}, {"n": 1}) and result.meaning == "2 rows"


def test_an_interruption_before_the_first_row_says_that_nothing_was_measured(bench: Bench) -> None:
    result = conduct_at(bench, _experiment(KeyboardInterrupt(), 0))
    assert result.rows == () and result.meaning == "nothing was measured" and result.stopped == "interrupted"


def test_memory_that_runs_out_before_the_first_row_is_the_users_error_in_one_line(bench: Bench) -> None:
    with pytest.raises(BadInput, match=r"^memory ran out \(CUDA out of memory"):
        conduct_at(bench, _experiment(RuntimeError("CUDA out of memory\nand more"), 0))


def test_a_bug_before_the_first_row_stays_one(bench: Bench) -> None:
    with pytest.raises(ZeroDivisionError):
        conduct_at(bench, _experiment(ZeroDivisionError(), 0))


def test_a_bug_is_shown_with_its_traceback_where_that_is_asked_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIDGEPOLE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        conduct_at(bench, _experiment(ZeroDivisionError(), 2))


def test_an_interruption_while_the_meaning_is_worked_out_keeps_the_rows(bench: Bench) -> None:
    result = conduct_at(bench, _experiment(None, 2, meaning=KeyboardInterrupt()))
    assert len(result.rows) == 2 and result.stopped == "interrupted" and "interrupted" in result.meaning


def test_what_an_experiment_holds_is_let_go_of_before_its_report(bench: Bench) -> None:
    ended: list[str] = []

    def rows(bench: Bench) -> Iterator[Row]:
        try:
            yield {"n": 0}
            yield {"n": 1}
        finally:
            ended.append("child")

    def keep(row: Row) -> None:
        if row["n"] == 1:
            raise KeyboardInterrupt

    def meaning(rows: Sequence[Row], bench: Bench) -> str:
        return f"ended: {', '.join(ended)}"

    result = conduct_at(bench, replace(_experiment(None, 0), rows=rows, meaning=meaning), keep)
    assert result.meaning == "ended: child" and len(result.rows) == 2


def test_a_second_sigterm_does_not_cost_the_report(bench: Bench) -> None:
    def rows(bench: Bench) -> Iterator[Row]:
        yield {"n": 0}
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PATIENCE)

    def meaning(rows: Sequence[Row], bench: Bench) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return "still said"

    before = signal.getsignal(signal.SIGTERM)
    result = conduct_at(bench, replace(_experiment(None, 0), rows=rows, meaning=meaning))
    assert result.stopped == "ended by SIGTERM" and result.meaning == "still said"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_journal_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "lab").write_text("a file where the folder should be")
    journal = Journal(tmp_path / "lab", "launch")
    journal.keep({"n": 1})
    assert journal.path is None
    journal.keep({"n": 2})


def test_each_row_is_on_disk_when_keep_returns(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "lab", "launch")
    assert journal.path is not None and not journal.path.exists()
    for n in range(3):
        journal.keep({"n": n, "note": "µs"})
        rows = [json.loads(line) for line in journal.path.read_text(encoding="utf-8").splitlines()]
        assert rows == [{"n": i, "note": "µs"} for i in range(n + 1)]

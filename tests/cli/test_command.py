"""The command as a shell sees it: exit codes, streams, one line for what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def ridgepole(own_home: Path, tmp_path: Path) -> Command:
    def run(*args: str, cwd: Path = tmp_path, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ridgepole", *args],
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=240,
            env={**os.environ, "RIDGEPOLE_HOME": str(own_home), **env},
        )

    return run


def imported(code: str) -> set[str]:
    out = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(out.stdout.split())


@pytest.mark.parametrize("code", ["import ridgepole", "import ridgepole.cli.main as m; m.command.get_help"])
def test_importing_us_loads_nothing_heavy(code: str) -> None:
    assert not {"torch", "numpy", "pandas", "transformers", "rich", "msgspec"} & imported(code)


def test_help_of_every_verb_does_without_torch() -> None:
    verbs = ["why", "price", "machine", "show", "lab", "completion"]
    code = (
        "from click.testing import CliRunner\nfrom ridgepole.cli.main import command\n"
        f"for verb in {verbs!r}:\n    assert CliRunner().invoke(command, [verb, '--help']).exit_code == 0, verb"
    )
    assert "torch" not in imported(code)


def test_an_experiment_runs_without_a_stderr(own_home: Path) -> None:
    code = (
        "import sys; sys.stderr = None\nfrom ridgepole import api\nfrom ridgepole.errors import BadInput\n"
        "def asked(name, **options): raise BadInput('it was asked')\napi.lab = asked\n"
        "from ridgepole.cli.main import main\nmain(['lab', 'latency'])"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 2


BAD: Sequence[tuple[Sequence[str], str]] = [
    (["why", "nothing.json"], "no file"),
    (["why", "nothing"], "no file and not module:function"),
    (["why", "."], "directory"),
    (["why", os.devnull], "not a regular file"),
    (["lab", "-o", "x.json"], "none is named"),
    (["lab", "numbers", "-o", "x.json"], "none is named"),
    (["lab", "latency", "--device", "opencl:"], "no device is called 'opencl:'"),
    (["price", "x * 2", "--on", "h100"], "x"),
    (["price", "x *", "-i", "x=4:f32", "--on", "h100"], ""),
    (["price", "x * 2", "-i", "x=4xq:f32", "--on", "h100"], "4xq"),
    (["price", "x * 2", "-i", "x=4:f33", "--on", "h100"], "f33"),
    (["price", "x * 2", "-i", "x=4:f32", "--on", "h1000000"], "h1000000"),
    (["machine", "show", "gtx-nothing"], "gtx-nothing"),
    (["show", "7"], "no run 7"),
    (["price", "x", "-i", "x=4:f32", "--on", "h100", "--on", "h200", "-o", "a.html"], "one machine and one mode"),
]


@pytest.mark.parametrize(("args", "said"), BAD, ids=[" ".join(args) for args, _ in BAD])
def test_bad_input_is_one_line_and_exit_2(ridgepole: Command, args: Sequence[str], said: str) -> None:
    done = ridgepole(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("ridgepole: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_bad_usage_is_exit_2(ridgepole: Command) -> None:
    assert ridgepole("why").returncode == 2
    mistyped = ridgepole("wyh")
    assert mistyped.returncode == 2
    assert "did you mean why?" in mistyped.stderr
    assert ridgepole("price", "x", "--mode", "fast").returncode == 2


def test_an_output_with_an_unknown_ending_is_refused_before_the_work(
    ridgepole: Command, shared: Callable[[str], Path]
) -> None:
    done = ridgepole("why", "-o", "out.pdf", str(shared("traces/h100-bert-small.json.gz")))
    assert done.returncode == 2
    assert "names no format" in done.stderr


def test_a_trace_is_explained_saved_and_shown_again(
    ridgepole: Command, shared: Callable[[str], Path], tmp_path: Path
) -> None:
    done = ridgepole("why", str(shared("traces/h100-bert-small.json.gz")))
    assert done.returncode == 0, done.stderr
    assert "H100 SXM" in done.stdout.splitlines()[0]
    assert "launched one by one" in done.stdout
    assert "saved as run 1" in done.stdout
    again = ridgepole("show", "1", "-o", "r.html", "-o", "r.json", "-o", "r.csv", "-o", "r.md", "-o", "r.trace.json")
    assert again.returncode == 0, again.stderr
    document = json.loads((tmp_path / "r.json").read_text())
    assert sum(document["buckets"].values()) == document["window_ns"]
    assert document["buckets"]["overhead"] > 0.85 * document["window_ns"]
    assert json.loads((tmp_path / "r.trace.json").read_text())["traceEvents"]


def test_the_json_of_a_trace_is_the_only_thing_on_stdout(ridgepole: Command, shared: Callable[[str], Path]) -> None:
    done = ridgepole("why", "--json", str(shared("traces/mi300x-bert-small.json.gz")))
    document = json.loads(done.stdout)
    assert document["devices"][0]["busy_ns"] == 390_748
    assert document["machine"]["name"] == "MI300X"


def test_colour_only_where_it_is_wanted(ridgepole: Command, shared: Callable[[str], Path]) -> None:
    trace = str(shared("traces/h100-bert-small.json.gz"))
    assert "\x1b[" not in ridgepole("why", trace).stdout
    assert "\x1b[" not in ridgepole("why", trace, NO_COLOR="1", FORCE_COLOR="1").stdout
    assert "\x1b[" in ridgepole("why", trace, FORCE_COLOR="1").stdout


def test_a_reader_that_leaves_is_no_error(ridgepole: Command, own_home: Path) -> None:
    line = f"{sys.executable} -m ridgepole machine list | head -1"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env={**os.environ, "RIDGEPOLE_HOME": str(own_home)}
    )
    assert done.returncode == 0
    assert done.stderr == ""


def test_a_home_that_cannot_be_written_does_not_lose_the_report(
    ridgepole: Command, shared: Callable[[str], Path], tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = ridgepole("why", str(shared("traces/h100-bert-small.json.gz")), RIDGEPOLE_HOME=str(blocked))
    assert done.returncode == 0
    assert "was not saved" in done.stderr
    assert "launched one by one" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(ridgepole: Command, shell: str) -> None:
    done = ridgepole("completion", shell)
    assert done.returncode == 0, done.stderr
    assert "_RIDGEPOLE_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ridgepole price --on h20", "plain,h200"),
        ("ridgepole machine show mi300", "plain,mi300x"),
        ("ridgepole why tra", "file,tra"),
        ("ridgepole why train.py --config conf", "file,conf"),
    ],
)
def test_completion_offers_machines_and_files(typed: str, offered: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_RIDGEPOLE_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", "from ridgepole.cli.main import main; main()"],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
    )
    assert offered in done.stdout.splitlines()

"""What a hostile file, shell, script or expression gets: the report, or one clear line. Never a traceback."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ridgepole as rp
from ridgepole import session
from ridgepole.errors import RidgepoleError
from ridgepole.report import chrome, csvdoc, html, jsondoc, markdown
from ridgepole.report import text as terminal
from tests.timeline.written import HOPPER, kernel, launch, op, put, text

DIMS = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}
EVENTS = [
    event
    for i in range(40)
    for event in (
        op("aten::conv2d" if i % 2 else "aten::mm", 40 * i, 9, **DIMS),
        launch(i + 1, 40 * i + 3),
        kernel(i + 1, 40 * i + 10, 20, name="nchwToNhwcKernel" if i % 2 else "sm90_xmma_gemm_f32f32"),
    )
]


def shell(home: Path, line: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Runs `line`, in which $R is the command, as a shell would."""
    return subprocess.run(
        ["bash", "-c", line.replace("$R", f"{sys.executable} -m ridgepole")],
        capture_output=True,
        timeout=120,
        cwd=home,
        env={**os.environ, "RIDGEPOLE_HOME": str(home), **env},
    )


def one_line(done: subprocess.CompletedProcess[bytes]) -> None:
    assert done.returncode == 2, done
    assert done.stderr.startswith(b"ridgepole: ") and done.stderr.count(b"\n") == 1, done.stderr
    assert b"a bug" not in done.stderr


# Files

ODD: list[Any] = [
    None, "x", [], {}, -1, 1e400, float("nan"), "1e400", 10**30, -(10**30), True, 0, "", [[]], {"a": {}}, "\x1b[31m",
    1.5, 2**63, "</script>", [None, "a", {}], "stream 7", [[1, 2], ["a"]], [[-1, -2]], [[10**20] * 2], ["c10::Half"],
    [0, 0], "\u202e", 1e300,
]  # fmt: skip


def _swap(document: Any, dice: random.Random) -> None:
    events = document["traceEvents"]
    for _ in range(dice.choice([1, 10, 100])):
        event = dice.choice(events)
        if not isinstance(event, dict):
            continue
        args = event.get("args")
        inside = args if isinstance(args, dict) and args and dice.random() < 0.6 else event
        key = dice.choice(list(inside))
        if isinstance(inside[key], list) and inside[key] and dice.random() < 0.5:
            inside[key][dice.randrange(len(inside[key]))] = copy.deepcopy(dice.choice(ODD))
        else:
            inside[key] = copy.deepcopy(dice.choice(ODD))
    if dice.random() < 0.2:
        events[dice.randrange(len(events))] = copy.deepcopy(dice.choice(ODD))
    if dice.random() < 0.2:
        document[dice.choice(list(document))] = copy.deepcopy(dice.choice(ODD))


def mutated(body: bytes, dice: random.Random) -> bytes:
    """`body` cut, with bits flipped, with pieces gone or doubled, or with values of other types."""
    kind = dice.choice(["cut", "flip", "piece", "swap", "swap", "swap"])
    if kind == "cut":
        return body[: dice.randrange(len(body))]
    if kind == "swap":
        document = json.loads(body)
        _swap(document, dice)
        return json.dumps(document).encode()
    changed = bytearray(body)
    for _ in range(dice.choice([1, 10, 200])):
        at = dice.randrange(len(changed))
        if kind == "flip":
            changed[at] ^= 1 << dice.randrange(8)
        else:
            size = dice.choice([1, 5, 300])
            changed[at:at] = changed[at // 2 : at // 2 + size] if dice.random() < 0.5 else b""
            del changed[at : at + size // 2]
            changed = changed or bytearray(b"{")
    return bytes(changed)


def _held_to_its_word(path: Path) -> bool:
    """Whether the file is explained; it is that with all reports whole, or refused in one line."""
    try:
        run = rp.read(path).run
    except RidgepoleError as error:
        assert "\n" not in str(error)
        return False
    for device in run.devices:
        assert sum(device.buckets.values()) == run.window_ns
        assert min(device.buckets.values()) >= 0
    for shown in (terminal.render(run), markdown.render(run), csvdoc.render(run), html.render(run)):
        assert "\x1b" not in shown and "\u202e" not in shown
    json.loads(chrome.render(run))
    json.loads(jsondoc.render(run))
    return True


@pytest.mark.parametrize("seed", range(5))
def test_mutated_hand_made_traces_are_explained_or_refused(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    body = text(*EVENTS, deviceProperties=[HOPPER])
    explained = sum(_held_to_its_word(put(tmp_path, mutated(body, dice))) for _ in range(60))
    assert explained > 20


@pytest.mark.parametrize("name", ["mi300x-torch-compile", "a100-alexnet", "cpu-only"])
def test_mutated_real_traces_are_explained_or_refused(tmp_path: Path, shared: Callable[[str], Path], name: str) -> None:
    dice = random.Random(name)
    body = gzip.decompress(shared(f"traces/{name}.json.gz").read_bytes())
    for i in range(20):
        path = put(tmp_path, mutated(body, dice), "trace.json.gz" if i % 4 == 0 else "trace.json")
        if i % 8 == 0:
            path.write_bytes(path.read_bytes()[: dice.randrange(20, path.stat().st_size)])
        _held_to_its_word(path)


def test_a_name_of_ten_megabytes_and_ten_thousand_lists_in_lists_do_no_harm(tmp_path: Path) -> None:
    run = rp.read(put(tmp_path, text(kernel(1, 0, 10, name="k" * 10_000_000), kernel(2, 20, 10)))).run
    assert run.busiest.events == 2
    deep = b"[" * 10_000 + b"]" * 10_000
    broken = text(kernel(1, 0, 10, grid=7), kernel(2, 20, 10)).replace(b'"grid": 7', b'"grid": ' + deep)
    assert rp.read(put(tmp_path, broken)).run.busiest.events == 2
    with pytest.raises(rp.BadInput):
        rp.read(put(tmp_path, b"[" * 100_000))


def test_a_device_with_an_escape_for_a_number_is_written_out(tmp_path: Path) -> None:
    bell = kernel(1, 0, 10, device="\x1b[31m", stream="\x07", pid="\x1b]0;owned\x07")
    run = rp.read(put(tmp_path, text(bell, kernel(2, 0, 10)))).run
    for shown in (terminal.render(run), markdown.render(run), csvdoc.render(run), html.render(run)):
        assert not {"\x1b", "\x07"} & set(shown)


def test_a_trace_beside_that_is_another_programs_is_said_to_be(tmp_path: Path) -> None:
    path = put(tmp_path, text(*EVENTS, deviceProperties=[HOPPER]))
    other = put(tmp_path, text(op("aten::mm", 0, 9), launch(1, 3), kernel(1, 9, 9, name="other")), "other.json")
    assert any("same program" in note for note in rp.read(path, beside=str(other)).run.notes)
    assert not any("same program" in note for note in rp.read(path, beside=str(path)).run.notes)


def test_a_saved_run_that_was_tampered_with_is_refused(tmp_path: Path) -> None:
    run = rp.read(put(tmp_path, text(*EVENTS, deviceProperties=[HOPPER]))).run
    number = session.save(run)
    assert session.load(str(number)) == run
    whole = json.loads(msgspec.json.encode({"of": "run", "run": run}))
    for key, value in {"devices": [], "window_ns": "x", "schema": 99, "track": {"lane": [5]}}.items():
        document = {**whole, "run": {**whole["run"], key: value}}
        path = put(tmp_path, json.dumps(document).encode(), "saved.json.gz")
        with pytest.raises(rp.BadInput, match="not a run that this version can read"):
            session.load(str(path))


# Shells


def test_odd_streams_and_variables_lose_neither_the_report_nor_the_exit_code(own_home: Path, tmp_path: Path) -> None:
    why = f"$R why --no-save {put(tmp_path, text(*EVENTS, deviceProperties=[HOPPER]))}"
    assert b"H100 SXM" in shell(own_home, why, LC_ALL="C", PYTHONIOENCODING="ascii").stdout
    latin = shell(own_home, why, PYTHONIOENCODING="latin-1")
    assert latin.returncode == 0 and b"overhead" in latin.stdout
    odd = shell(own_home, why, COLUMNS="²", TERM="dumb", RIDGEPOLE_HOME="~nobody-of-that-name/x")
    assert odd.returncode == 0 and b"overhead" in odd.stdout
    for closed in ("<&- >&-", "<&- >&- 2>&-"):
        assert shell(own_home, f"{why} {closed}").returncode == 0
    if Path("/dev/full").exists():
        one_line(shell(own_home, f"{why} >/dev/full"))
        assert shell(own_home, "$R why nowhere.json 2>/dev/full").returncode == 2


def test_an_output_that_cannot_be_written_does_not_take_the_report_along(own_home: Path, tmp_path: Path) -> None:
    (tmp_path / "taken.json").mkdir()
    path = put(tmp_path, text(*EVENTS, deviceProperties=[HOPPER]), "t.json")
    done = shell(own_home, f"$R why -o {tmp_path}/taken.json -o {tmp_path}/fine.md {path}")
    assert done.returncode == 2
    assert b"H100 SXM" in done.stdout and (tmp_path / "fine.md").exists()
    assert b"taken.json cannot be written" in done.stderr


def test_what_the_user_typed_does_not_act_on_the_terminal(own_home: Path) -> None:
    done = shell(own_home, "$R why $'./\\e[31mred'")
    one_line(done)
    assert b"\x1b" not in done.stderr
    long = shell(own_home, f"$R price x --on {'h' * 50_000} -i x=4:f32")
    one_line(long)
    assert len(long.stderr) < 3000


# Programs


def test_a_script_that_closes_and_moves_everything_keeps_its_code_and_its_report(
    own_home: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "away").mkdir()
    script = tmp_path / "odd.py"
    script.write_text(
        "import os, sys, torch\nx = torch.randn(64, 64)\nfor _ in range(20):\n    x = torch.tanh(x @ x)\n"
        f"os.chdir({str(tmp_path / 'away')!r})\nsys.setrecursionlimit(120)\n"
        "sys.stdout.close()\nsys.stderr = open('log', 'w')\nsys.stderr.write('mine')\nsys.exit(9)\n"
    )
    done = shell(own_home, f"$R why -o report.json {script}")
    assert done.returncode == 9, done.stderr
    assert b"aten::mm" in done.stderr
    assert (own_home / "report.json").exists()
    assert (tmp_path / "away" / "log").read_text() == "mine"


def test_an_interrupted_script_ends_as_interrupted_with_its_report(own_home: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "loops.py"
    script.write_text(
        "import time, torch\nx = torch.randn(64, 64)\nfor _ in range(20):\n    x = torch.tanh(x @ x)\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "ridgepole", "why", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "RIDGEPOLE_HOME": str(own_home)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"KeyboardInterrupt" in said and b"aten::mm" in said
    assert b"recording" not in said.split(b"KeyboardInterrupt")[0]  # the traceback shows none of our frames


def test_a_function_that_fails_is_told_as_the_users_own_error(own_home: Path) -> None:
    pytest.importorskip("torch")
    (own_home / "made.py").write_text("def step():\n    raise ValueError('mine')\n")
    (own_home / "broken.py").write_text("def step(\n")
    done = shell(own_home, "$R why made.py:step")
    one_line(done)
    assert b"ValueError: mine at made.py:2" in done.stderr
    one_line(shell(own_home, "$R why broken.py:step"))


@pytest.mark.parametrize(
    "text",
    [
        "x[99]", "x.view(3)", "x @ torch.ones(5, 5)", "1 / 0", "x.sum(dim=7)", "(" * 5000 + "x" + ")" * 5000,
        "__import__('sys').exit(x)", "raise x", "x.nope()", "", " ",
    ],
)  # fmt: skip
def test_an_expression_that_torch_or_python_refuses_is_one_line(text: str) -> None:
    pytest.importorskip("torch")
    from ridgepole import api

    inputs = ["x=4:f32"] if "x" in text and text != "1 / 0" else []
    with pytest.raises(rp.BadInput) as told:
        api.price_target(text, inputs, ["h100"], ["eager"])
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("text", ["x @ x", "x * 2", "torch.bmm(x[None], x[None])", "F.softmax(x, 0)"])
def test_a_result_of_no_elements_launches_nothing(text: str) -> None:
    pytest.importorskip("torch")
    from ridgepole import api

    price = api.price_target(text, ["x=0x0:f32"], ["h100"], ["eager"]).prices[0]
    assert (price.launches, price.gpu_seconds) == (0, 0.0)


def test_money_that_is_no_number_is_refused(own_home: Path) -> None:
    pytest.importorskip("torch")
    one_line(shell(own_home, "$R price 'x * 2' -i x=4:f32 --cost-per-hour nan"))


@pytest.mark.parametrize(
    "config",
    ["", "{", "[]", "{}", '{"model_type": 5}', '{"model_type": "nope"}', '{"model_type": "llama", "hidden_size": "x"}',
     '{"model_type": "llama", "num_attention_heads": 0}'],
)  # fmt: skip
def test_a_config_that_is_garbage_is_one_line(tmp_path: Path, config: str) -> None:
    pytest.importorskip("transformers")
    from ridgepole import api

    path = tmp_path / "config.json"
    path.write_text(config)
    with pytest.raises(RidgepoleError) as told:
        api.price_target(str(path), [], ["h100"], ["eager"])
    assert "\n" not in str(told.value)

"""The user's program is what it would have been without us, and what was recorded is kept (case 13)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DRIVE = Path(__file__).with_name("drive_record.py")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {
    "OMP_NUM_THREADS": "1"
}
TORCH = "import torch\nx = torch.ones(64, 64)\nfor _ in range(20): x = torch.tanh(x @ x)\n"


@dataclass
class Ran:
    code: int
    out: bytes
    err: bytes
    told: list[dict[str, Any]]

    @property
    def one(self) -> dict[str, Any]:
        assert len(self.told) == 1, self.told
        return self.told[0]


def plain(script: Path, *argv: str, stdin: bytes = b"") -> Ran:
    done = subprocess.run(
        [sys.executable, script.name, *argv],
        input=stdin,
        capture_output=True,
        cwd=script.parent,
        timeout=60,
        env=ENVIRONMENT,
    )
    return Ran(done.returncode, done.stdout, done.stderr, [])


def recorded(script: Path, *argv: str, stdin: bytes = b"", plan: str = "[3, 5, 2, 3]") -> Ran:
    told = script.parent / "told.jsonl"
    done = subprocess.run(
        [sys.executable, str(DRIVE), script.name, *argv],
        input=stdin,
        capture_output=True,
        cwd=script.parent,
        timeout=60,
        env={**ENVIRONMENT, "RECORDED": str(told), "PLAN": plan},
    )
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    return Ran(done.returncode, done.stdout, done.stderr, [json.loads(line) for line in lines])


def written(folder: Path, text: str, name: str = "script.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def test_a_script_sees_its_own_arguments_name_file_and_folder(tmp_path: Path) -> None:
    written(tmp_path, "value = 41 + 1\n", "neighbour.py")
    script = written(
        tmp_path,
        """
        import inspect, os, sys
        import neighbour
        def f(): pass
        print(__name__, __file__, __spec__, __package__, __doc__, sys.argv, sys.path[0], neighbour.value)
        print(sys.modules["__main__"].f is f, inspect.getsource(f), __builtins__.len([1]), sorted(globals()))
        if __name__ == "__main__":
            sys.exit(7)
        """,
    )
    was, now = plain(script, "a", "--json", "-x", "--", ""), recorded(script, "a", "--json", "-x", "--", "")
    assert (now.code, now.out, now.err) == (7, was.out, was.err)


def test_a_program_without_torch_keeps_its_exit_code_and_is_told_that_nothing_was_recorded(tmp_path: Path) -> None:
    now = recorded(written(tmp_path, "import sys; print('torch' in sys.modules); raise SystemExit(5)"))
    assert (now.code, now.out, now.err) == (5, b"False\n", b"")
    assert "no torch op was recorded" in now.one["error"]
    assert "\n" not in now.one["error"]


@pytest.mark.parametrize(
    ("ending", "code", "err"),
    [
        ("sys.exit()", 0, b""),
        ("sys.exit('out of cheese')", 1, b"out of cheese\n"),
        ("sys.exit(-1)", 255, b""),
        ("sys.exit(256 + 3)", 3, b""),
        ("raise SystemExit(None)", 0, b""),
    ],
)
def test_every_way_of_exiting_gives_the_same_code(tmp_path: Path, ending: str, code: int, err: bytes) -> None:
    now = recorded(written(tmp_path, f"import sys\n{ending}\n"))
    assert (now.code, now.err) == (code, err)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    try: 1 / 0\n    except ZeroDivisionError as e: raise KeyError('b') from e\nf()\n",
        "x = (\n",
        "raise BaseException('bare')\n",
        "import sys\nsys.excepthook = lambda *e: print('mine', e[1], e[2].tb_lineno)\nraise ValueError(3)\n",
    ],
)
def test_a_traceback_is_pythons_own_without_our_frames(tmp_path: Path, text: str) -> None:
    script = written(tmp_path, text)
    was, now = plain(script), recorded(script)
    assert (now.code, now.out, now.err) == (was.code, was.out, was.err)


def test_stdin_and_megabytes_of_output_pass_byte_for_byte(tmp_path: Path) -> None:
    script = written(
        tmp_path,
        TORCH
        + """
import sys
sys.stdout.buffer.write(sys.stdin.buffer.read())
for i in range(100_000): print(i, "a line of text that is long enough to matter")
sys.stderr.write("to stderr\\n")
""",
    )
    stdin = bytes(range(256)) * 4096
    was, now = plain(script, stdin=stdin), recorded(script, stdin=stdin)
    assert (now.code, now.out, now.err) == (was.code, was.out, was.err)
    assert len(now.out) > 5_000_000
    assert "aten::mm" in now.one["ops"]


def test_what_ran_before_an_exception_is_kept(tmp_path: Path) -> None:
    now = recorded(written(tmp_path, TORCH + "torch.ones(2) + torch.ones(3)\n"))
    assert now.code == 1
    assert b"RuntimeError: The size of tensor a" in now.err
    assert b"ridgepole" not in now.err
    assert now.one["ops"]


def test_what_ran_before_os_exit_is_kept_and_python_buffers_are_lost_as_ever(tmp_path: Path) -> None:
    script = written(tmp_path, TORCH + "import os\nprint('lost in the buffer')\nos._exit(3)\n")
    was, now = plain(script), recorded(script)
    assert (now.code, now.out, now.err) == (3, b"", b"") == (was.code, was.out, was.err)
    assert now.one["exit_code"] == 3
    assert "aten::tanh" in now.one["ops"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -15), (signal.SIGINT, 130)])
def test_what_ran_before_a_signal_is_kept(tmp_path: Path, number: signal.Signals, code: int) -> None:
    script = written(tmp_path, TORCH + "print('ready', flush=True)\nimport time\nwhile True: time.sleep(0.01)\n")
    told = tmp_path / "told.jsonl"
    process = subprocess.Popen(
        [sys.executable, str(DRIVE), script.name],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, "RECORDED": str(told)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.1)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert (b"KeyboardInterrupt" in err) == (number == signal.SIGINT)
    assert json.loads(told.read_text())["ops"]


def test_data_loader_workers_record_nothing_and_deliver_nothing(tmp_path: Path) -> None:
    script = written(
        tmp_path,
        """
        import os, torch, ridgepole
        from torch.utils.data import DataLoader, TensorDataset
        if __name__ == "__main__":
            data = TensorDataset(torch.arange(256.0).reshape(128, 2))
            total = 0.0
            for (batch,) in DataLoader(data, batch_size=4, num_workers=2):
                with ridgepole.step():
                    total += batch.sum().item()
            print(total, flush=True)
        """,
    )
    was, now = plain(script), recorded(script, plan="[3, 0, 1, 2]")
    assert (now.code, now.out, now.err) == (0, was.out, was.err)
    assert now.one["rule"] == "2 marked steps"


def test_a_forked_child_ends_by_itself_and_delivers_nothing(tmp_path: Path) -> None:
    script = written(
        tmp_path,
        """
        import atexit, os, torch
        torch.ones(3).sum()
        atexit.register(print, "at exit")
        child = os.fork()
        if child == 0:
            torch.ones(3).cumsum(0)
            raise SystemExit(9)
        print(os.waitpid(child, 0)[1] >> 8)
        """,
    )
    was, now = plain(script), recorded(script)
    assert (now.code, now.out, now.err) == (0, was.out, was.err)
    assert "aten::sum" in now.one["ops"]
    assert "aten::cumsum" not in now.one["ops"]


def test_subprocesses_are_not_recorded(tmp_path: Path) -> None:
    script = written(
        tmp_path,
        """
        import subprocess, sys
        code = "import sys, os; print('ridgepole' in sys.modules, os.environ.get('KINETO_LOG_LEVEL')); sys.exit(4)"
        sys.exit(subprocess.run([sys.executable, "-c", code]).returncode)
        """,
    )
    now = recorded(script)
    assert (now.code, now.out) == (4, b"False None\n")


def test_the_programs_own_profiler_works_and_its_trace_is_explained(tmp_path: Path) -> None:
    script = written(
        tmp_path,
        """
        import torch
        from torch.profiler import ProfilerActivity, profile, schedule
        x = torch.ones(64, 64)
        kept = []
        with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
                     on_trace_ready=lambda p: (kept.append(len(p.events())), p.export_chrome_trace("t.json"))) as p:
            for _ in range(6):
                x = torch.tanh(x @ x)
                p.step()
        print(kept)
        """,
    )
    was, now = plain(script), recorded(script)
    assert (now.code, now.out) == (0, was.out)
    assert b"Error" not in now.err
    assert (tmp_path / "t.json").stat().st_size > 1000
    assert now.one["steps"] == 2
    assert any("own torch profiler" in note for note in now.one["notes"])


def test_the_programs_own_profiler_is_used_where_it_exports_nothing(tmp_path: Path) -> None:
    script = written(
        tmp_path,
        TORCH
        + """
with torch.profiler.profile() as p:
    torch.cumsum(x, 0)
print(len(p.key_averages()))
""",
    )
    now = recorded(script)
    assert now.code == 0
    assert int(now.out) > 0
    assert "aten::cumsum" in now.one["ops"]


def test_a_missing_script_is_one_clear_line(tmp_path: Path) -> None:
    from ridgepole.errors import BadInput
    from ridgepole.timeline.record import record_script

    with pytest.raises(BadInput, match="no such file"):
        record_script(str(tmp_path / "none.py"))
    with pytest.raises(BadInput, match="folder"):
        record_script(str(tmp_path))


def test_functions_are_found_by_file_and_by_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ridgepole.errors import BadInput
    from ridgepole.timeline.recording.program import load_function

    path = written(
        tmp_path, "class A:\n    @staticmethod\n    def go(): return 3\ndef f(): return 2\nn = 1\n", "found_it.py"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    assert load_function(f"{path}:f")() == 2
    assert load_function("found_it:A.go")() == 3
    for text, why in [
        (f"{path}:n", "has no function"),
        (f"{path}:", "names no function"),
        ("nowhere.py:f", "no such file"),
        ("no_such_module_here:f", "no module named"),
    ]:
        with pytest.raises(BadInput, match=why):
            load_function(text)
    sys.modules.pop("found_it", None)

"""What the README shows is what the tool prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHOWN = re.findall(r"```\n\$ (ridgepole [^\n]+)\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def test_the_readme_shows_real_runs() -> None:
    assert len(SHOWN) >= 2


@pytest.mark.parametrize(("command", "printed"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_shown_run_prints_what_is_shown(command: str, printed: str, own_home: Path) -> None:
    if " price " in command:
        pytest.importorskip("torch")
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", command)][1:]
    words = [str(ROOT / "examples/traces" / w) if w.endswith(".json.gz") else w for w in words]
    done = subprocess.run(
        [sys.executable, "-m", "ridgepole", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "RIDGEPOLE_HOME": str(own_home), "COLUMNS": "100"},
        check=True,
    )
    said = [line for line in done.stdout.splitlines() if not line.startswith("saved as run")]
    shown = printed.splitlines()
    assert said[: len(shown)] == shown

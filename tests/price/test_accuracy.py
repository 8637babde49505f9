"""bench/accuracy.py counts errors as it says, and refuses what is no file of measured calls."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ridgepole.errors import BadInput

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def accuracy() -> ModuleType:
    pytest.importorskip("ridgepole.machine.catalog")
    spec = importlib.util.spec_from_file_location("accuracy", ROOT / "bench/accuracy.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["accuracy"] = module
    spec.loader.exec_module(module)
    return module


def test_errors_are_summed_up_by_size_and_by_sign(accuracy: ModuleType) -> None:
    figures = accuracy.summary([0.1, -0.1, 0.3, -0.2, 0.0])
    assert figures["n"] == 5
    assert figures["median"] == pytest.approx(0.1)
    assert figures["mean"] == pytest.approx(0.14)
    assert figures["p90"] == pytest.approx(0.3)
    assert figures["bias"] == pytest.approx(0.02)


@pytest.mark.parametrize("line", ["[]", "{", '{"call": "a", "inputs": {}}', '{"call": "a", "inputs": 3, "seconds": 1}'])
def test_a_line_that_is_no_measured_call_is_named(accuracy: ModuleType, tmp_path: Path, line: str) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(BadInput, match="line 1 is not a measured call"):
        accuracy.read([path])


def test_rows_that_failed_to_be_measured_are_left_out(accuracy: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(json.dumps({"call": "a", "inputs": {}, "error": "out of memory"}) + "\n\n")
    assert accuracy.read([path]) == []


def test_a_measured_call_goes_the_ordinary_way(accuracy: ModuleType) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("ridgepole.work.targets.expression")
    from ridgepole.machine import catalog

    call = {
        "family": "linear",
        "call": "F.linear(x, w)",
        "inputs": {
            "x": {"shape": [4, 4096], "dtype": "bfloat16"},
            "w": {"shape": [4096, 4096], "dtype": "bfloat16"},
        },
        "seconds": 13.41e-6,
    }
    row = accuracy.priced(call, catalog.find("h200"))
    assert abs(row.error) < 0.3
    assert row.roofline < row.priced
    document = accuracy.report([row], accuracy.Counter())
    assert document["overall"]["n"] == 1 and set(document["families"]) == {"linear"}

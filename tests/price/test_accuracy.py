"""bench/accuracy.py counts errors as it says, and refuses what is no file of measured calls."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ridgepole.errors import BadInput
from ridgepole.machine import catalog
from ridgepole.machine.model import Figure, Machine, Source

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def accuracy() -> ModuleType:
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


PUBLIC = ROOT / "bench/truth/public"


def held_out(accuracy: ModuleType, gpu: str, machine: Machine) -> list[Any]:
    rows = accuracy.read([PUBLIC / f"{gpu}-heldout.jsonl"])
    return [accuracy.priced(row, machine) for row in rows]


@pytest.mark.parametrize(("gpu", "name"), [("a100", "a100-sxm-80gb"), ("h100", "h100-sxm")])
def test_shapes_that_nothing_was_fitted_to_are_priced_within_the_bars(
    accuracy: ModuleType, gpu: str, name: str
) -> None:
    document = accuracy.report(held_out(accuracy, gpu, catalog.find(name)), accuracy.Counter())
    assert document["overall"]["n"] == 250
    assert document["overall"]["median"] <= 0.12
    assert document["overall"]["mean"] <= 0.16
    assert all(family["median"] <= 0.25 for family in document["families"].values())
    # The range is meant to hold 80 % of what is measured.
    assert document["overall"]["in_range"] >= 0.8


def test_a_gpu_that_nobody_measured_is_priced_from_its_relatives(accuracy: ModuleType) -> None:
    left_out = json.loads((ROOT / "bench/truth/left_out.json").read_text())
    errors = []
    for gpu, name in (("a100", "a100-sxm-80gb"), ("h100", "h100-sxm"), ("h200", "h200")):
        machine = catalog.find(name)
        assert gpu not in left_out[gpu]["fitted_to"]
        constants = {k: Figure(v, "", Source("measured", "others")) for k, v in left_out[gpu]["constants"].items()}
        others = replace(machine, tuning={**machine.tuning, **constants})
        errors += [row.error for row in held_out(accuracy, gpu, others)]
    assert accuracy.summary(errors)["median"] <= 0.15


def test_fit_and_held_out_rows_share_no_shape() -> None:
    def shapes(path: Path) -> set[str]:
        found = set()
        for line in path.read_text().splitlines():
            inputs = json.loads(line)["inputs"]
            shape = inputs["w"]["shape"] if "w" in inputs else [inputs["q"]["shape"][1:], inputs["k"]["shape"][1:]]
            found.add(json.dumps(shape))
        return found

    fit = set().union(*(shapes(path) for path in PUBLIC.glob("*-fit.jsonl")))
    held = set().union(*(shapes(path) for path in PUBLIC.glob("*-heldout.jsonl")))
    assert len(fit) > 100 and len(held) > 100
    assert not fit & held

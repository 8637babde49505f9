"""Two machines side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ridgepole.machine import catalog
from ridgepole.machine.measured import Measured, build
from ridgepole.machine.model import Figure, Machine, MemoryLevel, Source
from ridgepole.report import compare_text


def test_an_h200_moves_bytes_faster_than_an_h100_and_multiplies_no_faster() -> None:
    one, other = catalog.find("h100"), catalog.find("h200")
    said = compare_text.verdict(one, other)
    assert "memory-bound work 1.43x" in said and "bf16 products 1.00x" in said
    known = {pair.name: pair.ratio for pair in compare_text.pairs(one, other)}
    assert known["dram bandwidth"] == pytest.approx(4.8 / 3.35)


def test_a_figure_that_one_lacks_is_a_dash_without_a_ratio() -> None:
    shown = compare_text.render(catalog.find("v100 sxm2 32gb"), catalog.find("h100"))
    line = next(line for line in shown.splitlines() if line.startswith("peak tensor float8"))
    assert " - " in line and "x" not in line.split("PFLOP/s")[1]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_figures_stay_whole_in_a_narrow_terminal(width: int) -> None:
    shown = compare_text.render(catalog.find("h100"), catalog.find("mi300x"), width=width)
    assert "3.35 TB/s d" in shown and "5.30 TB/s d" in shown
    assert "…" not in shown


def test_every_ratio_is_the_second_over_the_first() -> None:
    document = compare_text.document(catalog.find("h100"), catalog.find("mi300x"))
    first, second = ({**m["figures"], **_ridges(m["ridge"])} for m in document["machines"])
    assert {"dram bandwidth", "ridge tensor bfloat16", "l2 capacity", "clock", "dispatch"} <= set(document["ratios"])
    for name, ratio in document["ratios"].items():
        assert ratio == pytest.approx(second[name]["value"] / first[name]["value"])


def _ridges(points: dict[str, float]) -> dict[str, dict[str, float]]:
    return {f"ridge {name}": {"value": value} for name, value in points.items()}


def test_a_machine_compared_with_itself_is_the_same_throughout() -> None:
    machine = catalog.find("b200")
    assert all(pair.ratio == 1.0 for pair in compare_text.pairs(machine, machine))


def measured_h200() -> Machine:
    here = Source("measured", "a test, 2026-12-01")
    peaks = {("tensor", "bfloat16"): Figure(7.97e14, "FLOP/s", here)}
    levels = {"dram": MemoryLevel("dram", "device", None, Figure(4.2e12, "B/s", here), None)}
    return build(catalog.find("h200"), Measured(peaks=peaks, levels=levels))  # type: ignore[arg-type]


def test_a_measurement_beside_its_datasheet_is_what_it_reached_whichever_is_first() -> None:
    said = compare_text.verdict(catalog.find("h200"), measured_h200())
    assert said == compare_text.verdict(measured_h200(), catalog.find("h200"))
    assert "87.5 % of its bandwidth" in said and "80.6 % of its peak tensor bfloat16" in said
    assert "float8" not in said  # which was not measured


def test_a_datasheet_beside_a_measurement_is_said_to_be_no_fair_match() -> None:
    assert "of which kernels reach less" in compare_text.verdict(catalog.find("h100"), measured_h200())
    assert "of which" not in compare_text.verdict(catalog.find("h100"), catalog.find("h200"))


def test_assumed_launch_costs_make_no_verdict() -> None:
    said = compare_text.verdict(catalog.find("h100"), catalog.find("h200"))
    assert "launch-bound work not known (what H100 SXM takes to launch is assumed)" in said
    one = catalog.find("h200")
    assert "launch-bound work 1.00x" in compare_text.verdict(one, replace(one, name="another"))


def test_every_figure_shows_where_it_is_from() -> None:
    shown = compare_text.render(catalog.find("h200"), measured_h200())
    row = next(line for line in shown.splitlines() if line.startswith("dram bandwidth"))
    assert row.split() == ["dram", "bandwidth", "4.80", "TB/s", "d", "4.20", "TB/s", "m", "0.88x"]


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(1.0, "1.00x"), (0.0113, "0.011x"), (3.4e-5, "0.000034x"), (0.0996, "0.100x"), (1234.5, "1,234x"), (0.0, "0.00x")],
)
def test_a_ratio_keeps_two_digits_however_small(ratio: float, shown: str) -> None:
    assert compare_text._ratio(ratio) == shown


def test_a_long_name_folds_and_no_figure_does() -> None:
    one = replace(catalog.find("h100"), name="AMD EPYC 9V84 96-Core Processor with a tail measured")
    shown = compare_text.render(one, catalog.find("h200"), width=60)
    assert "3.35 TB/s d" in shown and "…" not in shown
    assert max(map(len, shown.splitlines())) <= 60

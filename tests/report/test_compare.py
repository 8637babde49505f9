"""Two machines side by side."""

from __future__ import annotations

import pytest

from ridgepole.machine import catalog
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


@pytest.mark.parametrize("width", [72, 80, 120])
def test_figures_stay_whole_in_a_narrow_terminal(width: int) -> None:
    shown = compare_text.render(catalog.find("h100"), catalog.find("mi300x"), width=width)
    assert "3.35 TB/s d" in shown and "5.30 TB/s d" in shown
    assert "…" not in shown


def test_every_ratio_is_the_second_over_the_first() -> None:
    document = compare_text.document(catalog.find("h100"), catalog.find("mi300x"))
    first, second = (m["figures"] for m in document["machines"])
    assert document["ratios"]
    for name, ratio in document["ratios"].items():
        assert ratio == pytest.approx(second[name]["value"] / first[name]["value"])


def test_a_machine_compared_with_itself_is_the_same_throughout() -> None:
    machine = catalog.find("b200")
    assert all(pair.ratio == 1.0 for pair in compare_text.pairs(machine, machine))

"""Every experiment runs for real on the CPU, and what it says holds on any machine."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import conduct_at, find
from ridgepole.lab.experiment import Result, Row, experiments
from ridgepole.report import lab_text


def run(bench: Bench, results: dict[str, Result], name: str) -> Result:
    if name not in results:
        results[name] = conduct_at(bench, find(name))
    return results[name]


@pytest.mark.parametrize("name", sorted(experiments.all()))
def test_it_runs_on_the_cpu_or_says_why_it_has_no_meaning_there(
    name: str, bench: Bench, results: dict[str, Result]
) -> None:
    result = run(bench, results, name)
    assert not result.stopped
    assert result.meaning
    json.dumps(lab_text.document(result), allow_nan=False)
    shown = lab_text.render(result)
    assert result.question in shown
    keys = {column.key for column in result.columns}
    assert any(keys & set(row) for row in result.rows) or not result.rows
    if result.rows:
        assert result.picture is None or result.picture.series
    else:
        assert not result.notes


@pytest.mark.parametrize("name", sorted(experiments.all()))
def test_one_row_alone_has_a_meaning(name: str, bench: Bench, results: dict[str, Result]) -> None:
    result, experiment = run(bench, results, name), find(name)
    for row in result.rows:
        assert experiment.meaning([row], bench)
        experiment.picture([row], bench)


def values(rows: Sequence[Row], key: str, **wanted: object) -> list[float]:
    return [
        float(row[key] or 0)
        for row in rows
        if row.get(key) is not None and all(row.get(k) == v for k, v in wanted.items())
    ]


def test_a_load_from_memory_is_many_times_one_from_the_first_cache(bench: Bench, results: dict[str, Result]) -> None:
    rows = run(bench, results, "latency").rows
    chased = values(rows, "seconds", level=None)
    assert chased[-1] > 5 * chased[0]


def test_rungs_match_float64_and_registers_beat_naive(bench: Bench, results: dict[str, Result]) -> None:
    rows = run(bench, results, "ladder").rows
    assert max(values(rows, "relative")) < 1e-5
    largest = max(values(rows, "n"))
    naive, registers = (
        values(rows, "rate", rung=name, n=int(largest)) for name in ("matmul_naive", "matmul_registers")
    )
    assert not naive or registers[0] > naive[0]


def test_one_kernel_beats_two_where_memory_is_the_limit(bench: Bench, results: dict[str, Result]) -> None:
    rows = run(bench, results, "fusion").rows
    largest = int(max(values(rows, "elements")))
    two = values(rows, "seconds", way="two kernels", elements=largest)[0]
    one = values(rows, "seconds", way="one kernel", elements=largest)[0]
    assert one < two


def test_more_blocks_never_take_less_time(bench: Bench, results: dict[str, Result]) -> None:
    times = values(run(bench, results, "waves").rows, "seconds", what="staircase")
    assert times[-1] > times[0]

"""Utilisation: what nvidia-smi's lines say, that its process always ends, and what a busy core says of work done."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.kernels.device import Device
from ridgepole.lab import utilisation
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import conduct_at, find
from ridgepole.lab.experiment import Row
from ridgepole.lab.experiments import overhead
from ridgepole.lab.experiments.overhead import Load
from ridgepole.lab.utilisation import Sample, Watch
from ridgepole.lab.values import amount
from tests.lab.made import gpu_bench

OVERHEAD = find("overhead")


def load(name: str, reported: float | None, busy: float, of_peak: float, note: str = "") -> Row:
    return {"load": name, "reported": reported, "busy": busy, "of_peak": of_peak, "note": note}


H200_ROWS: list[Row] = [
    load("tiny, back to back", 0.97, 0.125, 2.1e-6), load("tiny, 5.0 % of the time", 0.6, 0.05, 8e-7),
    load("large product", 1.0, 0.995, 0.8),
]  # fmt: skip


def test_a_line_is_a_share_hertz_and_watts() -> None:
    assert utilisation.parse("97, 1980, 310.25\n", 5.0) == Sample(5.0, 0.97, 1.98e9, 310.25)
    assert utilisation.parse("[N/A], 1980, [N/A]", 5.0) == Sample(5.0, None, 1.98e9, None)


@given(st.text())
def test_what_is_no_line_of_three_is_no_sample(text: str) -> None:
    sample = utilisation.parse(text, 0.0)
    assert (sample is None) == (text.count(",") != 2)


TALKING = "import time\nwhile True:\n    print('97, 1980, 310.25', flush=True)\n    time.sleep(0.05)"
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + TALKING


def pretended(tmp_path: Path, text: str) -> Sequence[str]:
    """A command that stands in for nvidia-smi."""
    script = tmp_path / "smi.py"
    script.write_text(text)
    return (sys.executable, str(script))


def test_samples_are_read_while_the_block_runs_and_the_process_ends_with_it(tmp_path: Path) -> None:
    with Watch("0", pretended(tmp_path, TALKING)) as watch:
        child = watch._child
        start = time.perf_counter()
        time.sleep(0.3)
    assert not watch.why and watch.samples[0].utilisation == 0.97
    assert child is not None and child.poll() is not None
    # Those that look back on what ran before the start do not count.
    assert watch.between(start, time.perf_counter()) == ()
    assert watch.between(start - 2 * utilisation.SETTLES, time.perf_counter())


def test_an_interruption_ends_the_process_too(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Watch("0", pretended(tmp_path, TALKING)) as watch:
        child = watch._child
        raise KeyboardInterrupt
    assert child is not None and child.poll() is not None


def test_a_process_that_does_not_end_when_told_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utilisation, "ENDS", 0.2)
    with Watch("0", pretended(tmp_path, DEAF)) as watch:
        child = watch._child
    assert child is not None and child.poll() is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('No devices were found')", "nvidia-smi says: No devices were found"),
        ("", "nvidia-smi ended and said nothing"),
    ],
)
def test_where_nvidia_smi_gives_no_samples_it_is_said_why(tmp_path: Path, text: str, said: str) -> None:
    with Watch("0", pretended(tmp_path, text)) as watch:
        assert watch.why == said


def test_without_nvidia_smi_nothing_is_raised() -> None:
    with Watch("0", ("no-such-command",)) as watch:
        assert watch.why.startswith("nvidia-smi cannot be run")


def test_host_work_fills_the_time_to_the_next_call() -> None:
    ran = overhead.run(Load("paced", lambda: None, 1e-6, 0.0, "float32", period=1e-3), 0.1, lambda: None)
    assert 10 <= ran.calls <= 102


def test_without_host_work_calls_follow_each_other_until_the_time_is_up() -> None:
    calls: list[int] = []
    ran = overhead.run(Load("quick", lambda: calls.append(1), 1e-6, 0.0, "float32"), 0.05, lambda: None)
    assert ran.calls == len(calls) > 500 and ran.wall >= 0.05


def test_the_meaning_sets_what_is_reported_against_what_ran_and_what_was_reached(device: Device) -> None:
    said = OVERHEAD.meaning(H200_ROWS, gpu_bench(device))
    assert said.startswith(
        "Tiny kernels, back to back: nvidia-smi says 97.0 %, kernels ran 12.5 % of the time and the arithmetic is one "
        "part in 476,190 of the peak."
    )
    assert "One large product after another: nvidia-smi says 100 %, kernels ran 99.5 % of the time" in said
    assert said.endswith("not that it did much: look at the share of the roofs.")


def test_a_low_figure_is_not_said_to_be_a_high_one(device: Device) -> None:
    rows = [load("tiny, back to back", 0.13, 0.125, 2.1e-6)]
    assert "So a high figure" not in OVERHEAD.meaning(rows, gpu_bench(device))


def test_no_utilisation_and_a_rate_above_the_peak_are_left_out(device: Device) -> None:
    rows = [load("large product", None, 0.99, 1.4, "rate above the physical limit: not believed")]
    assert OVERHEAD.meaning(rows, gpu_bench(device)) == (
        "One large product after another: nvidia-smi says nothing, kernels ran 99.0 % of the time."
    )


def test_where_nothing_reports_utilisation_it_is_refused(device: Device) -> None:
    assert "nvidia-smi" in OVERHEAD.refuse(gpu_bench(device))


def test_a_core_is_as_busy_with_tiny_ops_as_with_products_that_do_far_more(bench: Bench) -> None:
    rows = conduct_at(bench, OVERHEAD).rows
    tiny, worked, product = rows
    assert all(amount(row, "reported") > 0.2 for row in rows)
    assert amount(product, "of_peak") > 5 * amount(tiny, "of_peak") > 5 * amount(worked, "of_peak") > 0
    assert all(overhead.STANDS_IN in str(row["note"]) and row["busy"] is None for row in rows)

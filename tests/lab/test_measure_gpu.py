"""What `machine measure` makes of a GPU's experiments: figures as an H200 gave them, 2026-12-01."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ridgepole.kernels.device import Device
from ridgepole.lab import host, measure, peaks
from ridgepole.lab.experiment import Row
from ridgepole.lab.peaks import Peak
from ridgepole.machine import catalog, detect
from ridgepole.machine.model import Machine
from tests.lab.made import GPUBench, Pretended

BANDWIDTH: tuple[Row, ...] = (
    {"kernel": "add", "where": "memory", "bytes": 3.2e9, "method": "queued", "bandwidth": 3.43e12, "note": ""},
    {"kernel": "add_wide", "where": "memory", "bytes": 3.2e9, "method": "queued", "bandwidth": 4.37e12, "note": ""},
    {"kernel": "wrong", "where": "memory", "bytes": 3.2e9, "method": "queued", "bandwidth": 9e12, "note": "above"},
    {"kernel": "add_wide", "where": "in cache", "bytes": 2.5e7, "method": "graph", "bandwidth": 7.1e12, "note": ""},
)
LATENCY: tuple[Row, ...] = tuple(
    {"level": None, "bytes": size, "seconds": cycles / 1.98e9, "cycles": cycles, "note": ""}
    for size, cycles in (
        (1 << 12, 35.0), (1 << 14, 36.0), (1 << 20, 283.0), (1 << 22, 283.0), (1 << 24, 283.0),
        (1 << 27, 680.0), (1 << 28, 686.0), (1 << 30, 690.0),
    )
)  # fmt: skip


@pytest.fixture
def measured(device: Device, monkeypatch: pytest.MonkeyPatch) -> Machine:
    rows = {"bandwidth": BANDWIDTH, "latency": LATENCY}
    monkeypatch.setattr(measure, "_rows", lambda bench, name, notes: rows[name])
    found: Sequence[Any] = (
        Peak("tensor", "bfloat16", 7.7e14, 4096, None),
        Peak("tensor", "float8", None, 4096, None, "this torch has none"),
    )
    monkeypatch.setattr(peaks, "measure", lambda bench: iter(found))
    costs = host.HostCosts(5.2e-6, 3.1e-6, 1e-6, 2.6e-7, 1.5e-5, 1021)
    monkeypatch.setattr(host, "measure", lambda bench: costs)
    monkeypatch.setattr(detect, "local", lambda: catalog.find("h200"))
    pretended = Pretended(device, lambda block, registers, shared: 1)
    pretended.backend = "cuda"
    return measure.measure(GPUBench(pretended), full=True)


def test_each_level_has_the_bandwidth_and_the_latency_that_were_measured(measured: Machine) -> None:
    dram, l2, first = (measured.level(name) for name in ("dram", "l2", "shared"))
    assert dram is not None and l2 is not None and first is not None
    assert dram.bandwidth is not None and dram.bandwidth.value == 4.37e12
    assert dram.latency is not None and dram.latency.value == pytest.approx(686 / 1.98e9, rel=0.02)
    assert l2.bandwidth is not None and l2.bandwidth.value == 7.1e12
    assert l2.latency is not None and l2.latency.value == pytest.approx(283 / 1.98e9)
    assert first.latency is not None and first.latency.value == pytest.approx(35.5 / 1.98e9, rel=0.02)
    for level in (dram, l2):
        assert level.bandwidth is not None and level.bandwidth.source.kind == "measured"


def test_a_rate_that_is_not_believed_is_no_figure(measured: Machine) -> None:
    assert measured.bandwidth < 9e12


def test_what_was_not_measured_is_said_and_kept(measured: Machine) -> None:
    assert measured.peaks["tensor", "float8"] == catalog.find("h200").peaks["tensor", "float8"]
    assert any("tensor float8 was not measured: this torch has none" in note for note in measured.notes)


def test_what_it_costs_to_run_at_all_is_measured(measured: Machine) -> None:
    over = measured.overheads
    assert (over.dispatch.value, over.launch.value, over.queue_depth.value) == (5.2e-6, 3.1e-6, 1021)
    assert all(getattr(over, name).source.kind == "measured" for name in over.__dataclass_fields__)


def test_floor_and_gap_are_medians_of_what_was_recorded() -> None:
    floor, gap = host.floor_and_gap([(0, 900), (1200, 1000), (2500, 1100)])
    assert floor == pytest.approx(1e-6) and gap == pytest.approx(3e-7)
    assert host.floor_and_gap([(0, 900), (900, 900)])[1] == host.LEAST

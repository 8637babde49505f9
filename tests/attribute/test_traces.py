"""Real profiler traces: the ledger adds up, and the causes of idle are what the traces are known to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgepole.attribute.attribute import attribute
from ridgepole.attribute.causes import CAUSES
from ridgepole.attribute.ledger import Ledger
from ridgepole.errors import BadInput
from ridgepole.machine.match import match
from ridgepole.timeline.reader import read

TRACES = Path(__file__).resolve().parents[2] / "../shared/traces"
FILES = sorted(path.name for path in TRACES.glob("*.json.gz")) or ["none"]


def ledger(name: str) -> Ledger:
    path = TRACES / name
    if not path.exists():
        pytest.skip(f"no {name} in ../shared/traces")
    timeline = read(path)
    return attribute(timeline, match(timeline.devices[0]).machine)


def shares(name: str) -> dict[str, float]:
    """Share of the window by cause, of the busiest device."""
    found = ledger(name)
    return {entry.cause: entry.ns / found.window_ns for entry in found.busiest.entries}


@pytest.mark.parametrize("name", FILES)
def test_every_devices_ledger_adds_up_to_the_window(name: str) -> None:
    try:
        found = ledger(name)
    except BadInput:
        pytest.skip(f"{name} is no trace")
    assert found.devices
    for device in found.devices:
        assert sum(entry.ns for entry in device.entries) == found.window_ns
        assert min(entry.ns for entry in device.entries) > 0
        assert {entry.cause for entry in device.entries} <= set(CAUSES)
        assert 0 < device.resident_ns <= found.window_ns
        # Rows hold every kernel's own time, so overlap can only make them longer than the busy time.
        assert sum(row.ns for row in device.ops) >= device.resident_ns


def test_an_eager_decode_step_waits_for_its_cpu() -> None:
    causes = shares("h200-llama3-8b-decode-b1-ctx128.eager.json.gz")
    assert causes["dispatch"] + causes["python"] + causes["launch"] > 0.8
    assert causes["dispatch"] > causes["python"] > causes["gap"]


def test_the_same_step_as_a_graph_does_not() -> None:
    causes = shares("h200-llama3-8b-decode-b1-ctx128.graph.json.gz")
    assert causes["memory"] > 0.6
    assert causes["graph-gap"] > causes.get("gap", 0.0)
    assert "dispatch" not in causes


def test_a_loop_that_loads_in_its_own_process_waits_for_its_data() -> None:
    assert shares("h100-owlv2.json.gz")["data-loading"] > 0.4


def test_first_steps_spend_their_time_allocating() -> None:
    assert shares("rtx2080ti-linear.json.gz")["allocator"] > 0.4


def test_ranks_that_wait_for_each_other_are_stalled_not_launch_bound() -> None:
    causes = shares("two-ranks-0.json.gz")
    assert causes["stall"] + causes["exposed-communication"] > 0.5
    assert causes.get("gap", 0.0) < 0.05


def test_a_trace_without_ops_does_not_say_what_python_did() -> None:
    causes = shares("mi210-gpu-only.json.gz")
    assert "python" not in causes and "dispatch" not in causes
    assert causes["idle-unrecorded-cpu"] > 0.05

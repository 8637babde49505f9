"""Timing: each way named, the median of several, what a call truly takes."""

from __future__ import annotations

import time

import pytest

from ridgepole.kernels.device import Device
from ridgepole.lab import timing
from ridgepole.lab.bench import gate

NAP = 2e-3


def nap(i: int) -> None:
    """A call the host's clock can hold: the device's own work is none."""
    end = time.perf_counter() + NAP
    while time.perf_counter() < end:
        pass


@pytest.mark.parametrize("way", [timing.waited, timing.queued])
def test_a_call_of_two_milliseconds_takes_two_milliseconds(way: object, device: Device) -> None:
    found = way(device, nap, quick=True)  # type: ignore[operator]
    assert NAP <= found.low <= found.seconds <= found.high
    assert found.low < 3 * NAP
    assert found.method == way.__name__  # type: ignore[attr-defined]
    assert found.samples >= timing.LEAST_SAMPLES


def test_each_call_is_given_its_own_number(device: Device) -> None:
    seen: list[int] = []
    device.elapsed(seen.append, 5)
    assert seen == [0, 1, 2, 3, 4]


def test_a_device_without_graphs_says_none(device: Device) -> None:
    assert timing.graphed(device, nap, count=1) is None


def test_a_rate_above_the_limit_is_not_believed() -> None:
    assert gate(4.9e12, 4.8e12, "bandwidth").startswith("bandwidth above the physical limit")
    assert gate(4.7e12, 4.8e12, "bandwidth") == "" == gate(4.7e12, None, "bandwidth")

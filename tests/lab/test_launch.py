"""Launches: the parts of one, which kernels starve a device, how deep its queue is; by hand, then for real."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from ridgepole.kernels.device import Device, Run
from ridgepole.lab import launch_costs, running_ahead
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import conduct_at, find
from ridgepole.lab.experiment import Row
from ridgepole.lab.experiments import launch
from ridgepole.lab.launch_costs import Call
from ridgepole.lab.running_ahead import Depth, Spinning
from ridgepole.lab.values import amount
from tests.lab.made import GPUBench, Pretended, gpu_bench

LAUNCH = find("launch")
LONG = 0.15


def call(microseconds: float, spread: float = 0.02) -> Call:
    seconds = microseconds * 1e-6
    return Call(seconds, seconds * (1 - spread / 2), seconds * (1 + spread / 2))


def ahead(device: float, wall: float) -> Row:
    """A row of kernels queued back to back, microseconds."""
    return {"part": launch.AHEAD, "what": "spin", "method": "queued", "seconds": wall * 1e-6,
            "device_seconds": device * 1e-6, "idle": max(0.0, 1 - device / wall), "note": ""}  # fmt: skip


def empty(what: str, method: str, microseconds: float) -> Row:
    return {"part": launch.EMPTY, "what": what, "method": method, "seconds": microseconds * 1e-6, "note": ""}


KNOWN = {"python": call(0.05), "kernel": call(3.5), "replay": call(2.6), "torch": call(7.4)}


def part(of: launch_costs.Part) -> Row:
    return {
        "part": launch.PARTS,
        "what": f"of {of.call}: {of.name}",
        "method": "less",
        "seconds": of.seconds,
        "note": "",
    }


H200_ROWS: list[Row] = [
    empty(launch.ONE_BY_ONE, "waited", 14.2), empty(launch.ONE_BY_ONE, "queued", 3.6),
    empty(launch.SIDE, "CPU", 3.5), empty(launch.GRAPHED, "graph", 1.1),
    *map(part, launch_costs.parts(KNOWN)),
    ahead(1.2, 3.6), ahead(2, 3.6), ahead(5, 5.1), ahead(50, 50.2),
    {"part": launch.QUEUE, "what": "launches", "count": 1021, "note": "the next one waited 140 ms for room"},
]  # fmt: skip


def test_the_parts_of_a_launch_add_up_to_it() -> None:
    parts = launch_costs.parts(KNOWN)
    told = {(part.call, part.name): part.seconds for part in parts}
    assert told[launch_costs.KERNEL, launch_costs.DRIVER] == pytest.approx(2.55e-6)
    assert told[launch_costs.KERNEL, launch_costs.BINDING] == pytest.approx(0.9e-6)
    assert told[launch_costs.TORCH, launch_costs.DISPATCH] == pytest.approx(4.8e-6)
    for name, whole in ((launch_costs.KERNEL, 3.5e-6), (launch_costs.TORCH, 7.4e-6)):
        assert sum(part.seconds or 0 for part in parts if part.call == name) == pytest.approx(whole)


def test_a_difference_within_the_noise_is_not_told() -> None:
    parts = launch_costs.parts({"python": call(0.05), "kernel": call(2.7, 0.2), "replay": call(2.6, 0.2)})
    assert next(part for part in parts if part.name == launch_costs.BINDING).seconds is None


def test_without_graphs_ours_and_the_drivers_are_one_part() -> None:
    names = [part.name for part in launch_costs.parts({"python": call(0.05), "kernel": call(1.2)})]
    assert names == [launch_costs.PYTHON, launch_costs.BOTH]
    assert launch_costs.parts({"kernel": call(1.2)}) == ()


def test_rounds_fill_a_kernel_of_a_given_length_and_are_never_none() -> None:
    spinning = Spinning(a_round=2e-9, around=1.2e-6, by_graph=True)
    assert spinning.rounds(11.2e-6) == 5000
    assert spinning.rounds(1e-6) == 1


@dataclass
class Queue:
    """A device with a queue of `room` launches behind a kernel that takes LONG, and a clock that only it moves."""

    room: int
    a_launch: float = 4e-6
    hiccups: dict[int, float] = field(default_factory=dict)
    now: float = 100.0
    done: float = 0.0
    held: int = 0

    def synchronize(self) -> None:
        self.now = max(self.now, self.done)
        self.held = 0

    def long(self, i: int) -> None:
        self.done = self.now + LONG

    def short(self, i: int) -> None:
        self.now += self.a_launch + self.hiccups.get(i, 0.0)
        if self.now < self.done and self.held >= self.room:
            self.now = self.done + self.a_launch
        self.held += 1

    def depth(self) -> Depth:
        clock: Callable[[], float] = lambda: self.now  # noqa: E731
        return running_ahead.launches(cast("Device", self), self.long, self.short, LONG, clock)


def test_the_depth_is_the_launches_made_before_one_waited_for_the_long_kernel() -> None:
    found = Queue(1021).depth()
    assert found.launches == 1021 and found.blocked == pytest.approx(LONG - 1021 * 4e-6, rel=1e-3)


def test_a_launch_that_the_system_held_up_is_no_full_queue() -> None:
    assert Queue(1021, hiccups={7: 0.005, 300: 0.030}).depth().launches == 1021


def test_a_queue_without_an_end_is_said_to_hold_more_than_was_tried() -> None:
    assert Queue(10**9).depth() == Depth(running_ahead.MOST_LAUNCHES, None)


def test_a_queue_too_slow_to_fill_within_the_long_kernel_is_not_called_full() -> None:
    found = Queue(10**9, a_launch=50e-6).depth()
    assert found.blocked is None and found.launches == pytest.approx(running_ahead.STILL_RUNNING * LONG / 50e-6, abs=2)


def test_the_cpu_keeps_ahead_from_the_first_kernel_that_fills_the_device() -> None:
    dry, full = launch.crossing(H200_ROWS)
    assert dry is not None and full is not None
    assert dry["device_seconds"] == pytest.approx(2e-6) and full["device_seconds"] == pytest.approx(5e-6)


def test_one_late_kernel_beyond_the_crossing_moves_nothing() -> None:
    dry, full = launch.crossing([*H200_ROWS, ahead(100, 180)])
    assert dry is not None and full is not None and dry["device_seconds"] == pytest.approx(2e-6)


def test_the_meaning_has_cost_parts_starving_and_depth(device: Device) -> None:
    said = LAUNCH.meaning(H200_ROWS, gpu_bench(device))
    assert said.startswith(
        "A launch of nothing costs 3.50 µs of CPU time, 3.60 µs a kernel queued back to back, 1.10 µs a kernel in a "
        "graph, 14.2 µs when each is waited for; expected "
    )
    assert "Of torch.mul's CPU time: 50.0 ns Python's call, 2.55 µs runtime, driver, 4.80 µs dispatcher." in said
    assert "Kernels of 5.00 µs keep the device busy. One of 2.00 µs comes only every 3.60 µs" in said
    assert "idles 44.4 % of the time, since the CPU takes 3.50 µs to issue one" in said
    assert said.endswith("The CPU may run 1,021 launches ahead; then a launch waits for the device.")


def test_a_hand_over_slower_than_the_cpu_is_not_laid_at_its_door(device: Device) -> None:
    rows = [empty(launch.SIDE, "CPU", 1.1), ahead(2, 8), ahead(50, 51)]
    assert "though the CPU issues one every 1.10 µs: the rest is handing it over" in LAUNCH.meaning(
        rows, gpu_bench(device)
    )


def test_the_picture_has_the_kernels_the_wall_clock_and_what_was_predicted(device: Device) -> None:
    picture = LAUNCH.picture(H200_ROWS, gpu_bench(device))
    assert picture is not None
    wall, _, predicted = picture.series
    assert wall.y == pytest.approx((3.6e-6, 3.6e-6, 5.1e-6, 50.2e-6))
    assert predicted.y == pytest.approx((3.5e-6, 3.5e-6, 5e-6, 50e-6))
    assert LAUNCH.picture(H200_ROWS[:3], gpu_bench(device)) is None


@pytest.fixture(scope="module")
def rows(bench: Bench) -> tuple[Row, ...]:
    return conduct_at(bench, LAUNCH).rows


def test_waiting_for_each_call_costs_more_than_making_it(rows: tuple[Row, ...]) -> None:
    waited = next(row for row in rows if row["method"] == "waited")
    side = next(row for row in rows if row["what"] == launch.SIDE)
    assert amount(waited, "seconds") > 0.8 * amount(side, "seconds") > 0


def test_what_has_no_meaning_on_a_cpu_says_so(rows: tuple[Row, ...]) -> None:
    assert "no graphs" in str(next(row["note"] for row in rows if row["method"] == "graph"))
    assert "nothing is launched" in str(next(row["note"] for row in rows if "torch.mul out=" in str(row["what"])))
    assert not any(f"of {launch_costs.TORCH}:" in str(row["what"]) for row in rows)


def test_longer_kernels_take_longer_and_none_is_quicker_than_its_rounds(rows: tuple[Row, ...]) -> None:
    kernels = [row for row in rows if row["part"] == launch.AHEAD]
    assert len(kernels) == len(launch.QUICK_SIZES)
    assert amount(kernels[-1], "seconds") > amount(kernels[0], "seconds")
    assert all(amount(row, "seconds") > 0.3 * amount(row, "device_seconds") > 0 for row in kernels)
    assert all(0 <= amount(row, "idle") < 1 for row in kernels)


class WithGraphs(Pretended):
    """A device whose graphs are loops."""

    def graph(self, run: Run, count: int) -> Callable[[], None]:
        def replay() -> None:
            for i in range(count):
                run(i)

        return replay


def test_where_there_are_graphs_each_row_of_them_is_measured(device: Device) -> None:
    made: Any = WithGraphs(device, lambda block, registers, shared: 1)
    result = conduct_at(GPUBench(made, quick=True), LAUNCH)
    assert not result.stopped
    whats = [str(row["what"]) for row in result.rows]
    assert sum(row["method"] == "graph" for row in result.rows) == 1
    assert "graph of one, the CPU's side" in whats
    assert f"of {launch_costs.TORCH}: {launch_costs.DISPATCH}" in whats
    assert f"of {launch_costs.KERNEL}: {launch_costs.BINDING}" in whats
    assert not any(row["note"] == launch.BY_ROUNDS for row in result.rows)

"""Occupancy: predictions held to a driver that agrees, to one that does not, and to one that says nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ridgepole.kernels.device import Device, Refused
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import conduct_at, find
from ridgepole.lab.experiment import Row
from ridgepole.lab.experiments import occupancy
from ridgepole.lab.experiments.occupancy import Predicted, little, predict
from ridgepole.machine import catalog
from tests.lab.made import H200, Pretended, gpu_bench

OCCUPANCY = find("occupancy")
H200_MACHINE = catalog.find("h200")


def agrees(block: int, registers: int, shared: int) -> int:
    return predict(H200_MACHINE, block, registers, shared).blocks


@pytest.fixture(autouse=True)
def little_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few elements that the whole of it takes a moment."""
    monkeypatch.setattr(occupancy, "QUICK_ELEMENTS", 1 << 14)
    monkeypatch.setattr(Bench, "sets", lambda self, held: 2)


def test_a_thread_of_128_registers_leaves_16_warps() -> None:
    assert predict(H200_MACHINE, 128, 128, 0) == Predicted(4, 16, 0.25, "registers")
    assert predict(H200_MACHINE, 1024, 32, 0) == Predicted(2, 64, 1.0, "threads")


def test_all_shared_memory_leaves_one_block_and_more_is_refused() -> None:
    assert predict(H200_MACHINE, 128, 16, H200.shared_per_block).blocks == 1
    assert predict(H200_MACHINE, 128, 16, H200.shared_per_block + 128).blocks == 0


def test_a_block_whose_registers_do_not_fit_is_no_block() -> None:
    found = predict(H200_MACHINE, 1024, 168, 0)
    assert found.blocks == 0 and found.limit == "" and "no block of 1024 threads" in found.why


def test_memory_wants_about_13_kilobytes_in_flight_on_each_sm() -> None:
    # 4.8 TB/s x 690 cycles / 1.98 GHz / 132.
    assert little(H200_MACHINE) == pytest.approx(4.8e12 * 690 / 1.98e9 / 132, rel=1e-3)


def test_a_cpu_has_no_occupancy_and_the_line_says_why(bench: Bench) -> None:
    result = conduct_at(bench, OCCUPANCY)
    assert not result.rows and "a core runs one work-group at a time".casefold() in result.meaning.casefold()


def test_a_driver_that_agrees_is_said_to(device: Device) -> None:
    bench = gpu_bench(device, agrees)
    rows = list(OCCUPANCY.rows(bench))
    assert rows and all(row["equal"] is True for row in rows)
    said = OCCUPANCY.meaning(rows, bench)
    assert f"All {len(rows)} predictions of resident blocks equal the driver's own count." in said
    assert "65,536 registers / 2,048 threads = 32 a thread fill an SM; 128 a thread leave 16 warps of 64." in said
    assert "Little's law" in said
    assert isinstance(bench.device, Pretended)
    assert {launch.block[0] for launch in bench.device.launched} >= {128, 1024}


def test_a_block_that_does_not_fit_is_a_row_that_was_not_run(device: Device) -> None:
    rows = list(OCCUPANCY.rows(gpu_bench(device, agrees)))
    none = [row for row in rows if row["blocks"] == 0]
    assert [(row["kernel"], row["block"]) for row in none] == [("hungry128", 1024)]
    assert none[0]["driver"] == 0 and "no block of 1024 threads" in str(none[0]["note"]) and "bandwidth" not in none[0]


def test_less_occupancy_by_shared_memory_alone_never_raises_the_warps(device: Device) -> None:
    rows = list(OCCUPANCY.rows(gpu_bench(device, agrees)))
    swept = [row for row in rows if row["kernel"] == "hungry8" and row["block"] == 256]
    warps = [int(row["warps"] or 0) for row in swept]
    assert warps == sorted(warps, reverse=True) and warps[0] > warps[-1] == 8
    probes = [row for row in rows if row["kernel"] == "shared_probe"]
    assert probes[0]["shared"] == 0 and probes[-1]["shared"] == H200.shared_per_block and probes[-1]["blocks"] == 1


def test_a_driver_that_disagrees_is_named_with_both_counts(device: Device) -> None:
    bench = gpu_bench(device, lambda block, registers, shared: agrees(block, registers, shared) + (block == 1024))
    rows = list(OCCUPANCY.rows(bench))
    wrong = [row for row in rows if row["equal"] is False]
    assert wrong and all(row["block"] == 1024 for row in wrong)
    said = OCCUPANCY.meaning(rows, bench)
    assert f"{len(rows) - len(wrong)} of {len(rows)} predictions equal" in said
    assert f"hungry8 in blocks of 1024, {wrong[0]['blocks']} predicted and {wrong[0]['driver']} counted." in said


def test_a_driver_that_refuses_leaves_the_prediction_alone(device: Device) -> None:
    def silent(block: int, registers: int, shared: int) -> int:
        raise Refused("no answer")

    bench = gpu_bench(device, silent)
    rows = list(OCCUPANCY.rows(bench))
    assert all(row["equal"] is None and "no answer" in str(row["note"]) for row in rows)
    assert "answered none of the questions" in OCCUPANCY.meaning(rows, bench)
    assert OCCUPANCY.picture(rows, bench) is None


def test_a_device_no_table_knows_is_refused(device: Device) -> None:
    bench = gpu_bench(device)
    bench.machine = None  # type: ignore[misc]
    assert "No table has the registers" in OCCUPANCY.refuse(bench)


H200_ROWS: list[Row] = [
    {"kernel": "hungry8", "registers": 24, "block": 256, "shared": 0, "blocks": 8, "driver": 8, "equal": True,
     "warps": 64, "occupancy": 1.0, "in_flight": 65536, "bandwidth": 4.1e12, "note": ""},
    {"kernel": "hungry8", "registers": 24, "block": 256, "shared": 131072, "blocks": 1, "driver": 1, "equal": True,
     "warps": 8, "occupancy": 0.125, "in_flight": 8192, "bandwidth": 2.05e12, "note": ""},
    {"kernel": "hungry128", "registers": 168, "block": 64, "shared": 0, "blocks": 6, "driver": 6, "equal": True,
     "warps": 12, "occupancy": 0.1875, "in_flight": 196608, "bandwidth": 3.9e12, "note": ""},
]  # fmt: skip


def test_few_warps_with_much_in_flight_reach_what_many_with_little_do(device: Device) -> None:
    said = OCCUPANCY.meaning(H200_ROWS, gpu_bench(device))
    assert "hungry8, moves 4.10 TB/s at 100 % occupancy with 65.5 kB in flight an SM and 2.05 TB/s at 12.5 %" in said
    assert "hungry128 (168 registers) moves 3.90 TB/s at 18.8 % occupancy with 197 kB in flight an SM" in said
    picture = OCCUPANCY.picture(H200_ROWS, gpu_bench(device))
    assert picture is not None and picture.series[0].x == (64.0, 8.0)


def test_a_bandwidth_above_the_limit_is_not_in_the_meaning(device: Device) -> None:
    rows = [{**H200_ROWS[0], "bandwidth": 9e13, "note": "above the physical limit"}, *H200_ROWS[1:]]
    assert "90.0 TB/s" not in OCCUPANCY.meaning(rows, gpu_bench(device))


def test_dynamic_shared_memory_goes_up_to_what_the_static_leaves(device: Device) -> None:
    bench = gpu_bench(device)
    program = replace(bench.kernel("shared_probe", 128, 1).program, shared=1024)  # type: ignore[type-var]
    found = occupancy.dynamic(bench, program)
    assert found[0] == 0 and found[-1] == H200.shared_per_block - 1024 and found == sorted(found)

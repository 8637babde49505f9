"""Waves: the design's table, a staircase by hand, one that is none, and products beside what tiles allow."""

from __future__ import annotations

from math import ceil

import pytest

from ridgepole.kernels.device import Device
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import find
from ridgepole.lab.experiment import Row
from ridgepole.lab.experiments import waves
from ridgepole.lab.experiments.waves import PRODUCT, STAIRS, staircase, tiling
from tests.lab.made import H200, Pretended, gpu_bench

WAVES = find("waves")


@pytest.mark.parametrize(
    ("n", "tiles", "waves_", "sm", "useful", "overall"),
    [
        (1024, 64, 1, 0.48, 1, 0.48),
        (1408, 121, 1, 0.92, 1, 0.92),
        (1536, 144, 2, 0.55, 1, 0.55),
        (4096, 1024, 8, 0.97, 1, 0.97),
        (4097, 1089, 9, 0.92, 0.94, 0.86),
        (4224, 1089, 9, 0.92, 1, 0.92),
    ],
)
def test_the_table_of_the_design_on_132_sms(
    n: int, tiles: int, waves_: int, sm: float, useful: float, overall: float
) -> None:
    row = tiling(n, 132)
    assert (row["blocks"], row["waves"]) == (tiles, waves_)
    assert [round(float(row[key] or 0), 2) for key in ("sm", "useful", "overall")] == [sm, useful, overall]


def test_the_staircase_stands_on_each_full_wave_and_one_past_it() -> None:
    assert staircase(132, quick=True) == [1, 132, 133, 264, 265, 396, 397]
    assert set(staircase(132, quick=True)) < set(staircase(132, quick=False))
    assert staircase(1, quick=True) == [1, 2, 3, 4]


def stairs(at_once: int, seconds: object = None, wave: float = 2e-4) -> list[Row]:
    return [
        {"what": STAIRS, "blocks": b, "waves": b / at_once, "predicted": ceil(b / at_once) * wave,
         "seconds": ceil(b / at_once) * wave if seconds is None else wave * b / at_once}
        for b in staircase(at_once, True)
    ]  # fmt: skip


def test_a_step_is_as_sharp_as_one_wave(device: Device) -> None:
    said = WAVES.meaning(stairs(132), gpu_bench(device))
    assert "Blocks run in waves of 132: 132 blocks take 200 µs and 133 take 400 µs, 2.00x where waves say 2.00x" in said
    assert "264 blocks take 400 µs and 265 take 600 µs, 1.50x where waves say 1.50x" in said


def test_a_ramp_is_not_called_a_staircase(device: Device) -> None:
    said = WAVES.meaning(stairs(132, "ramp"), gpu_bench(device))
    assert said.startswith("No staircase shows here") and "1.01x where waves say 2.00x" in said


def test_what_was_interrupted_before_the_first_step_says_so(device: Device) -> None:
    assert "not measured up to its first step" in WAVES.meaning(stairs(132)[:2], gpu_bench(device))
    assert "No staircase was measured" in WAVES.meaning([tiling(4096, 132)], gpu_bench(device))


def product(n: int, share: float) -> Row:
    return {**tiling(n, 132), "what": PRODUCT, "seconds": 1e-3, "rate": share * 989e12, "of_peak": share, "note": ""}


def test_a_product_far_under_its_waves_has_another_reason(device: Device) -> None:
    rows = [product(4096, 0.806), product(4097, 0.134), product(4224, 0.79)]
    said = WAVES.meaning(rows, gpu_bench(device))
    assert "4096 → 80.6 %, 4097 → 13.4 %, 4224 → 79.0 %" in said
    assert "At 4097 more than waves is the matter: its rows of 8,194 B do not start at multiples of 16 B." in said
    assert "more than waves" not in WAVES.meaning([product(4096, 0.8), product(1536, 0.45)], gpu_bench(device))


def test_the_predicted_staircase_rises_just_past_each_wave(device: Device) -> None:
    picture = WAVES.picture(stairs(132), gpu_bench(device))
    assert picture is not None
    predicted = picture.series[0]
    assert predicted.style == "steps" and predicted.x[:3] == (1.0, 133.0, 265.0)
    assert predicted.y[:3] == pytest.approx((2e-4, 4e-4, 6e-4))


def test_without_a_count_of_resident_blocks_there_is_no_staircase(device: Device) -> None:
    class Silent(Pretended):
        occupancy = None  # type: ignore[assignment]

    bench = gpu_bench(device)
    bench.device = Silent(device, lambda *_: 1)
    assert {row["what"] for row in WAVES.rows(bench)} == {"tiles"}


def test_a_gpu_gives_each_block_all_shared_memory_so_that_an_sm_holds_one(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []

    def resident(block: int, registers: int, shared: int) -> int:
        asked.append((block, shared))
        return 1

    bench = gpu_bench(device, resident)
    made = bench.device
    assert isinstance(made, Pretended)
    # Its kernels are the CPU's; only what the experiment decides by the backend's name is a GPU's.
    monkeypatch.setattr(Bench, "kernel", _as_opencl(Bench.kernel))
    monkeypatch.setattr(waves, "SIDES", (64, 96))
    monkeypatch.setattr(waves, "WAVE_SECONDS", 1e-4)
    made.backend, made.limits = "cuda", H200.__class__(2, 32, 1024, H200.shared_per_block, 1 << 30, 2e9, 1 << 20)
    rows = list(WAVES.rows(bench))
    assert asked == [(128, H200.shared_per_block)]
    assert {launch.shared for launch in made.launched if launch.block[0] == 128 and launch.blocks > 1} == {232_448}
    assert [row["n"] for row in rows if row["what"] == PRODUCT] == [64, 96]
    assert [row["blocks"] for row in rows if row["what"] == STAIRS] == [1, 2, 3, 4, 5, 6, 7]
    assert WAVES.meaning(rows, bench)


def _as_opencl(kernel: object) -> object:
    def made(self: Bench, *args: object, **kwargs: object) -> object:
        backend = self.device.backend
        self.device.backend = "opencl"
        try:
            return kernel(self, *args, **kwargs)  # type: ignore[operator]
        finally:
            self.device.backend = backend

    return made


def test_blocks_of_a_cpu_take_longer_past_a_wave_of_its_cores(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waves, "CPU_WAVE_SECONDS", 2e-3)
    rows = [row for row in WAVES.rows(bench) if row["what"] == STAIRS]
    cores = bench.device.limits.sms
    assert [row["blocks"] for row in rows] == staircase(cores, quick=True)
    assert float(rows[-1]["seconds"] or 0) > float(rows[0]["seconds"] or 0)

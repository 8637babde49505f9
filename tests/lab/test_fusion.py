"""Fusion: two kernels move twice what one moves, and launch twice."""

from __future__ import annotations

from collections.abc import Callable

from ridgepole.kernels.device import Device
from ridgepole.lab.bench import Bench
from ridgepole.lab.experiment import Result, Row
from ridgepole.lab.experiments import fusion
from tests.lab.made import gpu_bench


def rows(n: int, two: float, one: float, eager: float, method: str = "queued") -> list[Row]:
    common = {"elements": n, "method": method, "spread": 0.0, "bandwidth": 1.0, "note": ""}
    return [
        {**common, "way": fusion.TWO, "seconds": two, "gain": None},
        {**common, "way": fusion.ONE, "seconds": one, "gain": two / one},
        {**common, "way": fusion.EAGER, "seconds": eager, "gain": None},
    ]


def test_half_the_bytes_and_launches_are_half_the_time(device: Device) -> None:
    found = rows(4096, 10e-6, 5e-6, 16e-6) + rows(1 << 26, 260e-6, 130e-6, 262e-6)
    said = fusion._meaning(found, gpu_bench(device))
    assert said.startswith("Fusing halves the time")
    assert "67,108,864 elements queued: 260 µs as two, 130 µs as one, 2.00x, past the caches" in said
    assert "4,096 elements queued: 10.0 µs as two, 5.00 µs as one, 2.00x, in cache" in said
    assert "takes 2.0x the one kernel's time" in said


def test_more_or_less_than_half_is_said_to_be(device: Device) -> None:
    assert "more than half" in fusion._meaning(rows(1 << 26, 3e-4, 1e-4, 3e-4), gpu_bench(device))
    assert "less than the half" in fusion._meaning(rows(1 << 26, 1.2e-4, 1e-4, 3e-4), gpu_bench(device))


def test_without_both_ways_nothing_is_compared(device: Device) -> None:
    assert "Too little" in fusion._meaning(rows(4096, 1.0, 1.0, 1.0)[:1], gpu_bench(device))


def test_sizes_go_from_a_few_kilobytes_to_past_the_cache(bench: Bench, device: Device) -> None:
    for one in (bench, gpu_bench(device)):
        found = fusion.sizes(one)
        assert found[0] * 4 <= 16 * fusion.SMALL * 4 and found[-1] * 4 >= one.last_cache
        assert found == sorted(found)


def test_both_kernels_together_are_slower_than_the_one_past_the_caches(conducted: Callable[[str], Result]) -> None:
    found = conducted("fusion").rows
    assert {r["way"] for r in found} >= {fusion.TWO, fusion.ONE}
    gains = [float(r["gain"] or 0) for r in found if r["way"] == fusion.ONE]
    assert len(gains) >= 3 and gains[-1] > 1.1

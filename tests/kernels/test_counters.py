"""The hardware's counters as ncu prints them, and each way of not getting them in one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ridgepole.kernels.cuda import counters

HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)


def row(launch: int, metric: str, unit: str, value: str) -> str:
    """One line of ncu 2025.3's CSV, as an H200 gave it on 2026-12-01."""
    return (
        f'"{launch}","587","python3.12","127.0.0.1","strided_copy","1","7","(256, 1, 1)","(16384, 1, 1)","0","9.0",'
        f'"Command line profiler metrics","{metric}","{unit}","{value}"'
    )


def output(*launches: tuple[str, str, str]) -> str:
    lines = ["==WARNING== Note: Running with unmodified GPU clocks.", "==PROF== Connected to process 587", HEADER]
    for i, (read, requests, sectors) in enumerate(launches):
        lines += [
            row(i, counters.READ, "byte", read),
            row(i, counters.REQUESTS, "", requests),
            row(i, counters.SECTORS, "sector", sectors),
        ]
    return "\n".join(lines) + "\n"


def test_a_scattered_warp_is_counted_at_32_sectors_a_request() -> None:
    found = counters.read(output(("16,782,336", "131,072", "4,194,304")))
    assert not isinstance(found, str)
    assert found[0].sectors_a_request == 32.0
    assert found[0].dram_read == 16_782_336


def test_each_launch_has_its_own_counters() -> None:
    found = counters.read(output(("1", "8", "32"), ("1", "8", "256")))
    assert not isinstance(found, str)
    assert [each.sectors_a_request for each in found] == [4.0, 32.0]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "no permission (ERR_NVGPUCTRPERM)"),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "Failed to initialize the profiler"),
        ("this torch is built without CUDA: install one that is", "this torch is built without CUDA"),
        ("", "ncu said nothing"),
        (f"{HEADER}\n{row(0, counters.SECTORS, 'sector', 'n/a')}", "not read"),
    ],
)
def test_what_cannot_be_counted_is_one_line_with_the_reason(said: str, reason: str) -> None:
    found = counters.read(said)
    assert isinstance(found, str)
    assert reason in found and "\n" not in found


def test_without_ncu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    found = counters.count("strided_copy", (1024, 3))
    assert isinstance(found, str) and "ncu (Nsight Compute) is not on PATH" in found


def test_a_call_of_the_library_runs_for_a_profiler_to_watch() -> None:
    call = [sys.executable, "-m", "ridgepole.kernels.call", "--device", "cpu", "strided_copy"]
    done = subprocess.run([*call, "1024,3", "1024,33"], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode == 3:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stdout) == (0, "")
    refused = subprocess.run([*call, "1000,3"], capture_output=True, text=True, check=False, timeout=120)
    assert refused.returncode == 2 and "power of two" in refused.stderr

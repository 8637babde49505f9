"""The hardware's own count of sectors and bytes, read by Nsight Compute (ncu) around the kernels of a child process."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ridgepole.kernels.kernel import find

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
READ = "dram__bytes_read.sum"
METRICS = (SECTORS, REQUESTS, READ)
PATIENCE = 120
"""Seconds for the child: torch's start, the kernel's check, and ncu's replays."""
LAUNCHES = 2
"""Of each call: see `kernels.call`."""
UNITS = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
NO_PERMISSION = "ERR_NVGPUCTRPERM"


@dataclass(frozen=True, slots=True)
class Counters:
    """Of one launch: 32-byte sectors and warp-wide requests of global loads, bytes read from device memory."""

    sectors: float
    requests: float
    dram_read: float

    @property
    def sectors_a_request(self) -> float:
        return self.sectors / self.requests if self.requests else 0.0


def count(name: str, *calls: Sequence[int], device: str = "cuda") -> tuple[Counters, ...] | str:
    """The counters of a kernel of the library at the sizes of each call, or one line that says why there are none."""
    tool = shutil.which("ncu")
    if tool is None:
        return "the hardware's counter was not read: ncu (Nsight Compute) is not on PATH"
    command = [
        tool, "--csv", "--clock-control", "none", "--metrics", ",".join(METRICS), "-k", find(name).entry,
        sys.executable, "-m", "ridgepole.kernels.call", "--device", device, name,
        *(",".join(map(str, sizes)) for sizes in calls),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"the hardware's counter was not read: ncu took more than {PATIENCE} s"
    except OSError as error:
        return f"the hardware's counter was not read: ncu does not start ({error.strerror})"
    found = read(done.stdout + done.stderr)
    if isinstance(found, str):
        return found
    if len(found) != LAUNCHES * len(calls):
        return f"the hardware's counter was not read: {len(found)} launches were counted, not {LAUNCHES * len(calls)}"
    return found[LAUNCHES - 1 :: LAUNCHES]


def read(output: str) -> tuple[Counters, ...] | str:
    """ncu's CSV, with whatever it says around it: the counters of each launch in it, or why there are none."""
    if NO_PERMISSION in output:
        return (
            f"the hardware's counter was not read: no permission ({NO_PERMISSION}): run as root, or set "
            "NVreg_RestrictProfilingToAdminUsers=0"
        )
    launches: dict[str, dict[str, float]] = {}
    rows = [line for line in output.splitlines() if line.startswith('"')]
    for row in csv.DictReader(rows):
        number = _number(row.get("Metric Value") or "", row.get("Metric Unit") or "")
        if number is not None:
            launches.setdefault(row.get("ID") or "", {})[row.get("Metric Name") or ""] = number
    whole = [found for found in launches.values() if set(METRICS) <= set(found)]
    if not whole:
        return f"the hardware's counter was not read: {_why(output.splitlines())}"
    return tuple(Counters(found[SECTORS], found[REQUESTS], found[READ]) for found in whole)


def _number(text: str, unit: str) -> float | None:
    try:
        return float(text.replace(",", "")) * UNITS.get(unit, 1.0)
    except ValueError:
        return None


def _why(lines: Sequence[str]) -> str:
    """ncu's own error, else the last thing said."""
    told = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
    said = told or [line.strip() for line in lines if line.strip() and not line.startswith("==")]
    return said[-1][:160] if said else "ncu said nothing"

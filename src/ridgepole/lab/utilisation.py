"""What the system reports as utilisation while something runs: nvidia-smi's of a GPU, the process's own of a CPU."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

QUERY = ("utilization.gpu", "clocks.sm", "power.draw")
INTERVAL_MS = 200
FIRST = 5.0
"""Seconds within which nvidia-smi must have said its first line."""
SETTLES = 1.0
"""Seconds an answer may look back: utilisation is over the last 1/6 to 1 s (nvidia-smi's manual)."""
ENDS = 2.0
"""Seconds nvidia-smi has to end when told to, before it is killed."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of nvidia-smi: when (perf_counter, s), utilisation 0..1, SM clock Hz, power W; None: "[N/A]"."""

    at: float
    utilisation: float | None
    clock: float | None
    power: float | None


def parse(line: str, at: float) -> Sample | None:
    """A line of "percent, MHz, W"; None for one that is something else."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(QUERY):
        return None
    percent, megahertz, watts = (_number(cell) for cell in cells)
    return Sample(
        at,
        percent / 100 if percent is not None else None,
        megahertz * 1e6 if megahertz is not None else None,
        watts,
    )


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


class Watch:
    """nvidia-smi in a child process, its lines read by a thread. Leaving the block ends the child, whatever happened.

    `why`: what nvidia-smi said instead of samples; "" while it works.
    """

    def __init__(self, device: str, command: Sequence[str] = ("nvidia-smi",)) -> None:
        query = (f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits", "-i", device)
        self._command = (*command, *query, "-lms", str(INTERVAL_MS))
        self._child: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._first = threading.Event()
        self.samples: list[Sample] = []
        self.why = ""

    def __enter__(self) -> Watch:
        try:
            self._child = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        except OSError as error:
            self.why = f"nvidia-smi cannot be run ({error.strerror})"
            return self
        try:
            self._reader = threading.Thread(target=self._read, args=(self._child,), daemon=True)
            self._reader.start()
            self._first.wait(FIRST)
        except BaseException:
            self._end()
            raise
        if not self.samples and not self.why:
            self.why = f"nvidia-smi said nothing in {FIRST:.0f} s"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _read(self, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        for line in child.stdout:
            sample = parse(line, time.perf_counter())
            if sample is not None:
                self.samples.append(sample)
            elif line.strip() and not self.samples and not self.why:
                self.why = f"nvidia-smi says: {line.strip()}"
            self._first.set()
        if not self.samples and not self.why:
            self.why = "nvidia-smi ended and said nothing"
        self._first.set()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(OSError):
            child.terminate()
        try:
            child.wait(ENDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        finally:
            if self._reader is not None:
                self._reader.join(ENDS)
            if child.stdout is not None:
                child.stdout.close()

    def between(self, start: float, end: float) -> tuple[Sample, ...]:
        """Samples that look back on nothing but what ran from `start` to `end`."""
        return tuple(sample for sample in list(self.samples) if start + SETTLES <= sample.at <= end)


def identity(torch: Any, index: int) -> str:
    """What nvidia-smi calls torch's device `index`, which counts only the devices it may see: its UUID."""
    uuid = str(getattr(torch.cuda.get_device_properties(index), "uuid", ""))
    if not uuid:
        return str(index)
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"


@dataclass(frozen=True, slots=True)
class Spent:
    """Wall clock seconds, and the seconds of CPU all threads of this process had meanwhile."""

    wall: float
    cpu: float

    @property
    def cores(self) -> float:
        """Cores kept busy, as `top` would show them: 1.0 is 100 %."""
        return self.cpu / self.wall if self.wall > 0 else 0.0


def spent(act: Callable[[], object]) -> Spent:
    """What `act` took, by the system's own account of this process."""
    before, start = os.times(), time.perf_counter()
    act()
    wall, after = time.perf_counter() - start, os.times()
    return Spent(wall, after.user - before.user + after.system - before.system)

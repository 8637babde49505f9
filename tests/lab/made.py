"""A GPU that is none: the CPU's OpenCL device, with the limits of an H200 and a driver's answers beside it.

What is measured on it is the CPU's; the paths that only a GPU takes are walked all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ridgepole.kernels.device import Device, Launch, Limits, Program, Run
from ridgepole.lab.bench import Bench
from ridgepole.machine import catalog
from ridgepole.machine.model import Machine

H200 = Limits(
    sms=132, warp=32, threads_per_block=1024, shared_per_block=232_448, memory=141 << 30, clock=1.98e9, l2=60 << 20
)
REGISTERS = {8: 24, 16: 32, 32: 48, 64: 90, 128: 168}
"""Of `hungry`, by its LIVE values: about what a compiler gives."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A CPU's program that says how many registers a GPU's would take."""

    inner: Any
    registers: int | None
    shared: int | None = 0
    spilled: int | None = 0


@dataclass
class Pretended:
    """The device. `resident(block, registers, shared)`: its driver's answer."""

    inner: Device
    resident: Callable[[int, int, int], int]
    limits: Limits = H200
    backend: str = "opencl"
    name: str = "NVIDIA H200"
    driver: str = "none"
    torch: str | None = "cpu"
    launched: list[Launch] = field(default_factory=list)

    def compile(self, source: str, entry: str, defines: Mapping[str, int]) -> Program:
        return Compiled(self.inner.compile(source, entry, defines), REGISTERS.get(defines.get("LIVE", 0), 16))

    def upload(self, array: Any) -> Any:
        return self.inner.upload(array)

    def download(self, buffer: Any, dtype: str, count: int) -> Any:
        return self.inner.download(buffer, dtype, count)

    def bind(
        self, program: Program, launch: Launch, buffers: Sequence[Any], scalars: Sequence[int]
    ) -> Callable[[], None]:
        assert isinstance(program, Compiled)
        self.launched.append(launch)
        return self.inner.bind(program.inner, launch, buffers, scalars)

    def occupancy(self, program: Program, block: int, shared: int = 0) -> int:
        return self.resident(block, program.registers or 0, shared)

    def synchronize(self) -> None:
        self.inner.synchronize()

    def elapsed(self, run: Run, count: int) -> float:
        return self.inner.elapsed(run, count)

    def graph(self, run: Run, count: int) -> Callable[[], None] | None:
        return None


class GPUBench(Bench):
    """A bench at a pretended H200."""

    machine: Machine | None = catalog.find("h200")  # type: ignore[assignment]
    on_cpu = False  # type: ignore[assignment]


def gpu_bench(device: Device, resident: Callable[[int, int, int], int] = lambda block, registers, shared: 1) -> Bench:
    return GPUBench(Pretended(device, resident), quick=True)

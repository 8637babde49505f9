"""The bench an experiment works at: an open device, the machine it is, timing, and the gate against the impossible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ridgepole.errors import Missing, RidgepoleError
from ridgepole.kernels.device import Device, Launch, Run
from ridgepole.kernels.prepare import Prepared, prepare
from ridgepole.lab import timing
from ridgepole.lab.timing import Method, Timing
from ridgepole.machine import catalog, detect
from ridgepole.machine.model import Machine, Unit

SLACK = 1.03
"""Datasheet clocks and the device's own differ by a little; past this a figure is above the physical limit."""
VECTOR_FLOPS_A_CORE = 64.0
"""fp32 FLOP a clock of a CPU core with two 512-bit multiply-add units: none there is does more."""
SETS_BYTES = 4.0
"""Rotated inputs together hold this many times the last-level cache."""


@dataclass
class Bench:
    """An open device and how to measure on it. `note` says progress to whoever waits."""

    device: Device
    quick: bool = False
    note: Callable[[str], None] = field(default=lambda line: None)

    @cached_property
    def torch(self) -> Any:
        """The torch module. Raises Missing where it is not installed or cannot use this device."""
        try:
            import torch
        except ImportError as error:
            raise Missing(f"this part compares with torch, which does not import here ({error})") from None
        if self.device.torch is None:
            raise Missing(f"torch cannot use {self.device.name}, so the framework's part is left out")
        return torch

    @cached_property
    def machine(self) -> Machine | None:
        """What the catalog says of this device, or of this CPU as measured by torch; None where neither knows it."""
        if self.on_cpu:
            try:
                return detect.cpu()
            except RidgepoleError:
                return None
        try:
            # Not an earlier measurement: experiments say what is reached of the datasheet, the physical limit.
            return catalog.datasheet(detect.local())
        except RidgepoleError:
            return None

    @property
    def on_cpu(self) -> bool:
        return self.device.torch == "cpu"

    @property
    def last_cache(self) -> int:
        """Bytes of the last-level cache as the device reports it; 64 MiB where it does not."""
        return self.device.limits.l2 or 64 << 20

    def kernel(
        self,
        name: str,
        *sizes: int,
        cold: bool = False,
        defines: Mapping[str, int] | None = None,
        launch: Launch | None = None,
    ) -> Prepared:
        """A checked kernel. `cold`: with rotated inputs past the last-level cache."""
        first = prepare(self.device, name, *sizes, defines=defines, launch=launch)
        held = sum(buffer.nbytes for buffer in first.sets[0])
        sets = self.sets(held)
        if not cold or sets == 1:
            return first
        del first
        return prepare(self.device, name, *sizes, sets=sets, defines=defines, launch=launch)

    def sets(self, held: int) -> int:
        """How many sets of `held` bytes it takes to pass the last-level cache, at least one."""
        if not 0 < held < SETS_BYTES * self.last_cache:
            return 1
        return max(1, min(64, round(SETS_BYTES * self.last_cache / held)))

    def time(self, run: Run, method: Method = "queued") -> Timing:
        """Times `run` in one of the named ways. "graph" falls back to "queued" where there are no graphs."""
        if method == "waited":
            return timing.waited(self.device, run, quick=self.quick)
        if method == "graph":
            found = timing.graphed(self.device, run, quick=self.quick)
            if found is not None:
                return found
        return timing.queued(self.device, run, quick=self.quick)

    def framework(self, act: Callable[[], object]) -> Run:
        """A torch call as a Run, without autograd."""
        torch = self.torch

        def run(i: int) -> object:
            with torch.no_grad():
                return act()

        return run

    def unit(self, dtype: str) -> Unit:
        """Where products of `dtype` run: float32 and float64 on the vector unit, narrower ones on the tensor unit.

        A CPU's ceilings are kept the same way.
        """
        return "vector" if dtype in ("float32", "float64") else "tensor"

    def most_bandwidth(self) -> float | None:
        """Bytes a second that device memory cannot exceed, by the datasheet; None where only measurements are known."""
        if self.machine is None or self.on_cpu:
            return None
        return self.machine.bandwidth * SLACK

    def most_flops(self, unit: Unit, dtype: str) -> float | None:
        """FLOP/s that cannot be exceeded: the datasheet's peak, or a CPU's cores x clock x its widest unit."""
        if self.on_cpu:
            limits = self.device.limits
            halves = 2 if dtype == "float32" else 1 if dtype == "float64" else 32
            return limits.sms * limits.clock * VECTOR_FLOPS_A_CORE * halves * 2 if limits.clock else None
        peak = self.machine.rate(unit, dtype) if self.machine is not None else None
        return peak.value * SLACK if peak is not None else None


def gate(rate: float, most: float | None, what: str) -> str:
    """Why a rate is not believed, "" where it may be: nothing runs above the physical limit."""
    if most is None or rate <= most:
        return ""
    return f"{what} above the physical limit: not believed (caches, dead code, or a clock that lied)"

"""What a device can do: figures that know where they came from, and the Machine made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ridgepole import dtypes

SourceKind = Literal["datasheet", "measured", "derived", "assumed"]
Unit = Literal["tensor", "vector"]
"""Which arithmetic unit does the work: the matrix units, or the ordinary ones."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a figure came from: `datasheet: title, date`, `measured: how, when`, `derived: from`, `assumed: why`."""

    kind: SourceKind
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number in SI (seconds, bytes, B/s, FLOP/s, Hz, or a count with unit "1"), with its source."""

    value: float
    unit: str
    source: Source


@dataclass(frozen=True, slots=True)
class MemoryLevel:
    """One level of the memory ladder.

    `name`: "registers", "shared" (shared/L1), "l2", "llc" (last-level cache) or "dram" (HBM, GDDR, LPDDR, DDR).
    `scope`: who shares one instance: "sm" or "device". Capacity is bytes of one instance (one SM's for
    scope "sm"); bandwidth is of the whole device, in B/s; latency in seconds, load to use.
    """

    name: str
    scope: Literal["sm", "device"]
    capacity: Figure | None = None
    bandwidth: Figure | None = None
    latency: Figure | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds residency on one SM (compute unit, core), per CUDA's names. Sizes in bytes, clock in Hz.

    A field is None where the figure is not known.
    """

    sms: Figure
    warp: Figure
    clock: Figure | None = None
    threads_per_block: Figure | None = None
    threads_per_sm: Figure | None = None
    blocks_per_sm: Figure | None = None
    registers_per_sm: Figure | None = None
    shared_per_sm: Figure | None = None
    shared_per_block: Figure | None = None


@dataclass(frozen=True, slots=True)
class Overheads:
    """What it costs to run at all, in seconds.

    dispatch: CPU time of one framework op besides its launches; launch: CPU time of one kernel launch;
    floor: time of the smallest kernel on the GPU; graph_gap: idle between two kernels of a graph;
    round_trip: launch one empty kernel and wait for it; queue_depth: launches the CPU may run ahead.
    """

    dispatch: Figure
    launch: Figure
    floor: Figure
    graph_gap: Figure
    round_trip: Figure
    queue_depth: Figure


@dataclass(frozen=True, slots=True)
class Machine:
    """One device.

    `peaks` maps (unit, dtype) to dense FLOP/s, never sparse; dtype is torch's name, "tf32" for fp32 inputs on
    the tensor unit, "float8" and "float4" for those families. `links` maps a name ("nvlink", "pcie") to
    one-directional B/s. `kind` is "gpu" or "cpu".
    """

    name: str
    kind: Literal["gpu", "cpu"]
    vendor: str
    architecture: str
    compute: str
    """Compute capability ("9.0"), gfx target ("gfx942") or ""."""
    peaks: Mapping[tuple[Unit, str], Figure]
    memory: tuple[MemoryLevel, ...]
    limits: Limits
    overheads: Overheads
    links: Mapping[str, Figure] = field(default_factory=dict)
    power: Figure | None = None
    aliases: tuple[str, ...] = ()
    confidence: Literal["high", "medium", "low"] = "high"
    notes: tuple[str, ...] = ()
    memory_kind: str = ""
    """What the device memory is made of ("HBM3"), or ""."""
    tuning: Mapping[str, Figure] = field(default_factory=dict)
    """Constants of the kernel models for this architecture (`achieved.dram`, …), each with its source."""
    measured_of: str = ""
    """The machine this one was measured on: a name of the catalog, or a CPU's own; "" where nobody measured it."""

    def level(self, name: str) -> MemoryLevel | None:
        """The memory level called `name`, or None."""
        return next((level for level in self.memory if level.name == name), None)

    @property
    def bandwidth(self) -> float:
        """Bandwidth of device memory, B/s."""
        level = self.level("dram")
        if level is None or level.bandwidth is None:
            raise ValueError(f"{self.name} has no device-memory bandwidth")
        return level.bandwidth.value

    def peak(self, unit: Unit, dtype: str) -> Figure | None:
        """Dense peak of `unit` for `dtype` in FLOP/s; None where the machine has none or it is not known."""
        return self.peaks.get((unit, dtypes.peak_key(dtype)))

    def rate(self, unit: Unit, dtype: str) -> Figure | None:
        """The rate at which work of `dtype` on `unit` runs: its peak, else the nearest unit that can do it.

        A dtype the tensor unit lacks runs on the vector unit; one the vector unit lacks (bfloat16, integers,
        bool) runs at the fp32 vector rate.
        """
        return self.peak(unit, dtype) or self.peak("vector", dtype) or self.peak("vector", "float32")

    def ridge(self, dtype: str, unit: Unit = "tensor") -> float | None:
        """Ridge point in FLOP/B against device memory (Roofline, Williams et al. 2009): rate / bandwidth."""
        rate = self.rate(unit, dtype)
        return None if rate is None else rate.value / self.bandwidth

"""The ledger: every nanosecond of a window in one bucket, with its cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Bucket = Literal["compute", "memory", "transfer", "communication", "overhead", "unknown"]

BUCKETS: tuple[Bucket, ...] = ("compute", "memory", "transfer", "communication", "overhead", "unknown")

Quality = Literal["exact", "inferred", "unknown"]
"""exact: from the op's own shapes; inferred: matched or guessed by name and grid; unknown: nothing known."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Time of one cause. `cause` is a stable id ("kernel-floor", "python", "launch"); report words it."""

    bucket: Bucket
    cause: str
    ns: int


@dataclass(frozen=True, slots=True)
class KernelWork:
    """What one device span did: its bucket by the three times, and the figures behind it.

    Times in seconds; None where not known. `attainable` = max(t_compute, t_memory).
    """

    bucket: Bucket
    cause: str
    quality: Quality
    flops: int | None = None
    bytes: int | None = None
    dtype: str = ""
    unit: Literal["tensor", "vector", ""] = ""
    t_compute: float | None = None
    t_memory: float | None = None
    floor: float | None = None
    reason: str = ""

    @property
    def attainable(self) -> float | None:
        times = [t for t in (self.t_compute, self.t_memory) if t is not None]
        return max(times) if times else None


@dataclass(frozen=True, slots=True)
class OpRow:
    """One operator (at one place) over the window: `ns` is summed device time of its kernels.

    flops and bytes are sums over the calls for which they are known, None if none is; `known_ns` is the device
    time of those. `efficiency` = attainable / measured over them, None where they are less than half of the row.
    """

    op: str
    where: str
    count: int
    kernels: int
    ns: int
    bucket: Bucket
    flops: int | None
    bytes: int | None
    known_ns: int
    efficiency: float | None
    quality: Quality
    shapes: str = ""
    names: tuple[str, ...] = ()
    """The kernels' names, longest-running first."""

    @property
    def intensity(self) -> float | None:
        return self.flops / self.bytes if self.flops is not None and self.bytes else None


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares, 0 to 1, of device busy time: with a bucket, an op, bytes, FLOPs, inside graphs, inferred."""

    bucket: float
    op: float
    bytes: float
    flops: float
    in_graph: float
    inferred: float


@dataclass(frozen=True, slots=True)
class DeviceLedger:
    """One device's account. `entries` add up to the window exactly.

    `busy_ns`, `events`, `gpu_window_ns`: raw, over the whole file. `resident_ns`: time in the window with some
    kernel running (what nvidia-smi calls utilization). `roof_ns`: time the roofs alone would have needed.
    """

    device: str
    events: int
    busy_ns: int
    gpu_window_ns: int
    entries: tuple[Entry, ...]
    resident_ns: int
    roof_ns: int
    coverage: Coverage
    ops: tuple[OpRow, ...]

    @property
    def buckets(self) -> dict[Bucket, int]:
        totals: dict[Bucket, int] = dict.fromkeys(BUCKETS, 0)
        for entry in self.entries:
            totals[entry.bucket] += entry.ns
        return totals


@dataclass(frozen=True, slots=True)
class Ledger:
    """The account of a window. `devices` has the busiest first; its buckets are the run's.

    `work` maps a device span's index in the timeline to what it did. `machine` is the name of the machine whose
    figures were used, "" if none was known.
    """

    target: str
    kind: Literal["measured", "priced"]
    machine: str
    window_ns: int
    window_rule: str
    devices: tuple[DeviceLedger, ...]
    work: Mapping[int, KernelWork]
    notes: tuple[str, ...] = ()
    inflation: float | None = None
    scaled: bool = False

    @property
    def busiest(self) -> DeviceLedger:
        return self.devices[0]

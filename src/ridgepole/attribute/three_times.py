"""The three times of one piece of work, and the bucket the largest names (Roofline, Williams et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ridgepole import dtypes
from ridgepole.attribute.ledger import Bucket
from ridgepole.machine.model import Machine, Unit

L2_SLACK = 2.0
"""Work of up to twice the L2 may have found part of its data there, so that device memory is no bound for it."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds at the roofs; None where no figure is known. `reason` says what was adjusted and why."""

    bucket: Bucket
    cause: str
    t_compute: float | None
    t_memory: float | None
    floor: float | None
    dtype: str
    unit: Literal["tensor", "vector"]
    reason: str = ""


def times(
    flops: int, nbytes: int, dtype: str, unit: Unit, machine: Machine | None, seconds: float | None = None
) -> Times:
    """The three times of `flops` and `nbytes`; `seconds` is what was measured, None for a prediction.

    A measurement faster than a roof shows that the roof was another one: fp32 that ran as TF32, bytes that came from
    L2. What still is faster is capped at the measurement, and said.
    """
    if machine is None:
        return _anywhere(flops, nbytes, dtype, unit)
    rate = machine.rate(unit, dtype)
    t_compute = flops / rate.value if rate is not None else None
    t_memory = nbytes / machine.bandwidth
    reason = ""
    if seconds is not None and seconds > 0:
        if t_compute is not None and t_compute > seconds and dtype == "float32" and unit == "vector":
            faster = machine.peak("tensor", "tf32")
            if faster is not None:
                dtype, unit, t_compute = "tf32", "tensor", flops / faster.value
                reason = "faster than fp32 can be: it ran as TF32"
        if t_memory > seconds:
            t_memory, reason = _nearer(nbytes, seconds, machine)
        if t_compute is not None and t_compute > seconds:
            t_compute, reason = seconds, "faster than the arithmetic roof: part of the counted work was not done"
    bucket, cause = _largest(t_compute, t_memory, machine.overheads.floor.value)
    return Times(bucket, cause, t_compute, t_memory, machine.overheads.floor.value, dtype, unit, reason)


def _nearer(nbytes: int, seconds: float, machine: Machine) -> tuple[float, str]:
    """Bytes that moved faster than device memory can: from L2 where they fit, else fewer than counted."""
    level = machine.level("l2")
    if level is not None and level.capacity is not None and nbytes <= L2_SLACK * level.capacity.value:
        rate = level.bandwidth
        nearer = nbytes / rate.value if rate is not None else seconds
        return min(max(nearer, 0.0), seconds), "faster than device memory: part of its bytes came from L2"
    return seconds, "faster than device memory: fewer bytes moved than the formula counts"


def _largest(t_compute: float | None, t_memory: float, floor: float) -> tuple[Bucket, str]:
    if floor > max(t_compute or 0.0, t_memory):
        return "overhead", "kernel-floor"
    if t_compute is not None and t_compute >= t_memory:
        return "compute", "compute"
    return "memory", "memory"


def _anywhere(flops: int, nbytes: int, dtype: str, unit: Unit) -> Times:
    """Without a machine: what holds on every machine of the catalog, else unknown."""
    if not nbytes:
        bucket: Bucket = "compute" if flops else "unknown"
        return Times(bucket, bucket, None, None, None, dtype, unit, "no machine known")
    low, high = _ridges(unit, dtypes.peak_key(dtype) if dtype else "float32")
    intensity = flops / nbytes
    if intensity < low:
        return Times("memory", "memory", None, None, None, dtype, unit, "memory-bound on every machine of the catalog")
    if intensity > high:
        return Times(
            "compute", "compute", None, None, None, dtype, unit, "compute-bound on every machine of the catalog"
        )
    return Times(
        "unknown", "unknown", None, None, None, dtype, unit, "its bucket depends on the machine, which is not known"
    )


@lru_cache(maxsize=64)
def _ridges(unit: Unit, dtype: str) -> tuple[float, float]:
    """Lowest and highest ridge point of the catalog's GPUs for a dtype on a unit."""
    from ridgepole.machine import catalog

    ridges = [
        rate.value / m.bandwidth
        for m in catalog.load().values()
        if m.kind == "gpu" and (rate := m.rate(unit, dtype)) is not None
    ]
    return (min(ridges), max(ridges)) if ridges else (0.0, float("inf"))

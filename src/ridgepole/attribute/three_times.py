"""The three times of one kernel, and which of them names its bucket.

t_compute = FLOPs / peak rate of the unit that does them, t_memory = bytes / bandwidth of device memory (the roofline,
Williams et al. 2009), floor = what the smallest kernel costs. The largest names the bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from ridgepole.attribute.ledger import Bucket
from ridgepole.machine import catalog
from ridgepole.machine.model import Machine, Unit

KERNEL_FLOOR = "kernel-floor"

SLACK = 1.05
"""A kernel may beat the datasheet's bandwidth by this much: clocks and rounding, not magic."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, each None where it is not known; `reason` is "" where the times say it all."""

    t_compute: float | None
    t_memory: float | None
    floor: float | None
    bucket: Bucket
    cause: str
    reason: str = ""


def times(
    flops: int | None,
    nbytes: int | None,
    dtype: str,
    unit: Unit,
    machine: Machine | None,
    among: frozenset[str] = frozenset(),
) -> Times:
    """The three times of work of `flops` FLOP and `nbytes` B on `machine`, and the bucket they name.

    Where only one of the figures is known there is no bucket; see `by_intensity` for a machine that is not known.
    """
    if machine is None or not machine.peaks:
        found, reason = by_intensity(flops, nbytes, dtype, unit, among)
        return Times(None, None, None, found, found, reason)
    floor = machine.overheads.floor.value
    rate = machine.rate(unit, dtype)
    t_compute = None if flops is None or rate is None else flops / rate.value
    if flops == 0:
        t_compute = 0.0
    t_memory = None if nbytes is None else nbytes / machine.bandwidth
    if t_compute is None or t_memory is None:
        return Times(t_compute, t_memory, floor, "unknown", "unknown", "FLOPs or bytes are not known")
    if floor > t_compute and floor > t_memory:
        return Times(t_compute, t_memory, floor, "overhead", KERNEL_FLOOR)
    bucket: Bucket = "compute" if t_compute > t_memory else "memory"
    return Times(t_compute, t_memory, floor, bucket, bucket)


def by_intensity(
    flops: int | None, nbytes: int | None, dtype: str, unit: Unit, among: frozenset[str] = frozenset()
) -> tuple[Bucket, str]:
    """The bucket that holds whatever the machine is, and why: the intensity lies below, or above, every ridge.

    `among`: the names of the machines that the device may be; empty: any of the catalog's GPUs.
    """
    if flops is None or nbytes is None:
        return "unknown", "FLOPs or bytes are not known"
    low, high = ridges(unit, dtype, among)
    holds = f"holds on all {len(among)} machines that it can be" if among else "holds on every machine"
    if not nbytes:
        return "unknown", "it moves no bytes"
    intensity = flops / nbytes
    if intensity < low:
        return "memory", f"{intensity:.3g} FLOP/B is below every ridge ({low:.3g} and up): {holds} in the catalog"
    if intensity > high:
        return "compute", f"{intensity:.3g} FLOP/B is above every ridge (up to {high:.3g}): {holds} in the catalog"
    return "unknown", f"{intensity:.3g} FLOP/B lies between the ridges of known machines: name the machine with --on"


@cache
def ridges(unit: Unit, dtype: str, among: frozenset[str] = frozenset()) -> tuple[float, float]:
    """The lowest and highest ridge point, FLOP/B, of the catalog's GPUs (of those named in `among`).

    Of matrix units only those that have the dtype: where it ran on one, the machine has it.
    """
    found = [
        rate.value / machine.bandwidth
        for machine in catalog.load().values()
        if machine.kind == "gpu"
        and not machine.measured_of
        and (not among or machine.name in among)
        and (rate := machine.peak(unit, dtype) or (machine.rate(unit, dtype) if unit == "vector" else None)) is not None
    ]
    return (min(found), max(found)) if found else (0.0, float("inf"))


def suspects(names: Iterable[str], moved: Sequence[tuple[int, int]] = ()) -> frozenset[str]:
    """The names of the catalog's GPUs that a device may be, by what ran on it; empty: any.

    NVIDIA's libraries name kernels by the oldest architecture they are for, and Turing is the last that runs Volta's.
    `moved`: bytes and nanoseconds of kernels that did move so many; a machine whose memory and caches could not have
    is none of them.
    """
    text = "\n".join(names).lower()
    gpus = [machine for machine in catalog.load().values() if machine.kind == "gpu" and not machine.measured_of]
    possible = [machine for machine in gpus if _runs(text, machine)]
    fast = [m for m in possible if all(fits_in_time(nbytes, ns, m) for nbytes, ns in moved)]
    return frozenset(machine.name for machine in fast) if fast and len(fast) < len(gpus) else frozenset()


def _runs(names: str, machine: Machine) -> bool:
    """Whether a machine runs kernels of these names."""
    if "volta_" in names:
        return machine.architecture in ("Volta", "Turing")
    if "_gfx9" in names or "cijk_" in names:
        return machine.vendor == "AMD"
    if "ampere_" in names or "sm80_" in names or "cutlass_80" in names:
        return machine.vendor == "NVIDIA" and float(machine.compute) >= 8.0
    return True


def cache_bytes(machine: Machine) -> float:
    """Bytes of the largest cache that the whole device shares: what a kernel may take from elsewhere than memory."""
    sizes = [level.capacity.value for name in ("l2", "llc") if (level := machine.level(name)) and level.capacity]
    return max(sizes, default=0.0)


def fits_in_time(nbytes: int, ns: int, machine: Machine) -> bool:
    """Whether a kernel of `ns` can have moved `nbytes`: through device memory, and what its caches hold besides."""
    return nbytes <= ns * 1e-9 * machine.bandwidth * SLACK + cache_bytes(machine)


def from_cache(nbytes: int, ns: int, machine: Machine) -> bool:
    """Whether `nbytes` in `ns` is more than device memory gives, so that part of it came from a cache."""
    return nbytes > ns * 1e-9 * machine.bandwidth

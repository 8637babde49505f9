"""Range checks: public tables have rows quoted with sparsity, or a thousand times off. Such a row does not load."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from ridgepole.machine.model import Figure, Machine

BANDWIDTH = (1e10, 2e13)
"""Bytes a second of device memory: below the slowest laptop, above any HBM announced."""
BANDWIDTH_CPU = (1e8, 2e13)
"""As BANDWIDTH: one thread of a shared host copies a few GB/s."""
RIDGE = (1.0, 2000.0)
"""FLOP per byte. fp4 on the newest parts is the largest there is, about 1,300."""
RIDGE_FP64 = (0.1, 2000.0)
"""As RIDGE: parts made for graphics do fp64 at a 32nd or a 64th of fp32."""
RIDGE_CPU = (1e-3, 2000.0)
"""As RIDGE: a CPU without instructions for a dtype multiplies it one element at a time."""
SMS = (1, 1024)
CLOCK = (1e8, 6e9)
OVERHEAD = (1e-8, 1e-2)

TENSOR_FLOPS_PER_CLOCK = {
    "7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096, "10.0": 8192, "12.0": 2048,
    "gfx90a": 1024, "gfx942": 2048, "gfx950": 4096,
}  # fmt: skip
"""Dense fp16 FLOP a clock and SM (compute unit) at full rate: vendors' architecture whitepapers."""
SLACK = 1.15
"""Datasheets quote clocks that differ a little from the boost clock kept here."""


def validate(machine: Machine) -> list[str]:
    """What is impossible about a machine, one line each; empty where nothing is."""
    wrong = [f"{what} is {figure.value:g}, not a positive number" for what, figure in _unusable(machine)]
    if wrong:
        return wrong
    level = machine.level("dram")
    if level is None or level.bandwidth is None:
        return ["it has no device-memory bandwidth"]
    rate = level.bandwidth.value
    slowest, fastest = BANDWIDTH_CPU if machine.kind == "cpu" else BANDWIDTH
    if not slowest <= rate <= fastest:
        wrong.append(f"bandwidth {rate:.4g} B/s is outside {slowest:g} to {fastest:g}")
    for (unit, dtype), peak in machine.peaks.items():
        ridge = peak.value / rate
        least, most = RIDGE_CPU if machine.kind == "cpu" else RIDGE_FP64 if dtype == "float64" else RIDGE
        if not least <= ridge <= most:
            wrong.append(f"{unit} {dtype} ridge {ridge:.4g} FLOP/B is outside {least:g} to {most:g}")
    if not machine.peaks:
        wrong.append("it has no peak rate")
    if not SMS[0] <= machine.limits.sms.value <= SMS[1]:
        wrong.append(f"{machine.limits.sms.value:g} SMs is outside {SMS[0]} to {SMS[1]}")
    clock = machine.limits.clock
    if clock is not None and not CLOCK[0] <= clock.value <= CLOCK[1]:
        wrong.append(f"clock {clock.value:g} Hz is outside {CLOCK[0]:g} to {CLOCK[1]:g}")
    wrong += _sparse(machine)
    over = machine.overheads
    for name in ("dispatch", "launch", "floor", "graph_gap", "round_trip"):
        value = getattr(over, name).value
        if machine.kind == "cpu" and value == 0:
            continue  # it launches nothing
        if not OVERHEAD[0] <= value <= OVERHEAD[1]:
            wrong.append(f"{name} {value:g} s is outside {OVERHEAD[0]:g} to {OVERHEAD[1]:g}")
    if over.queue_depth.value < 1:
        wrong.append("queue depth is below 1")
    return wrong


def _unusable(machine: Machine) -> Iterator[tuple[str, Figure]]:
    """Figures that no device can have, whatever they are of."""
    named: list[tuple[str, Figure | None]] = [(f"peak {u} {d}", figure) for (u, d), figure in machine.peaks.items()]
    for level in machine.memory:
        of = {"capacity": level.capacity, "bandwidth": level.bandwidth, "latency": level.latency}
        named += [(f"{level.name} {what}", figure) for what, figure in of.items()]
    named += [(name, getattr(machine.limits, name)) for name in machine.limits.__dataclass_fields__]
    if machine.kind == "gpu":
        named += [(name, getattr(machine.overheads, name)) for name in machine.overheads.__dataclass_fields__]
    named += [*machine.links.items(), *machine.tuning.items(), ("power", machine.power)]
    for what, figure in named:
        if figure is not None and not (isfinite(figure.value) and figure.value > 0):
            yield what, figure


def _sparse(machine: Machine) -> list[str]:
    """Tensor peaks above what the SMs can issue densely: quoted with sparsity, or of another part."""
    clock, sms = machine.limits.clock, machine.limits.sms
    most = TENSOR_FLOPS_PER_CLOCK.get(machine.compute)
    wrong = []
    if most is not None and clock is not None and sms.source.kind != "assumed":
        ceiling = most * sms.value * clock.value * SLACK
        for dtype in ("float16", "bfloat16"):
            peak = machine.peak("tensor", dtype)
            if peak is not None and _comparable(peak, clock) and peak.value > ceiling:
                wrong.append(
                    f"tensor {dtype} {peak.value:.4g} FLOP/s exceeds the dense {ceiling:.4g}: quoted with sparsity?"
                )
    half = machine.peak("tensor", "float16") or machine.peak("tensor", "bfloat16")
    eight = machine.peak("tensor", "float8")
    if half is None or eight is None or machine.vendor == "Intel":
        return wrong
    if _comparable(half, eight) and eight.value > 2.3 * half.value:
        wrong.append(
            f"tensor float8 is {eight.value / half.value:.2f}x float16, dense parts have 2x: quoted with sparsity?"
        )
    return wrong


def _comparable(one: Figure, other: Figure) -> bool:
    """Whether both are measured or neither is: a measured rate beside a datasheet's says nothing of sparsity."""
    return (one.source.kind == "measured") == (other.source.kind == "measured")

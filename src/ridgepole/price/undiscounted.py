"""Constants for a machine whose bandwidth and peaks are measured: shares of a datasheet must not be taken again.

Pricing multiplies a datasheet's figures by what kernels reach of them. A measured figure is what was reached: its share
is 1, and a share that differed from it keeps its ratio to it. So a measurement that finds what pricing expects moves no
price, and one that finds a tenth less makes the work it limits a tenth slower. What was not measured keeps its share.
"""

from __future__ import annotations

from collections.abc import Mapping

from ridgepole.machine.model import Figure, Machine, Source, Unit
from ridgepole.price import tuning

STREAMING = "achieved.dram"
"""What streaming kernels reach of the device memory's bandwidth: the one that is measured."""
OF_BANDWIDTH = ("gemm.dram",)
"""Other shares of the device memory's bandwidth; `copy.fraction`, `attention.dram` and the like are of STREAMING."""
OF_L2 = "transpose.l2"
"""A share of the L2's bandwidth as it is known without a measurement."""
OF_PEAK = ("attention.rate",)
"""Other shares of the peak that does an op's arithmetic; `conv.fraction` is of a product's rate."""
OF_LANES = "issue."
"""Instructions an element, at a rate taken from the fp32 peak."""


def constants(base: Machine, measured: Machine) -> Mapping[str, Figure]:
    """The tuning of `measured`, a measurement of `base`, by key. Shares of one dtype's peak are "key dtype"."""
    found = dict(base.tuning)
    if measured.level("dram") != base.level("dram") and measured.bandwidth != base.bandwidth:
        reached = tuning.constant(base, STREAMING).value
        for key in (STREAMING, *OF_BANDWIDTH):
            found[key] = _times(base, key, 1 / reached, "the bandwidth is measured")
    for (unit, dtype), figure in measured.peaks.items():
        if figure == base.peaks.get((unit, dtype)):
            continue
        share = _share(unit, dtype)
        reached = tuning.constant(base, share).value
        found[f"{share} {dtype}"] = _times(base, share, 1 / reached, f"the {unit} {dtype} peak is measured")
        if figure == measured.rate("tensor", dtype):
            for key in OF_PEAK:
                found[f"{key} {dtype}"] = _times(base, key, 1 / reached, f"the {unit} {dtype} peak is measured")
    found |= _of_l2(base, measured)
    lanes, now = base.peak("vector", "float32"), measured.peak("vector", "float32")
    if lanes is not None and now is not None and lanes != now:
        for key in dict.fromkeys((*tuning.load()["default"], *base.tuning)):
            if key.startswith(OF_LANES):
                found[key] = _times(base, key, now.value / lanes.value, "lanes issue at their clock, not at the peak")
    return found


def _share(unit: Unit, dtype: str) -> str:
    if unit == "vector":
        return "achieved.vector"
    return "achieved.fp8" if dtype == "float8" else "achieved.tensor"


def _of_l2(base: Machine, measured: Machine) -> Mapping[str, Figure]:
    """The sectors a second that a scattered warp moves are the L2's own, whatever a copy within it reaches."""
    before, now = base.level("l2"), measured.level("l2")
    old = before.bandwidth if before is not None else None
    new = now.bandwidth if now is not None else None
    if old is None or new is None or old == new:
        return {}
    return {OF_L2: _times(base, OF_L2, old.value / new.value, "the L2's bandwidth is measured")}


def _times(base: Machine, key: str, factor: float, why: str) -> Figure:
    figure = tuning.constant(base, key)
    return Figure(
        figure.value * factor,
        figure.unit,
        Source("derived", f"{figure.value:g} x {factor:.4g}: {why}; {figure.source}"),
    )

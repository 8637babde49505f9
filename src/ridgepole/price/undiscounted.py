"""Constants for a machine whose bandwidth and peaks are measured: shares of a datasheet must not be taken again.

Pricing multiplies a datasheet's figures by what kernels reach of them. A measured figure is what was reached, so each
such share is divided by how much of the datasheet was measured; priced times move only by what the measurement differs.
"""

from __future__ import annotations

from collections.abc import Mapping

from ridgepole.machine.model import Figure, Machine, Source, Unit
from ridgepole.price import tuning

OF_BANDWIDTH = ("achieved.dram", "gemm.dram")
"""Shares of the device memory's bandwidth."""
OF_PEAK: Mapping[str, tuple[Unit, str]] = {
    "achieved.tensor": ("tensor", "bfloat16"),
    "achieved.fp8": ("tensor", "float8"),
    "achieved.vector": ("vector", "float32"),
}
"""Shares of a peak, and the peak that stands for all of its unit."""
OF_LANES = "issue."
"""Instructions an element, at a rate taken from the fp32 peak."""


def constants(base: Machine, measured: Machine) -> Mapping[str, Figure]:
    """The tuning of `measured`, a measurement of `base`, by key."""
    found = dict(base.tuning)
    moved = base.bandwidth / measured.bandwidth
    for key in OF_BANDWIDTH:
        found[key] = _times(base, key, moved, "the bandwidth is measured")
    for key, (unit, dtype) in OF_PEAK.items():
        before, now = base.peak(unit, dtype), measured.peak(unit, dtype)
        if before is not None and now is not None and before != now:
            found[key] = _times(base, key, before.value / now.value, f"the {unit} {dtype} peak is measured")
    lanes, now = base.peak("vector", "float32"), measured.peak("vector", "float32")
    if lanes is not None and now is not None and lanes != now:
        for key in (*tuning.load()["default"], *base.tuning):
            if key.startswith(OF_LANES):
                found[key] = _times(base, key, now.value / lanes.value, "lanes issue at their clock, not at the peak")
    return found


def _times(base: Machine, key: str, factor: float, why: str) -> Figure:
    figure = tuning.constant(base, key)
    return Figure(
        figure.value * factor,
        figure.unit,
        Source("derived", f"{figure.value:g} x {factor:.4g}: {why}; {figure.source}"),
    )

"""Pricing on a measured machine moves only by what the measurement differs from the datasheet's achieved share."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from ridgepole.machine import catalog
from ridgepole.machine.measured import Measured, build
from ridgepole.machine.model import Figure, Machine, MemoryLevel, Source
from ridgepole.price import tuning
from ridgepole.price.kernel import KernelTime, kernel_time
from ridgepole.price.undiscounted import constants
from ridgepole.work.op import Call, Op, Tensor

pytest.importorskip("torch")
HERE = Source("measured", "a test")


def as_expected() -> Machine:
    """An H200 measured to reach just what pricing takes a datasheet to reach."""
    base = catalog.find("h200")

    def reached(key: str, value: float, unit: str) -> Figure:
        return Figure(value * tuning.constant(base, key).value, unit, HERE)

    bandwidth = reached("achieved.dram", base.bandwidth, "B/s")
    peaks = {
        ("tensor", "bfloat16"): reached("achieved.tensor", base.peaks["tensor", "bfloat16"].value, "FLOP/s"),
        ("vector", "float32"): reached("achieved.vector", base.peaks["vector", "float32"].value, "FLOP/s"),
    }
    found = build(base, Measured(peaks=peaks, levels={"dram": MemoryLevel("dram", "device", None, bandwidth, None)}))  # type: ignore[arg-type]
    return replace(found, tuning=MappingProxyType(dict(constants(base, found))))


CALLS = {
    "x * 2": Call("aten::mul", (Tensor((4096, 4096), "bfloat16"), 2)),
    "gelu": Call("aten::gelu", (Tensor((4096, 4096), "bfloat16"),)),
    "product": Call("aten::mm", (Tensor((4096, 4096), "bfloat16"), Tensor((4096, 4096), "bfloat16"))),
    "matrix-vector": Call("aten::mm", (Tensor((1, 4096), "bfloat16"), Tensor((4096, 14336), "bfloat16"))),
    "fp32 product": Call("aten::mm", (Tensor((2048, 2048), "float32"), Tensor((2048, 2048), "float32"))),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_measurement_that_confirms_the_model_does_not_move_its_prices(name: str) -> None:
    from ridgepole.work.cost import assess

    call = CALLS[name]
    times = []
    for machine in (catalog.find("h200"), as_expected()):
        found = kernel_time(Op(call, assess(call)), machine)
        assert isinstance(found, KernelTime)
        times.append(found.seconds)
    assert times[1] == pytest.approx(times[0], rel=0.03)


def test_what_was_not_measured_keeps_its_constants() -> None:
    base = catalog.find("h200")
    found = build(base, Measured())
    changed = constants(base, found)
    assert changed["achieved.dram"].value == pytest.approx(tuning.constant(base, "achieved.dram").value)
    assert "achieved.tensor" not in changed

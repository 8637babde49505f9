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


def measured_h200(moved: float = 1.0, worked: float = 1.0) -> Machine:
    """An H200 measured to reach what pricing takes a datasheet to reach, times `moved` bytes and `worked` FLOPs."""
    base = catalog.find("h200")

    def reached(key: str, value: float, unit: str) -> Figure:
        times = moved if unit == "B/s" else worked
        return Figure(value * tuning.constant(base, key).value * times, unit, HERE)

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
    "prefill": Call(
        "aten::scaled_dot_product_attention",
        tuple(Tensor((4, 32, 4096, 128), "bfloat16") for _ in range(3)),
        outputs=(Tensor((4, 32, 4096, 128), "bfloat16"),),
    ),
    "fp16 product": Call("aten::mm", (Tensor((4096, 4096), "float16"), Tensor((4096, 4096), "float16"))),
    "fp32 product": Call("aten::mm", (Tensor((2048, 2048), "float32"), Tensor((2048, 2048), "float32"))),
}


def seconds(name: str, machine: Machine) -> float:
    from ridgepole.work.cost import assess

    call = CALLS[name]
    found = kernel_time(Op(call, assess(call)), machine)
    assert isinstance(found, KernelTime)
    return found.seconds


@pytest.mark.parametrize("name", CALLS)
def test_a_measurement_that_confirms_the_model_does_not_move_its_prices(name: str) -> None:
    assert seconds(name, measured_h200()) == pytest.approx(seconds(name, catalog.find("h200")), rel=0.03)


@pytest.mark.parametrize("name", ["x * 2", "matrix-vector"])
def test_a_memory_that_measures_a_tenth_slower_makes_moving_a_tenth_slower(name: str) -> None:
    assert seconds(name, measured_h200(moved=0.9)) == pytest.approx(seconds(name, catalog.find("h200")) / 0.9, rel=0.03)


@pytest.mark.parametrize("name", ["product", "prefill", "fp32 product"])
def test_a_unit_that_measures_a_tenth_slower_makes_its_products_a_tenth_slower(name: str) -> None:
    assert seconds(name, measured_h200(worked=0.9)) == pytest.approx(
        seconds(name, catalog.find("h200")) / 0.9, rel=0.03
    )


def test_a_peak_that_was_not_measured_keeps_the_datasheet_and_its_share() -> None:
    slow = measured_h200(worked=0.5)
    assert slow.peak("tensor", "float16") == catalog.find("h200").peak("tensor", "float16")
    name = "fp16 product"
    assert seconds(name, slow) == pytest.approx(seconds(name, catalog.find("h200")), rel=0.01)


def test_transposing_copies_stay_where_they_are_when_the_l2_is_measured() -> None:
    base = catalog.find("h200")
    l2 = MemoryLevel("l2", "device", None, Figure(7e12, "B/s", HERE), None)
    found = build(base, Measured(levels={"l2": l2}))
    share = constants(base, found)["transpose.l2"].value
    before = base.level("l2")
    assert before is not None and before.bandwidth is not None
    assert share * 7e12 == pytest.approx(tuning.constant(base, "transpose.l2").value * before.bandwidth.value)


def test_what_was_not_measured_keeps_its_constants() -> None:
    base = catalog.find("h200")
    assert constants(base, build(base, Measured())) == base.tuning

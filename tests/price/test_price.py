"""The worked numbers of the design, and what a price says about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ridgepole.attribute.attribute import account
from ridgepole.attribute.ledger import KernelWork
from ridgepole.machine.model import Machine
from ridgepole.price.money import cost as money_for
from ridgepole.price.money import cost_per_million, per_second
from ridgepole.price.price import price
from ridgepole.work.op import Call, Cost, Op, Program, Tensor, Unpriced

MakeOp = Callable[..., Op]


def scale_and_shift(pointwise: MakeOp) -> Program:
    shape = (4096, 4096)
    ops = (
        pointwise("aten::mul", shape, reads=(1,), makes=2),
        pointwise("aten::add", shape, reads=(2,), makes=3),
    )
    return Program(ops, "x * 2 + 1", returned=(3,), peak_memory=3 * 2 * 4096 * 4096)


def test_two_elementwise_kernels_travel_134_megabytes_in_40_microseconds(h100: Machine, pointwise: MakeOp) -> None:
    result = price(scale_and_shift(pointwise), h100)
    assert result.launches == 2
    assert result.bytes == 4 * 33_554_432
    assert result.travel == pytest.approx(40.1e-6, rel=2e-3)
    assert result.flops == 33_554_432
    assert result.math == pytest.approx(0.50e-6, rel=5e-3)
    assert result.travel / result.math == pytest.approx(80, rel=0.01)
    assert result.launch == pytest.approx(10e-6)
    assert result.peak_memory == 3 * 33_554_432


def test_fused_it_travels_half_as_long_in_one_kernel(h100: Machine, pointwise: MakeOp) -> None:
    result = price(scale_and_shift(pointwise), h100, "compiled")
    assert result.launches == 1
    assert result.travel == pytest.approx(20.0e-6, rel=3e-3)
    assert result.flops == 33_554_432
    assert result.gpu_seconds < price(scale_and_shift(pointwise), h100).gpu_seconds * 0.6


def test_its_grid_is_65536_blocks_in_62_waves(h100: Machine, pointwise: MakeOp) -> None:
    (mul, _) = price(scale_and_shift(pointwise), h100).geometry
    spread = mul.spread
    assert (spread.elements, spread.grid, spread.block) == (16_777_216, 65_536, 256)
    assert (spread.blocks_per_sm, spread.wave, spread.launches) == (8, 1_056, 63)
    assert spread.waves == pytest.approx(62.06, abs=0.01)


def test_a_launch_bound_decode_step_of_480_launches(h100: Machine) -> None:
    weights = 16_000_000_000 // 480
    tensor = Tensor((weights // 2,), "bfloat16")
    out = Tensor((4096,), "bfloat16")
    one = Op(
        Call("aten::mm", (tensor,), (out,)), Cost(weights, tensor.nbytes, out.nbytes, "bfloat16", "tensor", "matmul")
    )
    result = price(Program((one,) * 480, "decode"), h100)
    assert result.launch == pytest.approx(2.4e-3)
    assert result.travel == pytest.approx(4.8e-3, rel=0.01)
    assert result.launch / (result.launch + result.travel) == pytest.approx(0.33, abs=0.01)
    assert result.low <= result.seconds <= result.high


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_a_price_lies_in_its_range_and_its_timeline_is_as_long(h100: Machine, pointwise: MakeOp, mode: str) -> None:
    result = price(scale_and_shift(pointwise), h100, mode)  # type: ignore[arg-type]
    assert result.low < result.seconds < result.high
    assert result.timeline.window.ns == pytest.approx(result.seconds * 1e9)
    assert result.timeline.kind == "priced"
    assert result.gpu_seconds <= result.seconds
    assert result.gpu_seconds >= result.travel
    assert sum(row.seconds for row in result.ops) == pytest.approx(result.gpu_seconds)


def test_what_has_no_cost_is_listed_and_said_to_be_missing(h100: Machine, pointwise: MakeOp) -> None:
    odd = Op(Call("mine::secret", ()), Unpriced("no formula"))
    result = price(Program((odd, odd, pointwise("aten::mul", (8,))), "odd"), h100)
    assert [(u.operator, u.count, u.why) for u in result.unpriced] == [("mine::secret", 2, "no formula")]
    assert any("2 of 3 ops have no price" in note for note in result.notes)
    assert result.launches == 1


def test_alike_calls_are_one_row(h100: Machine, pointwise: MakeOp) -> None:
    op = pointwise("aten::mul", (1 << 20,))
    (row,) = price(Program((op,) * 32, "layers"), h100).ops
    assert row.count == 32
    assert row.seconds == pytest.approx(32 * row.each.seconds)


def test_views_cost_the_cpu_only(h100: Machine) -> None:
    view = Op(Call("aten::view", (Tensor((8,), "float32"),)), Cost(0, 0, 0, "float32", "vector", "view", 0))
    result = price(Program((view,) * 4, "views"), h100)
    assert result.launches == 0 and result.bytes == 0 and result.gpu_seconds == 0
    assert result.seconds > 0


def test_a_program_of_nothing_takes_no_time(h100: Machine) -> None:
    for mode in ("eager", "compiled"):
        assert price(Program((), "nothing"), h100, mode).seconds == 0  # type: ignore[arg-type]


def test_a_cpu_is_priced_without_launches(h100: Machine, pointwise: MakeOp) -> None:
    cpu = replace(h100, kind="cpu", name="a CPU")
    result = price(scale_and_shift(pointwise), cpu)
    assert {span.kind for span in result.timeline.spans} == {"op"}
    assert result.timeline.devices[0].id == "cpu"
    assert result.seconds >= result.gpu_seconds * 0.999


def test_a_program_that_does_not_fit_is_priced_and_said_not_to(h100: Machine, pointwise: MakeOp) -> None:
    roomy = Program((pointwise("aten::mul", (8,)),), "large", peak_memory=10**9)
    large = replace(roomy, peak_memory=141 * 10**9)
    assert any("needs 141 GB at its peak" in note for note in price(large, h100, "graph").notes)
    assert not any("does not fit" in note for note in price(roomy, h100, "graph").notes)


def test_a_graph_leaves_out_waits_and_says_so(h100: Machine, pointwise: MakeOp) -> None:
    waiting = replace(pointwise("aten::mul", (8,)), syncs=True)
    result = price(Program((waiting,), "item"), h100, "graph")
    assert any("makes the CPU wait" in note for note in result.notes)


def test_tokens_and_money() -> None:
    assert per_second(8, 0.004) == 2000
    assert money_for(1800, 4.0) == 2.0
    assert cost_per_million(1, 0.01, 3.6) == pytest.approx(10.0)


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_a_priced_timeline_is_accounted_for_like_a_measured_one(h100: Machine, pointwise: MakeOp, mode: str) -> None:
    ops = (*scale_and_shift(pointwise).ops, *[pointwise("aten::mul", (8,))] * 20)
    timeline = price(Program(ops, "x * 2 + 1, then crumbs"), h100, mode).timeline  # type: ignore[arg-type]
    kernels = {
        i: KernelWork("memory", "dram", "exact") for i, span in enumerate(timeline.spans) if span.kind == "kernel"
    }
    ledger = account(timeline, h100, kernels)
    totals = ledger.busiest.buckets
    assert sum(totals.values()) == ledger.window_ns == timeline.window.ns
    assert totals["memory"] == timeline.devices[0].busy_ns
    assert totals["unknown"] == 0
    assert totals["overhead"] == timeline.window.ns - timeline.devices[0].busy_ns


def test_a_graph_of_tiny_kernels_takes_a_floor_each_gaps_and_all(h100: Machine, pointwise: MakeOp) -> None:
    result = price(Program((pointwise("aten::mul", (8,)),) * 200, "tiny"), h100, "graph")
    assert result.seconds == pytest.approx(200 * h100.overheads.floor.value + h100.overheads.launch.value, rel=0.02)
    assert result.timeline.devices[0].busy_ns * 1e-9 < result.gpu_seconds

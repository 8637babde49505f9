"""Kernel models: never under the physical bound, and the right thing named as the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.machine import catalog
from ridgepole.machine.model import Machine
from ridgepole.price import tuning
from ridgepole.price.bound import physical
from ridgepole.price.flags import Flags
from ridgepole.price.kernel import KernelTime, kernel_time, model, overlapped
from ridgepole.work.op import Attention, Call, Cost, Family, Gemm, Op, Rows, Tensor, Unpriced

MakeOp = Callable[..., Op]

sizes = st.integers(1, 1 << 14)
details = st.one_of(
    st.none(),
    st.builds(Gemm, st.integers(1, 64), sizes, sizes, sizes, st.sampled_from([1, 2, 4, 8, 16])),
    st.builds(
        Attention, st.integers(1, 32), st.sampled_from([8, 16, 32]), st.sampled_from([1, 2, 8]), sizes, sizes,
        st.sampled_from([32, 64, 128, 256]), st.sampled_from([64, 128]), st.booleans(), st.booleans(),
    ),
    st.builds(Rows, sizes, sizes),
)  # fmt: skip
dtypes = st.sampled_from(["bfloat16", "float32", "float16", "float64", "int64", "bool", "float8_e4m3fn"])
costs = st.builds(
    Cost,
    st.integers(0, 10**16),
    st.integers(0, 10**11),
    st.integers(0, 10**11),
    dtypes,
    st.sampled_from(["tensor", "vector"]),
    st.sampled_from([f for f in get_args(Family) if f != "view"]),
    st.integers(1, 5),
    details,
)


def timed(op: Op, machine: Machine, **flags: bool) -> KernelTime:
    time = kernel_time(op, machine, Flags(**flags))
    assert isinstance(time, KernelTime)
    return time


@given(costs, sizes, st.booleans(), st.sampled_from(sorted(catalog.load())))
def test_no_kernel_is_faster_than_its_flops_at_peak_or_its_bytes_at_full_bandwidth(
    cost: Cost, elements: int, tf32: bool, name: str
) -> None:
    op = Op(Call("aten::any", (Tensor((elements,), cost.dtype),), (Tensor((elements,), cost.dtype),)), cost)
    machine = catalog.find(name)
    time = timed(op, machine, tf32=tf32)
    bound = physical(cost, machine, Flags(tf32=tf32)).seconds
    assert time.seconds >= bound
    assert bound <= time.low <= time.seconds <= time.high
    assert time.limit and time.why


def test_every_family_has_a_model_and_every_model_a_family() -> None:
    families = set(get_args(Family)) - {"view"}
    assert set(model.all()) == families


def test_the_bound_uses_the_l2_only_while_the_bytes_fit(h100: Machine) -> None:
    small = Cost(0, 20_000_000, 20_000_000, "float32", "vector", "copy")
    large = replace(small, read=40_000_000)
    assert physical(small, h100, Flags()).level == "l2"
    assert physical(small, h100, Flags()).seconds == pytest.approx(40e6 / 16.7e12)
    assert physical(large, h100, Flags()).level == "dram"
    assert physical(large, h100, Flags()).seconds == pytest.approx(60e6 / 3.35e12)


def test_a_matrix_of_4097_pays_for_its_alignment(h200: Machine, product: MakeOp) -> None:
    even, odd = timed(product(4096, 4096, 4096), h200), timed(product(4097, 4097, 4097, aligned=2), h200)
    assert even.limit == "tensor"
    assert odd.limit == "alignment"
    assert "2-byte aligned" in odd.why
    assert 4.5 < odd.seconds / even.seconds < 7.5
    assert 2 * 4096**3 / even.seconds == pytest.approx(797e12, rel=0.1)
    assert 2 * 4097**3 / odd.seconds == pytest.approx(133e12, rel=0.15)


def test_fp32_products_run_on_the_vector_units_unless_tf32_is_allowed(h200: Machine, product: MakeOp) -> None:
    op = product(8192, 8192, 8192, "float32")
    plain, tf32 = timed(op, h200), timed(op, h200, tf32=True)
    assert plain.limit == "vector"
    assert 2 * 8192**3 / plain.seconds == pytest.approx(50.8e12, rel=0.1)
    assert tf32.limit == "tensor"
    assert 2 * 8192**3 / tf32.seconds == pytest.approx(409e12, rel=0.1)


def test_a_64_product_takes_its_start_and_one_walk_along_k(h200: Machine, product: MakeOp) -> None:
    time = timed(product(64, 64, 64), h200)
    # 2.62 us in a graph on an H200: 0.2 TFLOP/s of 989.
    assert time.limit in ("waves", "launch floor")
    assert time.seconds == pytest.approx(2.62e-6, rel=0.25)


def test_a_skinny_product_takes_its_bytes_and_a_start(h200: Machine, product: MakeOp) -> None:
    time = timed(product(1, 28672, 4096), h200)
    assert time.limit == "dram"
    assert time.seconds == pytest.approx(57.1e-6, rel=0.1)


def test_few_tiles_leave_sms_idle_and_waves_are_named(h100: Machine, product: MakeOp) -> None:
    assert timed(product(256, 256, 128), h100).limit in ("waves", "launch floor")
    many, one_more = timed(product(11 * 128, 12 * 128, 4096), h100), timed(product(2048, 2048, 4096), h100)
    assert one_more.seconds > many.seconds


def test_the_smallest_kernel_is_at_its_floor(h100: Machine, pointwise: MakeOp) -> None:
    time = timed(pointwise("aten::add", (1024,)), h100)
    assert time.limit == "launch floor"
    assert time.seconds == pytest.approx(1.1e-6, rel=0.1)


def test_a_transposing_copy_is_held_back_by_sectors(h200: Machine, pointwise: MakeOp) -> None:
    plain = timed(pointwise("aten::clone", (16384, 4096), "float32", family="copy"), h200)
    strided = timed(pointwise("aten::clone", (16384, 4096), "float32", family="transpose"), h200)
    assert plain.limit == "dram"
    assert strided.limit == "l2 sectors"
    assert strided.seconds > 3 * plain.seconds


def test_causal_attention_does_about_half_the_work(h100: Machine) -> None:
    def sdpa(causal: bool) -> Op:
        q = Tensor((4, 32, 8192, 128), "bfloat16")
        detail = Attention(4, 32, 32, 8192, 8192, 128, 128, causal)
        flops = 4 * q.numel * 8192 // (2 if causal else 1)
        cost = Cost(flops, 3 * q.nbytes, q.nbytes, "bfloat16", "tensor", "attention", 1, detail)
        return Op(Call("aten::_scaled_dot_product_flash_attention", (q, q, q), (q,)), cost)

    assert timed(sdpa(True), h100).seconds == pytest.approx(timed(sdpa(False), h100).seconds / 2, rel=0.1)


def test_decode_attention_is_bound_by_its_cache_and_pays_for_few_heads_only_once(h200: Machine) -> None:
    q, k = Tensor((64, 32, 1, 128), "bfloat16"), Tensor((64, 8, 8192, 128), "bfloat16")
    cost = Cost(
        4 * q.numel * 8192, q.nbytes + 2 * k.nbytes, q.nbytes, "bfloat16", "tensor", "attention", 1,
        Attention(64, 32, 8, 1, 8192, 128, 128, False),
    )  # fmt: skip
    time = timed(Op(Call("aten::sdpa", (q, k, k), (q,)), cost), h200)
    assert time.limit == "dram"
    assert time.seconds == pytest.approx(482e-6, rel=0.2)


def test_an_embedding_reads_its_rows_not_its_table(h200: Machine) -> None:
    table, index = Tensor((128256, 4096), "bfloat16"), Tensor((8192,), "int64")
    out = Tensor((8192, 4096), "bfloat16")
    cost = Cost(0, out.nbytes + index.nbytes, out.nbytes, "bfloat16", "vector", "gather")
    time = timed(Op(Call("aten::embedding", (table, index), (out,)), cost), h200)
    assert time.seconds == pytest.approx(38.5e-6, rel=0.2)


def test_views_are_free_and_unknown_costs_stay_unknown(h100: Machine) -> None:
    view = Op(Call("aten::view", ()), Cost(0, 0, 0, "float32", "vector", "view", 0))
    assert timed(view, h100).seconds == 0
    unknown = Op(Call("mine::op", ()), Unpriced("no formula"))
    assert kernel_time(unknown, h100) == Unpriced("no formula")


@given(st.integers(1, 1 << 26), st.integers(1, 1 << 26))
def test_more_elements_never_take_less_time(h100: Machine, pointwise: MakeOp, one: int, other: int) -> None:
    few, many = sorted((one, other))
    assert timed(pointwise("aten::add", (few,)), h100).seconds <= timed(pointwise("aten::add", (many,)), h100).seconds


def test_every_constant_has_a_source_and_a_machine_may_have_its_own(h100: Machine) -> None:
    for section in tuning.load().values():
        for key, figure in section.items():
            assert figure.source.detail, key
            assert key in tuning.load()["default"], f"{key} has no default"
    own = replace(tuning.constant(h100, "achieved.dram"), value=0.5)
    assert tuning.constant(replace(h100, tuning={"achieved.dram": own}), "achieved.dram").value == 0.5
    with pytest.raises(KeyError):
        tuning.constant(h100, "no.such.constant")


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=4))
def test_parts_that_overlap_take_no_less_than_the_largest_and_no_more_than_their_sum(parts: list[float]) -> None:
    assert max(parts) * (1 - 1e-12) <= overlapped(*parts) <= sum(parts) * (1 + 1e-12)

"""What traces leave out: results' shapes and dtypes, worked out from the arguments, are those that torch makes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepole.work.cost import assess
from ridgepole.work.op import Call, Cost, Tensor

from .seen import meta, seen

some = settings(max_examples=60, deadline=None)
aten = torch.ops.aten


def agree(run: Callable[[], object]) -> None:
    """With outputs (capture) and without (traces) each call costs the same."""
    calls = seen(run)
    assert calls
    for call in calls:
        recorded = assess(call)
        assert isinstance(recorded, Cost), (call, recorded)
        assert assess(Call(call.operator, call.args)) == recorded, call


@some
@given(
    side=st.integers(8, 19),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 4),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
    ceil=st.booleans(),
)
def test_pools_have_the_windows_that_torch_gives_them(
    side: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool
) -> None:
    padding = min(padding, kernel // 2)
    x = meta(2, 3, side, side + 1)
    agree(lambda: aten.max_pool2d_with_indices(x, [kernel] * 2, [stride] * 2, [padding] * 2, [dilation] * 2, ceil))
    agree(lambda: aten.avg_pool2d(x, [kernel] * 2, [stride] * 2, [padding] * 2, ceil))


dtypes = st.sampled_from([torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.bool])
shapes = st.sampled_from([(), (1,), (4,), (3, 4), (3, 1)])
operands = st.tuples(shapes, dtypes) | st.sampled_from([2, 0.5])


@some
@given(
    st.tuples(shapes, dtypes),
    operands,
    st.sampled_from(["add", "mul", "div", "maximum", "eq", "atan2", "where"]),
)
def test_results_have_the_dtype_that_torch_promotes_to(
    first: tuple[tuple[int, ...], torch.dtype], second: object, name: str
) -> None:
    x = meta(*first[0], dtype=first[1])
    other = meta(*second[0], dtype=second[1]) if isinstance(second, tuple) else second
    if not isinstance(other, torch.Tensor) and name in ("maximum", "atan2", "where"):
        return
    if name == "where":
        agree(lambda: torch.where(meta(3, 4, dtype=torch.bool), x, other))
    else:
        agree(lambda: getattr(torch, name)(x, other))


@some
@given(shapes, dtypes, st.sampled_from(["sqrt", "exp", "sigmoid", "reciprocal", "rsqrt", "cos", "log"]))
def test_curves_of_whole_numbers_are_fractions(shape: tuple[int, ...], dtype: torch.dtype, name: str) -> None:
    agree(lambda: getattr(torch, name)(meta(*shape, dtype=dtype)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.bool])
def test_sums_and_scans_of_whole_numbers_are_int64(dtype: torch.dtype) -> None:
    x = meta(6, 5, dtype=dtype)
    agree(lambda: (torch.sum(x), torch.sum(x, 1), torch.cumsum(x, 0), torch.prod(x, 1)))
    agree(lambda: torch.sum(x, 1, dtype=torch.float32))


def test_what_finds_an_extreme_writes_where_it_was() -> None:
    x = meta(6, 5)
    agree(lambda: (torch.cummax(x, 0), torch.cummin(x, 1), torch.max(x, 1), torch.median(x, 0), torch.aminmax(x)))
    agree(lambda: (torch.max(x), torch.min(x), torch.var_mean(x, 1)))
    agree(lambda: torch.nn.functional.adaptive_max_pool2d(meta(2, 3, 8, 8), 4))


def test_products_of_every_shape_write_what_torch_makes() -> None:
    agree(lambda: torch.addbmm(meta(3, 5), meta(7, 3, 4), meta(7, 4, 5)))
    agree(lambda: aten.matmul(meta(8, 1, 3, 4), meta(2, 4, 5)))
    agree(lambda: torch.mm(meta(3, 4, dtype=torch.complex64), meta(4, 5, dtype=torch.complex64)))
    agree(lambda: torch.nn.functional.glu(meta(3, 8)))


def test_a_spectrum_of_a_real_signal_has_half_its_frequencies() -> None:
    agree(lambda: torch.fft.rfft(meta(4, 1000)))
    agree(lambda: torch.fft.irfft(meta(4, 501, dtype=torch.complex64), 1000))
    agree(lambda: torch.fft.fft2(meta(4, 32, 32, dtype=torch.complex64)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_losses_of_one_number_do_the_arithmetic_of_every_element(dtype: torch.dtype) -> None:
    x, y = meta(32, 10, dtype=dtype), meta(32, 10, dtype=dtype)
    f = torch.nn.functional
    for reduction in ("none", "mean"):
        agree(lambda r=reduction: (f.mse_loss(x, y, reduction=r), f.smooth_l1_loss(x, y, reduction=r)))  # type: ignore[misc]
        agree(lambda r=reduction: f.binary_cross_entropy_with_logits(x, y, reduction=r))  # type: ignore[misc]
    mean = assess(seen(lambda: f.mse_loss(x, y))[0])
    assert isinstance(mean, Cost)
    assert (mean.flops, mean.kernels, mean.family) == (3 * 320, 2, "reduction")


def test_a_mask_keeps_an_unknown_part_and_the_cost_says_so() -> None:
    x, mask = Tensor((50, 8), "float32"), Tensor((50,), "bool")
    for call in (
        Call("aten::index", (x, (mask,))),
        Call("aten::masked_select", (x, mask)),
        Call("aten::nonzero", (x,)),
        Call("aten::index_put_", (x, (mask,), Tensor((), "float32"))),
    ):
        found = assess(call)
        assert isinstance(found, Cost) and found.assumed, call
    kept = assess(Call("aten::index", (x, (mask,)), (Tensor((7, 8), "float32"),)))
    assert isinstance(kept, Cost) and not kept.assumed and kept.written == 7 * 8 * 4


def test_one_and_true_and_a_fraction_are_not_one_call_to_the_cache() -> None:
    x = Tensor((1000,), "int64")
    costs = [assess(Call("aten::mul", (x, value))) for value in (1, 1.0, True)]
    assert [cost.written for cost in costs if isinstance(cost, Cost)] == [8000, 4000, 8000]
    q = Tensor((1, 8, 64, 64), "bfloat16")
    flash = [assess(Call("aten::_scaled_dot_product_flash_attention", (q, q, q, 0.0, value))) for value in (0, True)]
    assert [cost.flops for cost in flash if isinstance(cost, Cost)] == [4 * 8 * 64**3, 2 * 8 * 64**3]

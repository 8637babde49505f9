"""Families by hand: launches over lists, grouped products, masks by their corner, recurrent layers, rarer operators."""

from __future__ import annotations

import pytest

from ridgepole.work.cost import assess
from ridgepole.work.formulas.foreach import launches
from ridgepole.work.op import Call, Cost, Gemm, Tensor


def t(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(shape, dtype)


def priced(operator: str, *args: object, outputs: tuple[Tensor, ...] = ()) -> Cost:
    cost = assess(Call(operator, args, outputs))  # type: ignore[arg-type]
    assert isinstance(cost, Cost), cost
    return cost


def gpt2() -> list[Tensor]:
    """GPT-2's parameters, in order."""
    layer = [t(768), t(768), t(768, 2304), t(2304), t(768, 768), t(768), t(768), t(768)]
    layer += [t(768, 3072), t(3072), t(3072, 768), t(768)]
    return [t(50257, 768), t(1024, 768), *(layer * 12), t(768), t(768)]


def test_a_fused_step_of_gpt2_takes_the_launches_that_an_h200_recorded() -> None:
    # h200-gpt2-train-b8-s1024.eager: grids of 320 five times, 319 and 76 a step.
    lists = tuple(tuple(gpt2()) for _ in range(4))
    assert priced("aten::_fused_adamw_", *lists, (), (), 0.001).kernels == 7
    # Its step counters, 148 numbers: 110 and 38.
    counters = tuple(t() for _ in range(148))
    assert priced("aten::_foreach_add_", counters, 1).kernels == 2


def test_large_tensors_fill_launches_with_blocks_and_small_ones_with_addresses() -> None:
    assert launches([t(320 * 65536)], 1) == 1
    assert launches([t(320 * 65536 + 1)], 1) == 2
    assert launches([t(1)] * 110, 1) == 1
    assert launches([t(1)] * 111, 1) == 2
    assert launches([t(1)] * 37, 4) == 2


def test_zeroing_gradients_reads_nothing() -> None:
    grads = tuple(t(1000) for _ in range(4))
    cost = priced("aten::_foreach_zero_", grads)
    assert (cost.read, cost.written, cost.flops) == (0, 16000, 0)


def test_grouped_products_do_each_row_once() -> None:
    bounds = t(4, dtype="int32")
    half = "bfloat16"
    # Rows to experts, its mirror, gradients of the weights, a plain batch: 4 groups, 100 rows, 16 x 24.
    forward = priced("aten::_grouped_mm", t(100, 16, dtype=half), t(4, 16, 24, dtype=half), bounds)
    assert forward.flops == 2 * 100 * 16 * 24 and forward.written == 100 * 24 * 2
    mirror = priced("aten::_grouped_mm", t(4, 24, 16, dtype=half), t(16, 100, dtype=half), bounds)
    assert mirror.flops == forward.flops and mirror.written == forward.written
    weights = priced("aten::_grouped_mm", t(16, 100, dtype=half), t(100, 24, dtype=half), bounds)
    assert weights.flops == forward.flops and weights.written == 4 * 16 * 24 * 2
    assert isinstance(weights.detail, Gemm) and weights.detail.k == 25
    batch = priced("aten::_grouped_mm", t(4, 25, 16, dtype=half), t(4, 16, 24, dtype=half), None)
    assert batch.flops == forward.flops and batch.written == forward.written


def test_a_complex_product_is_four_real_ones() -> None:
    real = priced("aten::mm", t(8, 8), t(8, 8))
    both = priced("aten::mm", t(8, 8, dtype="complex64"), t(8, 8, dtype="complex64"))
    assert (both.flops, both.bytes, both.dtype) == (4 * real.flops, 2 * real.bytes, "float32")


def test_one_query_of_the_flash_attn_package_sees_its_whole_cache() -> None:
    q, k = t(2, 1, 32, 128, dtype="bfloat16"), t(2, 4096, 8, 128, dtype="bfloat16")
    causal = priced("flash_attn::_flash_attn_forward", q, k, k, 0.0, 0.1, True)
    full = priced("flash_attn::_flash_attn_forward", q, k, k, 0.0, 0.1, False)
    assert causal.flops == pytest.approx(full.flops, rel=1e-3)
    square = [priced("flash_attn::_flash_attn_forward", k, k, k, 0.0, 0.1, value).flops for value in (True, False)]
    assert square[0] * 2 == square[1]


def test_an_efficient_mask_starts_from_the_corner_that_its_number_names() -> None:
    q, k = t(1, 64, 8, 64, dtype="bfloat16"), t(1, 1024, 8, 64, dtype="bfloat16")

    def pairs(kind: int) -> float:
        args = (q, k, k, None, None, None, 64, 1024, 0.0, kind)
        return priced("aten::_efficient_attention_forward", *args).flops / (2 * 8 * 128)

    assert pairs(0) == 64 * 1024
    assert pairs(1) == 64 * 64 / 2
    assert pairs(2) == 64 * 64 / 2 + 960 * 64


def test_flex_attention_counts_every_pair_and_says_so() -> None:
    q, k = t(1, 32, 128, 64, dtype="bfloat16"), t(1, 8, 128, 64, dtype="bfloat16")
    forward = priced("higher_order::flex_attention", q, k, k)
    backward = priced("higher_order::flex_attention_backward", q, q, k, k, q, t(1, 32, 128))
    assert forward.flops == 4 * 32 * 128 * 128 * 64 and forward.assumed
    assert backward.flops == 2.5 * forward.flops and backward.assumed
    assert backward.written == q.nbytes + 2 * k.nbytes


def test_a_bias_of_a_convolution_costs_another_read_of_the_gradient() -> None:
    x, w, grad = t(2, 8, 10, 10), t(4, 8, 3, 3), t(2, 4, 8, 8)

    def backward(bias: bool, outputs: tuple[Tensor, ...] = ()) -> Cost:
        window = ((1, 1), (0, 0), (1, 1), False, (0, 0), 1, (True, True, bias))
        return priced("aten::convolution_backward", grad, x, w, (4,), *window, outputs=outputs)

    made = (x, w, t(4))
    assert backward(True, made).read - backward(False, made).read == grad.nbytes
    assert backward(True, made).kernels == 3
    assert backward(True) == backward(False)


def test_a_recurrent_layer_multiplies_each_weight_by_every_step() -> None:
    steps, batch, width, hidden = 20, 4, 64, 32
    weights = (t(4 * hidden, width), t(4 * hidden, hidden), t(4 * hidden), t(4 * hidden))
    x, h = t(steps, batch, width), t(1, batch, hidden)
    args = (x, weights, 4, None, h, h, 2, hidden, 0, 1, False, 0.0, True, False, (), None)
    cost = priced("aten::_cudnn_rnn", *args)
    assert cost.flops == 2 * steps * batch * 4 * hidden * (width + hidden)
    assert cost.written == steps * batch * hidden * 4 + 2 * h.nbytes
    assert cost.assumed
    out = t(steps, batch, hidden)
    back = (x, weights, 4, t(1), h, h, out, out, None, None, 2, hidden, 0, 1, False, 0.0, True, False, (), None)
    assert priced("aten::_cudnn_rnn_backward", *back).flops == 2 * cost.flops


def test_a_recurrent_layer_on_the_cpu_multiplies_as_much() -> None:
    hidden, width = 32, 64
    args = (t(20, 4, width), t(4 * hidden, width), t(4 * hidden, hidden), t(4 * hidden), t(4 * hidden), t(4, hidden))
    assert priced("aten::mkldnn_rnn_layer", *args).flops == 2 * 80 * 4 * hidden * (width + hidden)


def test_a_bag_never_reads_more_than_its_table() -> None:
    table, index, bounds = t(10, 16), t(5000, dtype="int64"), t(50, dtype="int64")
    cost = priced("aten::_embedding_bag", table, index, bounds)
    assert cost.read == table.nbytes + index.nbytes + bounds.nbytes
    assert cost.written == 50 * 64
    assert priced("aten::_embedding_bag_dense_backward", t(50, 16), index, index, bounds, bounds, 10).written == 640


def test_a_repeat_by_counts_is_as_long_as_it_is_told() -> None:
    assert priced("aten::repeat_interleave", t(4, dtype="int64"), 96).written == 96 * 8
    assert priced("aten::repeat_interleave", t(4, 8), 3, 0).written == 3 * 4 * 8 * 4


def test_a_softmax_of_halves_into_floats_writes_twice_as_much() -> None:
    x = t(64, 1000, dtype="float16")
    assert priced("aten::_log_softmax", x, -1, True).written == 2 * x.nbytes
    assert priced("aten::_log_softmax", x, -1, False).written == x.nbytes

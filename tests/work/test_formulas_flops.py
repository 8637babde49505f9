"""FLOPs of products, convolutions and attention, against torch's own counter on random shapes."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepole.work.cost import assess
from ridgepole.work.formulas.attention import _CAUSAL_AT
from ridgepole.work.op import Attention, Call, Cost, Gemm, Tensor

from .seen import counted, flops, meta, seen

sizes = st.integers(1, 65)
some = settings(max_examples=30, deadline=None)
aten = torch.ops.aten


def priced(call: Call) -> Cost:
    cost = assess(call)
    assert isinstance(cost, Cost), cost
    return cost


@some
@given(sizes, sizes, sizes, st.integers(1, 4))
def test_products_count_as_torch_counts_them(m: int, k: int, n: int, batch: int) -> None:
    def run() -> None:
        torch.mm(meta(m, k), meta(k, n))
        torch.addmm(meta(n), meta(m, k), meta(k, n))
        torch.bmm(meta(batch, m, k), meta(batch, k, n))
        torch.baddbmm(meta(batch, m, n), meta(batch, m, k), meta(batch, k, n))
        torch.nn.functional.linear(meta(batch, m, k), meta(n, k), meta(n))
        torch.matmul(meta(batch, m, k), meta(k, n))

    assert flops(seen(run)) == counted(run) > 0


@some
@given(
    batch=st.integers(1, 3),
    channels=st.sampled_from([2, 4, 6]),
    out=st.sampled_from([2, 4, 8]),
    side=st.integers(6, 17),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 2),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 2]),
    transposed=st.booleans(),
)
def test_convolutions_count_as_torch_counts_them(
    batch: int, channels: int, out: int, side: int, kernel: int, stride: int, padding: int, dilation: int, groups: int,
    transposed: bool,
) -> None:  # fmt: skip
    x = meta(batch, channels, side, side + 1)
    weight = (channels, out // groups) if transposed else (out, channels // groups)
    w = meta(*weight, kernel, kernel)
    window = ([stride] * 2, [padding] * 2, [dilation] * 2)

    def forward() -> torch.Tensor:
        return aten.convolution(x, w, None, *window, transposed, [0, 0], groups)

    calls = seen(forward)
    assert flops(calls) == counted(forward) > 0
    unrecorded = Call(calls[0].operator, calls[0].args)
    assert priced(unrecorded) == priced(calls[0])


@some
@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(5, 14), st.integers(1, 3), st.booleans())
def test_backward_convolutions_count_as_torch_counts_them(
    batch: int, channels: int, out: int, side: int, kernel: int, both: bool
) -> None:
    x, w = meta(batch, channels, side, side), meta(out, channels, kernel, kernel)
    grad = meta(batch, out, side - kernel + 1, side - kernel + 1)

    def backward() -> None:
        aten.convolution_backward(grad, x, w, [out], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [both, True, False])

    assert flops(seen(backward)) == counted(backward) > 0


@some
@given(st.integers(1, 3), st.integers(1, 4), st.integers(2, 40), st.integers(2, 40), st.sampled_from([16, 32, 64]))
def test_attention_counts_as_torch_counts_it(batch: int, heads: int, q: int, kv: int, d: int) -> None:
    half = torch.float16
    query = meta(batch, heads, q, d, dtype=half)
    key, value = meta(batch, heads, kv, d, dtype=half), meta(batch, heads, kv, d, dtype=half)

    def run() -> None:
        aten._scaled_dot_product_flash_attention(query, key, value)
        aten._scaled_dot_product_efficient_attention(query, key, value, None, True)

    assert flops(seen(run)) == counted(run) > 0


@some
@given(st.integers(1, 3), st.integers(1, 4), st.integers(2, 40), st.sampled_from([16, 32, 64]))
def test_backward_attention_counts_as_torch_counts_it(batch: int, heads: int, n: int, d: int) -> None:
    half = torch.float16
    q, k, v, out, grad = (meta(batch, heads, n, d, dtype=half) for _ in range(5))
    lse = meta(batch, heads, n)
    seed = torch.empty((), dtype=torch.int64, device="meta")

    def run() -> None:
        aten._scaled_dot_product_flash_attention_backward(
            grad, q, k, v, out, lse, None, None, n, n, 0.0, False, seed, seed
        )

    assert flops(seen(run)) == counted(run) > 0


def test_a_linear_layer_of_100_to_10_does_2000_flop() -> None:
    x, w, b = Tensor((1, 100), "float32"), Tensor((10, 100), "float32"), Tensor((10,), "float32")
    cost = priced(Call("aten::linear", (x, w, b)))
    assert cost.flops == 2000
    assert cost.read == 400 + 4000 + 40
    assert cost.written == 40
    inner = Call("aten::addmm", (b, x, Tensor((100, 10), "float32", (1, 100))))
    assert priced(inner).flops == 2000 and priced(inner).bytes == cost.bytes


def attention(causal: bool, q_heads: int = 8, kv_heads: int = 8, q: int = 128, kv: int = 128) -> Cost:
    query = Tensor((2, q_heads, q, 64), "bfloat16")
    keys = Tensor((2, kv_heads, kv, 64), "bfloat16")
    call = Call("aten::_scaled_dot_product_flash_attention", (query, keys, keys, 0.0, causal))
    return priced(call)


def test_causal_attention_does_half() -> None:
    assert attention(True).flops * 2 == attention(False).flops
    assert attention(True).bytes == attention(False).bytes


def test_grouped_query_attention_reads_the_small_keys_and_values_once() -> None:
    full, grouped = attention(False), attention(False, kv_heads=2)
    assert grouped.flops == full.flops
    keys = 2 * 128 * 64 * 2
    assert full.read - grouped.read == 2 * (8 - 2) * keys
    assert isinstance(grouped.detail, Attention) and grouped.detail.kv_heads == 2


def test_expanded_keys_are_read_once_too() -> None:
    query = Tensor((1, 8, 16, 64), "bfloat16")
    expanded = Tensor((1, 8, 16, 64), "bfloat16", (1024, 0, 64, 1))
    cost = priced(Call("aten::scaled_dot_product_attention", (query, expanded, expanded)))
    assert cost.read == query.nbytes + 2 * 16 * 64 * 2


def test_one_query_over_a_long_cache_is_two_products_of_its_length() -> None:
    cost = attention(False, q=1, kv=4096)
    assert cost.flops == 2 * 2 * 2 * 8 * 4096 * 64
    assert cost.read == 2 * 2 * 8 * 4096 * 64 * 2 + 2 * 8 * 64 * 2


def test_packed_sequences_of_one_length_are_a_batch_and_others_are_not_guessed() -> None:
    packed, bounds = Tensor((96, 8, 64), "bfloat16"), Tensor((4,), "int32")
    even = Call("aten::_flash_attention_forward", (packed, packed, packed, bounds, bounds, 32, 32, 0.0, False, False))
    assert priced(even).flops == 3 * 4 * 8 * 32 * 32 * 64
    uneven = Call("aten::_flash_attention_forward", (packed, packed, packed, bounds, bounds, 48, 48, 0.0, False, False))
    assert "lengths" in str(assess(uneven))


def test_a_convolution_whose_stride_was_not_recorded_has_no_flops() -> None:
    x, w = Tensor((32, 3, 224, 224), "float32"), Tensor((64, 3, 7, 7), "float32")
    assert "not recorded" in str(assess(Call("aten::cudnn_convolution", (x, w))))
    out = Tensor((32, 64, 112, 112), "float32")
    assert priced(Call("aten::cudnn_convolution", (x, w), (out,))).flops == 2 * out.numel * 3 * 49


def test_groups_divide_the_work_of_a_convolution_and_of_its_gradients() -> None:
    def both(groups: int) -> tuple[int, int]:
        x, grad = Tensor((2, 8, 10, 10), "float32"), Tensor((2, 8, 8, 8), "float32")
        w = Tensor((8, 8 // groups, 3, 3), "float32")
        window = ((1, 1), (0, 0), (1, 1), False, (0, 0), groups)
        forward = priced(Call("aten::convolution", (x, w, None, *window)))
        backward = priced(Call("aten::convolution_backward", (grad, x, w, None, *window, (True, True, False))))
        assert isinstance(forward.detail, Gemm) and forward.detail.batch == groups
        return forward.flops, backward.flops

    whole, parts = both(1), both(8)
    assert (whole[0] / 8, whole[1] / 8) == parts
    assert whole[1] == 2 * whole[0]


def test_the_gradient_of_a_transposed_convolution_costs_what_the_convolution_did() -> None:
    x, w, grad = Tensor((1, 8, 5, 5), "float32"), Tensor((8, 8, 2, 2), "float32"), Tensor((1, 8, 10, 10), "float32")
    window = ((2, 2), (0, 0), (1, 1), True, (0, 0), 1)
    forward = priced(Call("aten::convolution", (x, w, None, *window)))
    assert forward.flops == 2 * 25 * w.numel
    one = priced(Call("aten::convolution_backward", (grad, x, w, None, *window, (True, False, False))))
    assert one.flops == forward.flops


def test_a_product_of_fp8_runs_on_the_matrix_units_and_of_fp32_does_not() -> None:
    def product(dtype: str) -> Cost:
        return priced(Call("aten::mm", (Tensor((64, 64), dtype), Tensor((64, 64), dtype))))

    assert product("bfloat16").unit == product("float16").unit == "tensor"
    assert product("float32").unit == product("float64").unit == "vector"
    one = Tensor((), "float32")
    e4m3 = Tensor((64, 64), "float8_e4m3fn")
    scaled = priced(Call("aten::_scaled_mm", (e4m3, e4m3, one, one, None, None, 15, False)))
    assert scaled.unit == "tensor" and scaled.flops == 2 * 64**3
    assert scaled.written == 64 * 64 * 2


def test_4097_columns_of_bf16_are_aligned_to_two_bytes_only() -> None:
    for n, aligned in ((4096, 16), (4097, 2), (4100, 8)):
        a, b = Tensor((n, n), "bfloat16"), Tensor((n, n), "bfloat16")
        detail = priced(Call("aten::mm", (a, b))).detail
        assert isinstance(detail, Gemm) and detail.aligned == aligned


def test_the_causal_flag_is_where_torch_has_it() -> None:
    for name, (at, _) in _CAUSAL_AT.items():
        packet = getattr(aten, name.split("::")[1], None)
        if packet is None:
            continue
        argument = packet.default._schema.arguments[at]
        assert argument.name in ("is_causal", "custom_mask_type"), name

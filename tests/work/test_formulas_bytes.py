"""Bytes by hand: each distinct input byte once, each output byte once, views free."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepole.work.cost import assess
from ridgepole.work.op import Call, Cost, Tensor, Unpriced

from .seen import meta, seen


def t(*shape: int, dtype: str = "float32", strides: tuple[int, ...] | None = None) -> Tensor:
    return Tensor(shape, dtype, strides)


def priced(operator: str, *args: object, outputs: tuple[Tensor, ...] = ()) -> Cost:
    cost = assess(Call(operator, args, outputs))  # type: ignore[arg-type]
    assert isinstance(cost, Cost), cost
    return cost


def test_a_vector_add_moves_three_times_its_length() -> None:
    cost = priced("aten::add", t(1000), t(1000), 1)
    assert (cost.flops, cost.read, cost.written) == (1000, 8000, 4000)
    assert cost.intensity == pytest.approx(1 / 12)


def test_x_times_2_of_16_million_bf16_moves_67_megabytes() -> None:
    cost = priced("aten::mul", t(4096, 4096, dtype="bfloat16"), 2)
    assert cost.bytes == 67_108_864 and cost.flops == 16_777_216


def test_an_expanded_input_is_read_once() -> None:
    row = t(512, 1024, strides=(0, 1))
    cost = priced("aten::add", t(512, 1024), row)
    assert cost.read == (512 * 1024 + 1024) * 4


def test_a_broadcast_input_is_read_once() -> None:
    assert priced("aten::mul", t(64, 32, 16), t(16)).read == (64 * 32 * 16 + 16) * 4


def test_an_expanded_tensor_is_written_whole() -> None:
    cost = priced("aten::clone", t(8, 1024, strides=(0, 1)))
    assert cost.read == 4096
    assert priced("aten::copy_", t(8, 1024), t(8, 1024, strides=(0, 1))).written == 8 * 4096


def test_in_place_writes_its_own_dtype() -> None:
    cost = priced("aten::add_", t(100, dtype="bfloat16"), t(100, dtype="float32"))
    assert cost.written == 200
    assert priced("aten::add", t(100, dtype="bfloat16"), t(100, dtype="float32")).written == 400


def test_a_compare_writes_one_byte_an_element() -> None:
    assert priced("aten::lt", t(1000), t(1000)).written == 1000
    assert priced("aten::isnan", t(1000)).written == 1000


@pytest.mark.parametrize("operator", ["view", "t", "transpose", "expand", "slice", "unsqueeze", "as_strided", "detach"])
def test_views_are_free(operator: str) -> None:
    cost = priced(f"aten::{operator}", t(64, 64))
    assert (cost.flops, cost.bytes, cost.kernels, cost.family) == (0, 0, 0, "view")


def test_a_cat_moves_every_part_twice_and_a_stack_as_well() -> None:
    parts = (t(8, 16), t(8, 48))
    assert priced("aten::cat", parts, 1).read == priced("aten::cat", parts, 1).written == 8 * 64 * 4
    assert priced("aten::stack", (t(10), t(10)), 0).bytes == 160


def test_a_cat_of_unrecorded_tensors_is_not_guessed() -> None:
    assert isinstance(assess(Call("aten::cat", ((), 1))), Unpriced)


def test_foreach_moves_whole_lists_in_few_launches() -> None:
    tensors = tuple(t(100) for _ in range(300))
    cost = priced("aten::_foreach_add_", tensors, tensors, 1)
    assert (cost.read, cost.written) == (2 * 300 * 400, 300 * 400)
    assert cost.kernels == 5
    assert priced("aten::_foreach_mul_", tensors, 2.0).kernels == 3


def test_a_fused_adam_step_reads_four_lists_and_writes_three() -> None:
    lists = tuple(tuple(t(1000) for _ in range(3)) for _ in range(4))
    cost = priced("aten::_fused_adamw_", *lists, (), (t(), t(), t()), 0.001, 0.9, 0.999, 0.01, 1e-8, False, False)
    assert (cost.read, cost.written) == (4 * 12000, 3 * 12000)
    amsgrad = priced("aten::_fused_adamw_", *lists, lists[0], (t(),), 0.001)
    assert (amsgrad.read, amsgrad.written) == (5 * 12000, 4 * 12000)


def test_a_fused_step_whose_lists_were_not_recorded_is_not_priced() -> None:
    found = assess(Call("aten::_fused_adamw_", ((), (), (), (), (), (), 0.001)))
    assert found == Unpriced("tensor lists not recorded")


def test_an_embedding_reads_the_rows_it_is_asked_for() -> None:
    table, index = t(128256, 4096, dtype="bfloat16"), t(1, 7, dtype="int64")
    cost = priced("aten::embedding", table, index)
    assert cost.read == 7 * 8192 + 56 and cost.written == 7 * 8192


def test_a_small_table_is_not_read_more_than_once() -> None:
    cost = priced("aten::embedding", t(2, 8), t(1000, dtype="int64"))
    assert cost.read == 64 + 8000 and cost.written == 32000


def test_index_put_in_place_moves_the_named_rows_only() -> None:
    cache, values, at = t(1, 8, 128, 128, dtype="bfloat16"), t(1, 8, 1, 128, dtype="bfloat16"), t(1, dtype="int64")
    cost = priced("aten::index_put_", cache, (None, None, at), values)
    assert cost.written == 8 * 128 * 2
    assert cost.read == 8 * 128 * 2 + 8
    adding = priced("aten::index_put_", cache, (None, None, at), values, True)
    assert adding.read == 2 * 8 * 128 * 2 + 8 and adding.flops == 8 * 128
    assert priced("aten::index_put", cache, (None, None, at), values).written == cost.written + cache.nbytes


def test_gathered_indices_broadcast() -> None:
    x = t(50, 60, 70)
    cost = priced("aten::index", x, (t(4, 1, dtype="int64"), t(5, dtype="int64")))
    assert cost.written == 4 * 5 * 70 * 4


def test_softmax_reads_and_writes_once_and_says_how_long_its_rows_are() -> None:
    cost = priced("aten::_softmax", t(8, 12, 197, 197, dtype="bfloat16"), -1, False)
    assert cost.read == cost.written == 8 * 12 * 197 * 197 * 2
    assert cost.family == "softmax" and cost.detail is not None


def test_a_reduction_writes_what_is_left() -> None:
    assert priced("aten::sum", t(100, 50), (1,)).written == 400
    assert priced("aten::sum", t(100, 50)).written == 4
    assert priced("aten::argmax", t(100, 50), 1).written == 800


def test_a_cast_reads_one_dtype_and_writes_the_other() -> None:
    x, out = t(1000), t(1000, dtype="bfloat16")
    assert priced("aten::_to_copy", x, outputs=(out,)).bytes == 6000
    assert priced("aten::_to_copy", x, 15, None, None, None, False, None).written == 2000
    assert isinstance(assess(Call("aten::_to_copy", (x,))), Unpriced)


def test_a_range_into_an_empty_tensor_writes_its_length() -> None:
    assert priced("aten::arange", 0, 559, 1, t(0, dtype="int64")).written == 559 * 8
    assert priced("aten::arange", 0, 10, 3, t(0, dtype="int64")).written == 4 * 8


def test_a_dropout_mask_is_one_byte_an_element() -> None:
    assert priced("aten::native_dropout", t(1000), 0.1, True).written == 5000


def test_a_paged_cache_takes_the_new_tokens_only() -> None:
    new, cache = t(32, 8, 64, dtype="bfloat16"), t(224304, 32, 8, 64, dtype="uint8")
    cost = priced("_C_cache_ops::reshape_and_cache_flash", new, new, cache, cache, t(32, dtype="int64"))
    assert cost.written == 2 * 32 * 8 * 64
    assert cost.read == 2 * new.nbytes + 256


def test_attention_over_a_paged_cache_has_no_price_and_says_why() -> None:
    q = t(32, 64, 64, dtype="bfloat16")
    assert assess(Call("vllm::unified_attention_with_output", (q, q, q, q))) == Unpriced(
        "lengths of the cached sequences not recorded"
    )


def test_a_norm_that_adds_its_residual_in_place_moves_both_twice() -> None:
    x, weight = t(888, 2880, dtype="bfloat16"), t(2880, dtype="bfloat16")
    cost = priced("_C::fused_add_rms_norm", x, x, weight, 1e-5)
    assert cost.bytes == 4 * x.nbytes + weight.nbytes


def test_a_compiled_kernel_moves_each_tensor_once_and_says_that_it_assumes_so() -> None:
    x = t(8, 4096, 2048, dtype="bfloat16")
    cost = priced("triton_poi_fused__unsafe_view_add_3", x, x, x, x.numel)
    assert cost.bytes == 3 * x.nbytes and cost.assumed
    rows = priced("triton_red_fused_add_mean_mul_pow_rsqrt_0", x, t(2048, dtype="bfloat16"), x, 32768, 2048)
    assert rows.bytes == 2 * x.nbytes + 4096 and rows.family == "norm"


def test_a_compiled_kernel_touches_of_a_table_no_more_than_it_loops() -> None:
    table, out = t(201088, 2880, dtype="bfloat16"), t(32, 2880, dtype="bfloat16")
    cost = priced("triton_poi_fused_embedding_0", t(32, dtype="int32"), table, out, 32 * 2880)
    assert cost.bytes == 2 * out.nbytes + 128


def test_a_lookup_in_tables_of_one_buffer_reads_a_row_an_index() -> None:
    tables, state = t(160 * 1000, dtype="float16"), t(1000)
    args: list[object] = [None] * 24
    args[1], args[5], args[11], args[12], args[20] = tables, t(1, dtype="int64"), t(500, dtype="int64"), t(65), state
    cost = priced("fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function", *args)
    assert cost.read == 500 * 160 * 2 + 4000 + 65 * 4
    assert cost.written == 64 * 160 * 4 and cost.assumed
    args[20] = None
    unknown = assess(Call("fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function", tuple(args)))  # type: ignore[arg-type]
    assert unknown == Unpriced("width of the tables not recorded")


def test_a_missing_dtype_is_no_price() -> None:
    x = Tensor((64, 64), "")
    assert assess(Call("aten::add", (x, x))) == Unpriced("dtype not recorded")


def test_a_known_dtype_stands_for_the_unknown_ones_of_its_call() -> None:
    assert priced("aten::add", t(10, dtype="bfloat16"), Tensor((10,), "")).bytes == 60


shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


@settings(max_examples=40, deadline=None)
@given(shapes, st.sampled_from([torch.float32, torch.bfloat16, torch.float64]))
def test_outputs_are_what_torch_makes_and_what_traces_let_us_work_out(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """With outputs (capture) and without (traces) the bytes agree, where arguments tell all."""
    x = meta(*shape, dtype=dtype)

    def run() -> None:
        y = x + x
        y = torch.relu(y) * 2
        y = torch.softmax(y, -1)
        y = torch.nn.functional.gelu(y)
        y = torch.nn.functional.layer_norm(y, y.shape[-1:])
        y.cumsum(0)
        y.amax(-1)
        torch.cat([y, y], 0)
        y.mul_(2).add_(y)

    for call in seen(run):
        with_outputs = assess(call)
        assert isinstance(with_outputs, Cost), (call, with_outputs)
        without = assess(Call(call.operator, call.args))
        if with_outputs.family == "view":
            continue
        assert isinstance(without, Cost), (call, without)
        assert abs(without.written - with_outputs.written) <= 0.5 * with_outputs.written, call
        assert without.read == with_outputs.read

"""Backward passes of embedding lookups, sized by the forward calls that they follow."""

from __future__ import annotations

from ridgepole.attribute.lookups import lookups, sort_pass, update
from ridgepole.work.cost import assess
from ridgepole.work.op import Arg, Call, Cost, Op, Rows, Tensor

FORWARD = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
BACKWARD = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"


def forward(tables: int, rows: int, width: int, bags: int, indices: int) -> Op:
    args: list[Arg] = [None] * 21
    args[1] = Tensor((rows * width,), "float16")
    args[5] = Tensor((tables,), "int64")
    args[11] = Tensor((indices,), "int64")
    args[12] = Tensor((tables * bags + 1,), "int64")
    args[20] = Tensor((rows,), "float32")
    call = Call(FORWARD, tuple(args))
    return Op(call, assess(call))


def gradient(bags: int, width: int) -> Call:
    return Call(BACKWARD, (Tensor((bags, width), "float32"),))


def test_a_backward_pass_updates_the_rows_that_its_forward_pass_read() -> None:
    known = lookups([forward(9, 10_000, 160, 64, 500), forward(1, 3_000, 160, 64, 77)])
    cost = update(gradient(64, 1440), known)
    assert isinstance(cost, Cost) and cost.assumed
    assert cost.read == 64 * 1440 * 4 + 500 * 8 + 500 * (320 + 4)
    assert cost.written == 500 * (320 + 4)
    other = update(gradient(64, 160), known)
    assert other is not None and other.written == 77 * 324


def test_no_more_rows_are_updated_than_there_are() -> None:
    cost = update(gradient(64, 1440), lookups([forward(9, 100, 160, 64, 50_000)]))
    assert cost is not None and cost.written == 100 * 324


def test_steps_that_differ_a_little_are_one_lookup() -> None:
    known = lookups([forward(1, 1000, 96, 64, n) for n in (90, 100, 110)])
    cost = update(gradient(64, 96), known)
    assert cost is not None and cost.detail == Rows(1, 100)


def test_a_gradient_that_several_lookups_could_have_is_not_guessed() -> None:
    known = lookups([forward(1, 1000, 96, 64, 10), forward(1, 2000, 96, 64, 9999)])
    assert update(gradient(64, 96), known) is None
    assert update(gradient(32, 96), known) is None
    assert update(Call("aten::mm", ()), known) is None


def test_one_pass_of_the_sort_moves_keys_and_values_both_ways() -> None:
    cost = update(gradient(64, 96), lookups([forward(1, 1000, 96, 64, 100)]))
    assert cost is not None
    name = "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800, false>"
    assert sort_pass(name, cost) == 2 * 100 * 12
    assert sort_pass("ampere_sgemm_128x64_nn", cost) is None

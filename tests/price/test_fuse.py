"""What fuses, what does not, and that fusion neither invents nor loses work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ridgepole.price.fuse import fuse
from ridgepole.work.op import Call, Cost, Op, Program, Rows, Tensor

MakeOp = Callable[..., Op]
SHAPE = (1024, 256)
SIZE = 1024 * 256 * 2


def names(program: Program) -> list[str]:
    return [op.operator for op in program.ops]


def total(program: Program, field: str) -> int:
    return sum(getattr(op.cost, field) for op in program.ops if isinstance(op.cost, Cost))


def row_sum(reads: int, makes: int) -> Op:
    whole, sums = Tensor(SHAPE, "bfloat16"), Tensor((1024,), "bfloat16")
    cost = Cost(whole.numel, whole.nbytes, sums.nbytes, "bfloat16", "vector", "reduction", 1, Rows(1024, 256))
    return Op(Call("aten::sum", (whole,), (sums,)), cost, inputs=(reads,), results=(makes,))


def test_a_chain_becomes_one_kernel_that_reads_once_and_writes_once(pointwise: MakeOp) -> None:
    chain = tuple(pointwise("aten::mul", SHAPE, reads=(i,), makes=i + 1) for i in range(5))
    (op,) = fuse(Program(chain, "chain", returned=(5,))).ops
    assert op.operator == "fused::pointwise"
    assert isinstance(op.cost, Cost)
    assert (op.cost.read, op.cost.written, op.cost.kernels) == (SIZE, SIZE, 1)
    assert op.cost.flops == 5 * 1024 * 256
    assert len(op.inner) == 5
    assert op.inputs == (0,) and op.results == (5,)


def test_a_value_needed_later_is_still_written(pointwise: MakeOp, product: MakeOp) -> None:
    ops = (
        pointwise("aten::mul", SHAPE, reads=(0,), makes=1),
        pointwise("aten::add", SHAPE, reads=(1,), makes=2),
        product(1024, 64, 256, reads=(1, 9), makes=3),
    )
    fused = fuse(Program(ops, "p", returned=(2, 3)))
    assert names(fused) == ["fused::pointwise", "aten::mm"]
    cost = fused.ops[0].cost
    assert isinstance(cost, Cost) and cost.written == 2 * SIZE


def test_nothing_is_fused_into_a_matrix_product(pointwise: MakeOp, product: MakeOp) -> None:
    ops = (
        pointwise("aten::mul", SHAPE, reads=(0,), makes=1),
        product(1024, 256, 256, reads=(1, 9), makes=2),
        pointwise("aten::relu", SHAPE, reads=(2,), makes=3),
    )
    assert names(fuse(Program(ops, "mlp", returned=(3,)))) == ["aten::mul", "aten::mm", "aten::relu"]


def test_a_product_between_two_uses_keeps_them_apart(pointwise: MakeOp, product: MakeOp) -> None:
    ops = (
        pointwise("aten::mul", SHAPE, reads=(0,), makes=1),
        product(1024, 256, 256, reads=(1, 9), makes=2),
        pointwise("aten::add", SHAPE, reads=(1, 2), makes=3),
    )
    assert names(fuse(Program(ops, "residual", returned=(3,)))) == ["aten::mul", "aten::mm", "aten::add"]


def test_a_reduction_takes_in_the_pointwise_ops_around_it(pointwise: MakeOp) -> None:
    ops = (
        pointwise("aten::pow", SHAPE, reads=(0,), makes=1),
        row_sum(1, 2),
        pointwise("aten::rsqrt", (1024,), reads=(2,), makes=3),
        pointwise("aten::mul", SHAPE, reads=(0,), makes=4),
    )
    (op,) = fuse(Program(ops, "rms", returned=(3, 4))).ops
    assert op.operator == "fused::reduction"
    assert isinstance(op.cost, Cost)
    assert op.cost.family == "reduction" and op.cost.detail == Rows(1024, 256)
    assert op.cost.read == SIZE
    assert op.cost.written == SIZE + 1024 * 2


def test_siblings_that_read_the_same_values_share_the_read(pointwise: MakeOp) -> None:
    ops = (
        pointwise("aten::sin", SHAPE, reads=(0,), makes=1),
        pointwise("aten::cos", SHAPE, reads=(0,), makes=2),
    )
    (op,) = fuse(Program(ops, "rope", returned=(1, 2))).ops
    assert isinstance(op.cost, Cost)
    assert (op.cost.read, op.cost.written) == (SIZE, 2 * SIZE)


def test_halves_of_one_tensor_are_both_read(pointwise: MakeOp) -> None:
    half = (1024, 128)
    whole = pointwise("aten::relu", SHAPE, reads=(7,), makes=0)
    ops = (whole, replace(pointwise("aten::mul", half, reads=(0, 0), makes=1)))
    fused = fuse(Program(ops, "gate", returned=(0, 1)))
    assert names(fused) == ["aten::relu", "aten::mul"]
    silu = pointwise("aten::silu", half, reads=(0,), makes=2)
    up = pointwise("aten::mul", half, reads=(2, 0), makes=3)
    last = fuse(Program((whole, silu, up), "swiglu", returned=(0, 3))).ops[-1]
    assert isinstance(last.cost, Cost)
    assert last.cost.read == SIZE


def test_views_vanish_and_values_pass_through_them(pointwise: MakeOp) -> None:
    view = Op(
        Call("aten::view", (Tensor(SHAPE, "bfloat16"),), (Tensor((512, 512), "bfloat16"),)),
        Cost(0, 0, 0, "bfloat16", "vector", "view", 0),
        inputs=(1,),
        results=(1,),
    )
    ops = (
        pointwise("aten::mul", SHAPE, reads=(0,), makes=1),
        view,
        pointwise("aten::add", (512, 512), reads=(1,), makes=2),
    )
    assert names(fuse(Program(ops, "v", returned=(2,)))) == ["fused::pointwise"]


def test_a_cache_written_in_place_is_written_though_nobody_reads_it(pointwise: MakeOp) -> None:
    ops = (
        pointwise("aten::mul", SHAPE, reads=(0,), makes=1),
        pointwise("aten::copy_", SHAPE, reads=(8, 1), makes=8),
        pointwise("aten::neg", SHAPE, reads=(8,), makes=3),
    )
    (op,) = fuse(Program(ops, "cache", returned=(3,))).ops
    assert isinstance(op.cost, Cost)
    assert op.cost.written == 2 * SIZE


def test_without_value_ids_nothing_is_fused_and_a_note_says_so(pointwise: MakeOp) -> None:
    ops = (pointwise("aten::mul", SHAPE), pointwise("aten::add", SHAPE))
    fused = fuse(Program(ops, "p"))
    assert fused.ops == ops
    assert any("nothing fused" in note for note in fused.notes)


graphs = st.lists(
    st.tuples(
        st.sampled_from(["point", "point", "point", "sum", "mm", "inplace"]), st.integers(0, 99), st.integers(0, 99)
    ),
    min_size=1,
    max_size=40,
)


@given(graphs)
def test_any_program_keeps_its_flops_and_its_order_of_values(plan: list[tuple[str, int, int]]) -> None:
    whole = Tensor(SHAPE, "bfloat16")
    fulls, ops, fresh = [0, 1], [], 2
    for kind, left, right in plan:
        a, b = fulls[left % len(fulls)], fulls[right % len(fulls)]
        if kind == "sum":
            ops.append(row_sum(a, fresh))
            fresh += 1
            continue
        family = "matmul" if kind == "mm" else "elementwise"
        cost = Cost(whole.numel, 2 * SIZE, SIZE, "bfloat16", "vector", family)  # type: ignore[arg-type]
        made = a if kind == "inplace" else fresh
        ops.append(Op(Call(f"aten::{kind}", (whole, whole), (whole,)), cost, inputs=(a, b), results=(made,)))
        if made == fresh:
            fulls.append(fresh)
            fresh += 1
    program = Program(tuple(ops), "random", returned=(fulls[-1],))
    fused = fuse(program)
    assert total(fused, "flops") == total(program, "flops")
    assert total(fused, "bytes") <= total(program, "bytes")
    flat = [inner for op in fused.ops for inner in (op.inner or (op,))]
    assert len(flat) == len(ops)
    _check_dataflow(ops, flat)


def _check_dataflow(before: list[Op], after: list[Op]) -> None:
    """Every op sees the same writes to each of its values, in the same order, as in the program."""
    place = {id(op): i for i, op in enumerate(after)}
    for first in range(len(before)):
        for second in range(first + 1, len(before)):
            a, b = before[first], before[second]
            clash = set(a.results) & (set(b.inputs) | set(b.results)) | set(a.inputs) & set(b.results)
            if clash:
                assert place[id(a)] < place[id(b)]

"""The table of operators, and what is known of a device's time."""

from __future__ import annotations

import pytest

from ridgepole.attribute.rows import place_in_program, shapes, short_dtype
from ridgepole.work.op import Call, Cost, Gemm, Op, Tensor, Where

from .made import Scene, did


def linear(layer: int = 0, phase: str = "forward") -> Op:
    call = Call("aten::mm", (Tensor((25088, 768), "bfloat16"), Tensor((768, 2304), "bfloat16")))
    cost = Cost(100, 20, 20, "bfloat16", "tensor", "matmul", detail=Gemm(1, 25088, 2304, 768))
    return Op(call, cost, Where(module=f"encoder.layer.{layer}.dense", phase=phase))


def call(scene: Scene, op: int, at: int, kernels: int = 1) -> list[int]:
    """One call of an op that launches kernels of 10 ns each."""
    outer = scene.cpu(at, at + 5, "op", "aten::mm", op=op)
    found = []
    for i in range(kernels):
        launch = scene.cpu(at + 1 + i, at + 2 + i, "launch", "cudaLaunchKernel", parent=outer)
        found.append(scene.kernel(at + 5 + 10 * i, at + 15 + 10 * i, "memory", launch=launch, op=op))
    return found


def test_the_same_layer_repeated_is_one_row_with_all_its_calls() -> None:
    scene = Scene(ops=[linear(0), linear(1)])
    for op, at in ((0, 0), (1, 20), (0, 40)):
        call(scene, op, at)
    [row] = scene.ledger().busiest.ops
    assert (row.op, row.where, row.shapes) == ("aten::mm", "encoder.layer.*.dense", "25088x768 @ 768x2304 bf16")
    assert (row.count, row.kernels, row.ns, row.bucket) == (3, 3, 30, "memory")


def test_an_op_of_two_kernels_is_one_call() -> None:
    scene = Scene(ops=[linear()])
    call(scene, 0, 0, kernels=2)
    [row] = scene.ledger().busiest.ops
    assert (row.count, row.kernels, row.ns) == (1, 2, 20)


def test_a_row_adds_up_what_is_known_and_says_of_how_much_time() -> None:
    scene = Scene(ops=[linear()])
    for at, known in ((0, True), (20, True), (40, False)):
        [index] = call(scene, 0, at)
        figures = {"flops": 100, "bytes": 40, "t_compute": 1e-9, "t_memory": 5e-9}
        scene.work[index] = did("memory", **figures) if known else did("unknown")
    [row] = scene.ledger().busiest.ops
    assert (row.flops, row.bytes, row.known_ns, row.ns) == (200, 80, 20, 30)
    assert row.efficiency == pytest.approx(0.5)
    assert row.intensity == 2.5
    assert row.quality == "exact"
    assert row.bucket == "memory"


def test_a_row_of_which_nothing_is_known_has_no_figures_rather_than_zeros() -> None:
    scene = Scene()
    scene.kernel(0, 10, None, name="mystery")
    [row] = scene.ledger().busiest.ops
    assert (row.op, row.flops, row.bytes, row.efficiency, row.quality) == ("mystery", None, None, None, "unknown")


def test_a_kernel_that_the_window_cuts_counts_in_proportion() -> None:
    scene = Scene(start=0, end=50)
    index = scene.kernel(40, 80, "memory")
    scene.work[index] = did("memory", flops=0, bytes=400, t_memory=20e-9)
    [row] = scene.ledger().busiest.ops
    assert (row.ns, row.bytes) == (10, 100)
    assert row.efficiency == pytest.approx(0.5)


def test_rows_come_longest_first_and_hold_kernel_names_longest_first() -> None:
    scene = Scene(ops=[linear()])
    scene.kernel(0, 10, name="short", op=0)
    scene.kernel(10, 40, name="long", op=0)
    scene.kernel(40, 100, name="other")
    rows = scene.ledger().busiest.ops
    assert [row.op for row in rows] == ["other", "aten::mm"]
    assert rows[1].names == ("long", "short")


def test_coverage_is_of_busy_time_with_overlap_counted_once() -> None:
    scene = Scene(ops=[linear()])
    scene.kernel(0, 40, "memory", op=0)
    scene.work[0] = did("memory", flops=1, bytes=1, quality="inferred")
    scene.kernel(20, 80, "unknown", lane="0/8", graph=True)
    known = scene.ledger().busiest.coverage
    assert known.bucket == known.op == known.bytes == known.flops == known.inferred == 0.5
    assert known.in_graph == 0.5


def test_what_nvidia_smi_calls_utilization_counts_kernels_not_copies() -> None:
    scene = Scene()
    scene.kernel(0, 30)
    scene.kernel(20, 50, lane="0/8")
    scene.add("0/9", 60, 90, "copy", "Memcpy DtoD (Device -> Device)")
    assert scene.ledger().busiest.resident_ns == 50


@pytest.mark.parametrize(
    ("where", "place"),
    [
        (Where(module="encoder.layer.11.output.dense"), "encoder.layer.*.output.dense"),
        (Where(module="layers.0"), "layers.*"),
        (Where(module="BertEncoder_0.BertLayer_3.Linear_23"), "BertEncoder.BertLayer.Linear"),
        (Where(module="conv2d", phase="backward"), "conv2d (backward)"),
        (Where(source="model.py:12"), "model.py:12"),
        (Where(phase="optimizer"), "optimizer"),
        (Where(), ""),
    ],
)
def test_a_place_names_the_layer_not_its_number(where: Where, place: str) -> None:
    assert place_in_program(where) == place


def test_shapes_are_said_as_people_write_them() -> None:
    batched = Cost(1, 1, 1, "float32", "tensor", "matmul", detail=Gemm(12, 64, 64, 32))
    add = Call("aten::add", (Tensor((8, 16), "float32"), Tensor((), "float32")))
    many = Call("aten::cat", ((Tensor((1, 2), "int64"),) * 5,))
    assert shapes(Op(add, batched)) == "12 of 64x32 @ 32x64 f32"
    assert shapes(Op(add, Cost(1, 1, 1, "float32", "vector", "elementwise"))) == "8x16, scalar f32"
    assert shapes(Op(many, Cost(1, 1, 1, "int64", "vector", "copy"))) == "1x2, 1x2, 1x2, … i64"
    assert short_dtype("bfloat16") == "bf16"

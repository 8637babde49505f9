"""Expressions over named inputs, and how wrong ones are told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from ridgepole.errors import BadInput  # noqa: E402
from ridgepole.work.op import Unpriced  # noqa: E402
from ridgepole.work.targets import expression, inputs  # noqa: E402
from ridgepole.work.targets.inputs import TensorInput  # noqa: E402


def test_two_elementwise_calls_are_two_ops_of_sixty_seven_megabytes() -> None:
    program = expression.parse("x * 2 + 1", ["x=4096x4096:bf16"]).capture()
    assert [op.operator for op in program.ops] == ["aten::mul", "aten::add"]
    assert [op.cost.bytes for op in program.ops if not isinstance(op.cost, Unpriced)] == [67_108_864] * 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x=4096x4096:bf16", TensorInput((4096, 4096), "bfloat16")),
        ("x=8:f32:grad", TensorInput((8,), "float32", grad=True)),
        ("x=2x3x4x5:f16:channels_last", TensorInput((2, 3, 4, 5), "float16", "channels_last")),
        ("x=8192:i64:high=50257", TensorInput((8192,), "int64", high=50257)),
        ("x=:f32", TensorInput((), "float32")),
        ("x=scalar:f32", TensorInput((), "float32")),
        ("x=0x4:fp8", TensorInput((0, 4), "float8_e4m3fn")),
        ("x=2x2", TensorInput((2, 2), "float32")),
        ("x=5", 5),
        ("x=-0.5", -0.5),
        ("x=True", True),
        ("x=None", None),
    ],
)
def test_inputs_are_read_as_written(text: str, wanted: Any) -> None:
    assert inputs.parse([text]) == {"x": wanted}


@given(
    st.lists(st.integers(0, 1 << 12), min_size=2, max_size=5),
    st.sampled_from(["float32", "bfloat16", "int64", "bool"]),
)
def test_any_shape_and_dtype_comes_back_as_it_was_written(shape: list[int], dtype: str) -> None:
    text = "x" + "=" + "x".join(map(str, shape)) + ":" + dtype
    assert inputs.parse([text])["x"] == TensorInput(tuple(shape), dtype)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "write NAME=DIMS:DTYPE"),
        ("1x=4:f32", "write NAME=DIMS:DTYPE"),
        ("x=4x:f32", "'4x' are no dimensions"),
        ("x=4:f31", "'f31' is not a dtype"),
        ("x=4:f32:nhwc", "'nhwc' is not understood"),
        ("x=4:f32:channels_last", "channels_last is for 4 dimensions"),
        ("x=99999999x99999999999:f32", "more than a tensor can have"),
        ("x=4:i64:high=lots", "'high=lots' is not understood"),
    ],
)
def test_an_input_that_is_wrong_is_told_in_one_line(text: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        inputs.parse([text])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "given_inputs", "said"),
    [
        ("x * y", ["x=4:f32"], "missing: y; give -i y="),
        ("x * 2", ["x=4:f32", "z=4:f32"], "does not use the input z"),
        ("x *", ["x=4:f32"], "is no expression"),
        ("x = 3", [], "is no expression"),
        ("a @ b", ["a=3x4:f32", "b=3x4:f32"], "RuntimeError"),
        ("x.nothing", ["x=4:f32"], "AttributeError"),
        ("x +" + "(" * 300 + "1" + ")" * 300, ["x=4:f32"], "is no expression"),
    ],
)
def test_an_expression_that_is_wrong_is_told_in_one_line(text: str, given_inputs: list[str], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        expression.parse(text, given_inputs).capture()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_bound_inside_need_no_input() -> None:
    program = expression.parse("torch.cat([x * i for i in range(3)])", ["x=4:f32"]).capture()
    assert [op.operator for op in program.ops] == ["aten::mul"] * 3 + ["aten::cat"]


def test_a_row_of_measured_calls_is_a_target() -> None:
    row = {
        "call": "F.conv2d(x, w, padding=1)",
        "inputs": {
            "x": {"shape": [2, 8, 6, 6], "dtype": "bfloat16", "memory_format": "channels_last"},
            "w": {"shape": [4, 8, 3, 3], "dtype": "bfloat16", "memory_format": "channels_last"},
        },
    }
    target = expression.from_row(row)
    assert target.name == "F.conv2d(x, w, padding=1)"
    (op,) = target.capture().ops
    assert op.call.tensors[0].strides == (288, 1, 48, 8)


@pytest.mark.parametrize("row", [{}, {"call": "x"}, {"call": "x", "inputs": {"x": {"shape": "a", "dtype": "f32"}}}])
def test_a_row_that_is_none_is_refused(row: Any) -> None:
    with pytest.raises(BadInput):
        expression.from_row(row)


def test_every_measured_call_is_captured(truth_rows: list[dict[str, Any]]) -> None:
    for row in truth_rows:
        program = expression.from_row(row).capture()
        assert any(isinstance(op.cost, Unpriced) or op.cost.kernels for op in program.ops), row["call"]


@pytest.fixture
def truth_rows() -> list[dict[str, Any]]:
    import json
    from pathlib import Path

    path = Path(__file__).resolve().parents[3] / "shared/truth/h200-ops.jsonl"
    if not path.is_file():
        pytest.skip("the measured calls are not here (../shared/truth)")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return list({row["call"]: row for row in rows}.values())

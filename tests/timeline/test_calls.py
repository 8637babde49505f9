from __future__ import annotations

import math

import pytest

from ridgepole.timeline.reading.calls import call
from ridgepole.work.op import Arg, Call, Tensor


def parsed(dims: str = "", types: str = "", strides: str = "", concrete: str = "", name: str = "aten::x") -> Call:
    return call((name, dims.encode(), types.encode(), strides.encode(), concrete.encode()))


def test_tensors_have_shape_dtype_and_strides_where_these_say_something() -> None:
    found = parsed(
        "[[8, 4], [4, 2], [], [3, 1]]",
        '["c10::BFloat16", "float", "double", "long int"]',
        "[[4, 1], [1, 4], [], [1, 7]]",
    )
    assert found.args == (
        Tensor((8, 4), "bfloat16"),
        Tensor((4, 2), "float32", (1, 4)),
        Tensor((), "float64"),
        Tensor((3, 1), "int64"),
    )


def test_expanded_dimensions_keep_their_stride_of_nothing() -> None:
    assert parsed("[[8, 4]]", '["float"]', "[[0, 1]]").args == (Tensor((8, 4), "float32", (0, 1)),)


def test_an_unknown_dtype_is_said_to_be_unknown() -> None:
    assert parsed("[[8]]", '["c10::Exotic"]').args == (Tensor((8,), ""),)


def test_the_traces_of_2021_have_shapes_only() -> None:
    assert parsed("[[8, 4], [], [4]]", "[]").args == (Tensor((8, 4), ""), None, Tensor((4,), ""))


def test_lists_of_tensors_are_tuples_of_unknown_dtype() -> None:
    found = parsed("[[[8], [4, 2]], []]", '["TensorList", "Scalar"]', "[[[1], [1, 4]], []]", '["", "1"]')
    assert found.args == ((Tensor((8,), ""), Tensor((4, 2), "", (1, 4))), 1)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("Scalar", "1", 1),
        ("Scalar", "-9223372036854775808", -(2**63)),
        ("Scalar", "0.5", 0.5),
        ("Scalar", "1.0000000000000001e-05", 1e-5),
        ("Scalar", "1.", 1.0),
        ("Scalar", "True", True),
        ("Scalar", "False", False),
        ("Scalar", "-inf", -math.inf),
        ("ScalarList", "[1, 2]", (1, 2)),
        ("ScalarList", "[]", ()),
        ("ScalarList", "[True, False]", (True, False)),
        ("GenericList", "[[1], [2, 3]]", ((1,), (2, 3))),
        ("ScalarList", "[1, 2, ...]", None),
        ("Scalar", "gelu", "gelu"),
        ("Device", "cuda:0", "cuda:0"),
    ],
)
def test_concrete_values_are_what_they_say(kind: str, text: str, value: Arg) -> None:
    found = parsed("[[2], []]", f'["float", "{kind}"]', "", f'["", "{text}"]')
    assert found.value(1) == value
    assert type(found.value(1)) is type(value)


def test_what_was_not_recorded_is_none_and_none_at_the_end_is_left_off() -> None:
    assert parsed("[[2], [], []]", '["float", "Scalar", ""]').args == (Tensor((2,), "float32"),)
    assert parsed().args == ()


@pytest.mark.parametrize("junk", ["{", "null", "7", '"x"', "[[[[[[1]]]]]]", '[[-1], ["x"], {"a": 1}, null, true]'])
def test_junk_for_arguments_is_no_argument(junk: str) -> None:
    found = call(("aten::x", junk.encode(), junk.encode(), junk.encode(), junk.encode()))
    assert all(not isinstance(arg, Tensor) or min(arg.shape, default=0) >= 0 for arg in found.args)

"""The registry: every name resolves, no arguments break it, what it prices is sane."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepole import dtypes
from ridgepole.work.cost import access, assess, base_name, broadcast, formula, in_place
from ridgepole.work.op import Arg, Call, Cost, Tensor, Unpriced

NAMES = sorted(formula.all())

dims = st.lists(st.integers(0, 6), max_size=5).map(tuple)
tensors = st.builds(
    Tensor,
    dims,
    st.sampled_from(["", *dtypes.BITS]),
    st.none() | st.lists(st.integers(-1, 9), max_size=5).map(tuple),
)
scalars = st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=4)
args: st.SearchStrategy[tuple[Arg, ...]] = st.lists(
    tensors | scalars | st.lists(tensors | st.integers(-2, 5) | st.booleans(), max_size=4).map(tuple), max_size=12
).map(tuple)


@pytest.mark.parametrize("module", sorted({entry.__module__ for entry in formula.all().values()}))
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_arguments_break_a_formula(module: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([n for n in NAMES if formula.all()[n].__module__ == module]))
    call = Call(name, data.draw(args), data.draw(st.lists(tensors, max_size=2).map(tuple)))
    found = assess(call)
    if isinstance(found, Unpriced):
        assert found.reason
        return
    assert found.flops >= 0 and found.read >= 0 and found.written >= 0 and found.kernels >= 0
    assert found.dtype in dtypes.BITS


def test_an_operator_in_place_has_the_formula_of_its_base() -> None:
    for name in NAMES:
        if name.startswith("aten::") and not name.endswith("_"):
            assert base_name(f"{name}_") == base_name(f"{name}.Tensor") == name
            assert in_place(Call(f"{name}_.Tensor", ())) and not in_place(Call(name, ()))


def test_what_has_no_formula_is_said_to_have_none() -> None:
    assert assess(Call("mine::special", (Tensor((4,), "float32"),))) == Unpriced("no formula for mine::special")


def test_a_second_formula_for_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        formula("aten::mm")(lambda call: Cost(0, 0, 0, "float32", "vector", "other"))


def test_a_call_of_nothing_is_unpriced_with_the_reason() -> None:
    for name in NAMES:
        found = assess(Call(name, ()))
        if isinstance(found, Unpriced):
            assert "not understood" not in found.reason, name


@given(st.lists(dims, min_size=1, max_size=3))
def test_a_broadcast_is_as_long_as_the_longest_shape(shapes: list[tuple[int, ...]]) -> None:
    assert len(broadcast(shapes)) == max(map(len, shapes))


def test_a_copy_across_the_fastest_dimension_is_a_transpose() -> None:
    plain, turned = Tensor((64, 32), "float32"), Tensor((64, 32), "float32", (1, 64))
    assert access(plain, plain) == "copy"
    assert access(plain, turned) == "transpose"
    assert access(turned, turned) == "copy"

"""What one call asks of a machine: the registry of formulas, and the shape arithmetic they share.

    assess(Call("aten::mm", (Tensor((64, 32), "float32"), Tensor((32, 16), "float32"))))

A formula is a plain function of a Call, one entry an operator, in `work/formulas/`, one file a family. It works from
the outputs where they were recorded (capture) and from the arguments alone where not (traces). What it needs and does
not find it asks for with `need`, which makes the call Unpriced with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Literal

from ridgepole import dtypes
from ridgepole.machine.model import Unit
from ridgepole.registry import Registry
from ridgepole.work.op import Arg, Call, Cost, Family, Tensor, Unpriced

Formula = Callable[[Call], Cost]

formula: Registry[Formula] = Registry("formula", "ridgepole.work.formulas")

TENSOR_DTYPES = frozenset({"float16", "bfloat16", "int8", "uint8"})
"""Dtypes whose matrix products run on the tensor units; so do all float8 and float4. fp32 does only as TF32."""

SCALAR_TYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 8: "complex32",
    9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16", 23: "float8_e5m2", 24: "float8_e4m3fn",
}  # fmt: skip
"""c10::ScalarType numbers, as traces record a dtype argument."""

NO_DTYPE = "dtype not recorded"
"""The reason of a call that lacks nothing but its tensors' dtype."""


_GENERATED = re.compile(r"triton_[a-z]{3}(?=_)")


class NotRecorded(Exception):
    """A formula needs an argument that the call does not hold."""


def assess(call: Call) -> Cost | Unpriced:
    """The cost of `call`, or why it has none. Never raises."""
    return _assessed(call, _types(call.args))


def _types(args: tuple[Arg, ...]) -> tuple[object, ...]:
    """What tells 1 from 1.0 and True, which are equal, and so would be the same to the cache."""
    return tuple(_types(arg) if isinstance(arg, tuple) else type(arg) for arg in args)


@lru_cache(maxsize=65536)
def _assessed(call: Call, types: tuple[object, ...]) -> Cost | Unpriced:
    found = formula.find(call.operator) or formula.find(base_name(call.operator)) or _of_kind(call.operator)
    if found is None:
        return Unpriced(f"no formula for {call.operator}")
    try:
        return found(_with_dtypes(call))
    except NotRecorded as error:
        return Unpriced(str(error))
    except Exception as error:
        # Arguments come from other people's files: an odd one leaves this op without a price, not the run.
        return Unpriced(f"arguments of {call.operator} not understood ({type(error).__name__})")


def _of_kind(operator: str) -> Formula | None:
    """The formula of kernels that a compiler names as it goes ("triton_poi_fused_mul_silu_2" is a "triton_poi")."""
    kind = _GENERATED.match(operator)
    return formula.find(kind[0]) if kind else None


def base_name(operator: str) -> str:
    """The operator without its in-place underscore and overload: "aten::add_.Tensor" → "aten::add"."""
    space, _, name = operator.rpartition("::")
    name = name.split(".")[0]
    if name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    return f"{space}::{name}" if space else name


def in_place(call: Call) -> bool:
    """Whether the call writes into its first argument."""
    name = call.operator.split(".")[0]
    return name.endswith("_") and not name.endswith("__")


def _with_dtypes(call: Call) -> Call:
    """Tensors whose dtype was not recorded (lists, old traces) take the first one that was."""
    tensors = call.tensors
    if all(t.dtype for t in tensors):
        return call
    known = next((t.dtype for t in tensors if t.dtype), "")
    if not known:
        raise NotRecorded(NO_DTYPE)
    return retyped(call, known)


def retyped(call: Call, dtype: str) -> Call:
    """`call` with `dtype` wherever a tensor's was not recorded."""
    return replace(call, args=tuple(_typed(arg, dtype) for arg in call.args))


def _typed(arg: Arg, dtype: str) -> Arg:
    if isinstance(arg, Tensor):
        return arg if arg.dtype else replace(arg, dtype=dtype)
    return tuple(_typed(one, dtype) for one in arg) if isinstance(arg, tuple) else arg


def need(call: Call, index: int) -> Tensor:
    """The tensor at `index`. Raises NotRecorded where there is none."""
    tensor = call.tensor(index)
    if tensor is None:
        raise NotRecorded(f"argument {index} of {call.operator} not recorded")
    return tensor


def ints(call: Call, index: int) -> tuple[int, ...] | None:
    """A list of integers at `index`, one integer as a list of one, or None."""
    value = call.value(index)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return (value,)
    if isinstance(value, tuple) and all(isinstance(v, int) for v in value):
        return tuple(v for v in value if isinstance(v, int))
    return None


def listed(call: Call, index: int) -> tuple[Tensor, ...]:
    """The list of tensors at `index`. Raises NotRecorded where there is none."""
    value = call.value(index)
    if not isinstance(value, tuple) or not all(isinstance(v, Tensor) for v in value):
        raise NotRecorded(f"tensor list {index} of {call.operator} not recorded")
    return tuple(v for v in value if isinstance(v, Tensor))


def matrix_unit(dtype: str) -> Unit:
    """Who multiplies matrices of `dtype`."""
    return "tensor" if dtype in TENSOR_DTYPES or dtype.startswith(("float8", "float4")) else "vector"


def broadcast(shapes: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The shape that `shapes` broadcast to."""
    result: list[int] = []
    for shape in shapes:
        for offset, size in enumerate(reversed(shape)):
            if offset == len(result):
                result.append(size)
            elif size != 1:
                result[offset] = size
    return tuple(reversed(result))


_RANK = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float8_e4m3fn", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


def _kind(dtype: str) -> int:
    """bool < integers < floats < complex."""
    return 0 if dtype == "bool" else 3 if dtype.startswith("complex") else 1 if "int" in dtype else 2


def promote(tensors: Sequence[Tensor], scalars: Iterable[Arg] = ()) -> str:
    """The dtype that an elementwise op of these has (torch's type promotion).

    0-d tensors, and after them plain numbers, count only where they are of a higher kind (a float among integers).
    """
    groups = [[t.dtype for t in tensors if t.shape], [t.dtype for t in tensors if not t.shape]]
    groups.append(["bool" if isinstance(v, bool) else "int64" for v in scalars if isinstance(v, int)])
    found = ""
    for group in groups:
        if not group:
            continue
        dtype = _highest(group)
        if not found or _kind(dtype) > _kind(found):
            found = dtype
    if any(isinstance(v, float) for v in scalars) and _kind(found) < 2:
        return "float32"
    return found


def _highest(found: Sequence[str]) -> str:
    if {"float16", "bfloat16"} <= set(found):
        return "float32"
    return max(found, key=lambda d: _RANK.index(d) if d in _RANK else 0)


def whole(dtype: str) -> bool:
    """Whether `dtype` holds whole numbers or truths."""
    return _kind(dtype) < 2


def as_float(dtype: str) -> str:
    """The dtype that an operator with fractional results makes of `dtype`."""
    return "float32" if whole(dtype) else dtype


def stated_dtype(call: Call, index: int) -> str:
    """The dtype that the argument at `index` asks for, by name (capture) or number (traces); "" where none is."""
    value = call.value(index)
    if isinstance(value, str):
        return dtypes.find(value) or ""
    return SCALAR_TYPES.get(value, "") if isinstance(value, int) and not isinstance(value, bool) else ""


def real_dtype(dtype: str) -> str:
    """The dtype that the arithmetic of `dtype` runs in: of complex numbers, their parts'."""
    return {"complex32": "float16", "complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def written(call: Call, shape: Sequence[int], dtype: str) -> int:
    """Bytes of the outputs: as recorded, else of one tensor of `shape` and `dtype`."""
    if call.outputs:
        return sum(t.nbytes for t in call.outputs)
    return prod(shape) * dtypes.itemsize(dtype)


Access = Literal["copy", "transpose"]


def access(*tensors: Tensor) -> Access:
    """Whether all tensors can be walked along the same fastest dimension, or one goes across another."""
    fastest = {axis for t in tensors if (axis := _fastest(t)) is not None}
    return "copy" if len(fastest) < 2 else "transpose"


def _fastest(tensor: Tensor) -> int | None:
    """The dimension (from the last, 0) of the smallest stride; None where it does not matter."""
    sizes = tensor.shape
    if tensor.strides is None or len(tensor.strides) != len(sizes):
        return 0 if tensor.numel > 1 else None
    live = [(s, i) for i, (n, s) in enumerate(zip(sizes, tensor.strides, strict=True)) if n > 1 and s > 0]
    return len(sizes) - 1 - min(live, key=lambda pair: (pair[0], -pair[1]))[1] if live else None


def plain(call: Call, family: Family, flops: int, read: int, wrote: int, dtype: str, kernels: int = 1) -> Cost:
    """A cost on the vector units."""
    return Cost(flops, read, wrote, dtype, "vector", family, kernels)

"""An op's recorded arguments into a Call: shapes, dtypes, strides and concrete values, as far as they are known."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from ridgepole import dtypes
from ridgepole.timeline.reading.rows import CallKey
from ridgepole.work.op import Arg, Call, Tensor

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"[+-]?\d{1,40}")
_WORDS: dict[str, Arg] = {
    "": None, "None": None, "True": True, "False": False, "true": True, "false": False,
    "inf": math.inf, "-inf": -math.inf, "nan": math.nan,
}  # fmt: skip
_LIST_TYPES = ("ScalarList", "TensorList", "GenericList", "OptionalTensorList")
_DEEPEST = 4
"""Lists in lists in an argument: what lies deeper is no argument of an operator."""


def call(key: CallKey) -> Call:
    """The Call that an op's CallKey writes. What was not recorded is None; a dtype not known is ""."""
    name, dims, types, strides, concrete = key
    shapes, names = _list(dims), _list(types)
    pitches, values = _list(strides), _list(concrete)
    count = max(len(shapes), len(names), len(values))
    args = tuple(
        _argument(_at(shapes, i), _at(names, i), _at(pitches, i), _at(values, i), typed=bool(names))
        for i in range(count)
    )
    while args and args[-1] is None:
        args = args[:-1]
    return Call(name, args)


def _list(text: bytes) -> list[Any]:
    if not text:
        return []
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else None


def _argument(dims: Any, kind: Any, strides: Any, concrete: Any, *, typed: bool) -> Arg:
    kind = kind if isinstance(kind, str) else ""
    if _nested(dims):
        return _tensors(dims, kind, strides)
    shape = _sizes(dims)
    if kind in _LIST_TYPES or kind.startswith("GenericList"):
        return _concrete(concrete) if isinstance(concrete, str) and concrete else () if kind == "TensorList" else None
    if kind in ("", "Scalar", "Device", "Optional", "Generator", "str", "String", "None"):
        # 2021 wrote no types: only what has a size is known to be a tensor
        if not typed and shape:
            return Tensor(shape, "")
        return _concrete(concrete)
    if shape is None:
        return _concrete(concrete)
    return Tensor(shape, dtypes.find(kind) or "", _strides(strides, shape))


def _nested(dims: Any) -> bool:
    return isinstance(dims, list) and bool(dims) and isinstance(dims[0], list)


def _tensors(dims: list[Any], kind: str, strides: Any) -> Arg:
    """A list of tensors. Traces say that it is one, but not its elements' dtype."""
    dtype = dtypes.find(kind) or ""
    found: list[Arg] = []
    for i, one in enumerate(dims):
        shape = _sizes(one)
        if shape is None:
            found.append(None)
            continue
        pitch = _at(strides, i) if isinstance(strides, list) else None
        found.append(Tensor(shape, dtype, _strides(pitch, shape)))
    return tuple(found)


def _sizes(dims: Any) -> tuple[int, ...] | None:
    if not isinstance(dims, list) or not all(type(n) is int and n >= 0 for n in dims):
        return None
    return tuple(dims)


def _strides(strides: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides where they say something: None for a contiguous tensor and for what was not recorded."""
    if not isinstance(strides, list) or len(strides) != len(shape) or not all(type(n) is int for n in strides):
        return None
    expected = 1
    contiguous = True
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        contiguous = contiguous and (stride == expected or size == 1)
        expected *= size
    return None if contiguous else tuple(strides)


def _concrete(value: Any, depth: int = 0) -> Arg:
    if isinstance(value, list):
        return tuple(_concrete(one, depth + 1) for one in value) if depth < _DEEPEST else None
    if value is None or isinstance(value, bool | int | float):
        return value
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("["):
        return _sequence(text, depth)
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text


def _sequence(text: str, depth: int) -> Arg:
    """A list as text, "[1, 2]" or "[[1], [2, 3]]"; None for one that the recorder cut short."""
    if not text.endswith("]") or "..." in text or depth >= _DEEPEST:
        return None
    inner = text[1:-1].strip()
    if not inner:
        return ()
    parts: list[str] = []
    level, begin = 0, 0
    for i, character in enumerate(inner):
        level += (character == "[") - (character == "]")
        if character == "," and not level:
            parts.append(inner[begin:i])
            begin = i + 1
    parts.append(inner[begin:])
    return tuple(_concrete(part, depth + 1) for part in parts)

"""Inputs as a user writes them: `x=4096x4096:bf16`, `i=8192:i64:high=50257`, `w=64x64x3x3:f16:channels_last`, `n=5`.

NAME=DIMS:DTYPE[:channels_last|channels_last_3d][:high=N][:grad]     a tensor; DIMS empty or "scalar" is 0-d
NAME=NUMBER | True | False | None                                    a Python value
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from ridgepole import dtypes
from ridgepole.errors import BadInput

FORMATS = {"channels_last": 4, "channels_last_3d": 5}
"""Memory formats and the number of dimensions each is for."""
HOW = "write NAME=DIMS:DTYPE, as in x=4096x4096:bf16"
WORDS = {"True": True, "False": False, "None": None}
LARGEST = 2**62
"""Elements beyond which torch's own arithmetic overflows."""


@dataclass(frozen=True, slots=True)
class TensorInput:
    """A tensor to be given: shape, dtype (torch's name), memory format ("" contiguous), whether it needs a gradient.

    `high`: its integers lie under it; None: not said.
    """

    shape: tuple[int, ...]
    dtype: str
    memory_format: str = ""
    high: int | None = None
    grad: bool = False

    def make(self) -> Any:
        """A meta tensor of this kind: it has no data and takes no memory."""
        import torch

        dtype = getattr(torch, self.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise BadInput(f"this PyTorch ({torch.__version__}) has no dtype {self.dtype}")
        made = torch.empty(self.shape, dtype=dtype, device="meta")
        if self.memory_format:
            made = made.contiguous(memory_format=getattr(torch, self.memory_format))
        if self.grad:
            if not dtype.is_floating_point and not dtype.is_complex:
                raise BadInput(f"a tensor of {self.dtype} can have no gradient")
            made.requires_grad_(True)
        return made


Input: TypeAlias = "TensorInput | int | float | bool | None"


def parse(texts: Sequence[str]) -> dict[str, Input]:
    """The inputs by name. Raises BadInput for one that is not understood or given twice."""
    found: dict[str, Input] = {}
    for text in texts:
        name, equals, spec = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise BadInput(f"input {text!r} is not understood: {HOW}")
        if name in found:
            raise BadInput(f"input {name} is given twice")
        found[name] = _value(name, spec.strip())
    return found


def _value(name: str, spec: str) -> Input:
    if spec in WORDS:
        return WORDS[spec]
    for kind in (int, float):
        try:
            return kind(spec)
        except ValueError:
            continue
    dims, *rest = spec.split(":")
    shape = _shape(name, dims)
    dtype, memory_format, high, grad = "float32", "", None, False
    for index, part in enumerate(rest):
        if index == 0 and dtypes.find(part) is not None:
            dtype = dtypes.parse(part)
        elif index == 0:
            raise BadInput(f"input {name}: {part!r} is not a dtype: try bf16, f16, f32, fp8, i64 or bool")
        elif part in FORMATS:
            memory_format = part
        elif part == "grad":
            grad = True
        elif part.startswith("high=") and part[5:].isdecimal():
            high = int(part[5:])
        else:
            raise BadInput(
                f"input {name}: {part!r} is not understood: channels_last, high=N or grad may follow the dtype"
            )
    return _checked(name, TensorInput(shape, dtype, memory_format, high, grad))


def _shape(name: str, dims: str) -> tuple[int, ...]:
    if dims in ("", "scalar"):
        return ()
    if not re.fullmatch(r"\d+(?:[x×]\d+)*", dims):
        raise BadInput(f"input {name}: {dims!r} are no dimensions: {HOW}")
    return tuple(int(size) for size in re.split("[x×]", dims))


def _checked(name: str, given: TensorInput) -> TensorInput:
    if prod(given.shape) > LARGEST:
        raise BadInput(f"input {name}: {prod(given.shape):,} elements are more than a tensor can have")
    wanted = FORMATS.get(given.memory_format)
    if wanted is not None and len(given.shape) != wanted:
        raise BadInput(f"input {name}: {given.memory_format} is for {wanted} dimensions, {name} has {len(given.shape)}")
    return given


def from_row(name: str, spec: Mapping[str, Any]) -> TensorInput:
    """The input that a row of measured calls describes: {"shape", "dtype", "memory_format"?, "high"?}."""
    try:
        shape = tuple(int(size) for size in spec["shape"])
        dtype = dtypes.parse(str(spec["dtype"]))
        high = int(spec["high"]) if spec.get("high") is not None else None
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"input {name}: {dict(spec) if isinstance(spec, Mapping) else spec} is not understood"
        ) from error
    memory_format = str(spec.get("memory_format") or "")
    if memory_format in ("contiguous_format", "contiguous"):
        memory_format = ""
    if memory_format and memory_format not in FORMATS:
        raise BadInput(f"input {name}: memory format {memory_format!r} is not known: {', '.join(FORMATS)}")
    return _checked(name, TensorInput(shape, dtype, memory_format, high))


def make(given: Input) -> Any:
    """The value to call with."""
    return given.make() if isinstance(given, TensorInput) else given

"""What a program asks for: tensors, calls of operators, and what each call costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Literal, TypeAlias

from ridgepole import dtypes
from ridgepole.machine.model import Unit


@dataclass(frozen=True, slots=True)
class Tensor:
    """Shape, dtype (torch's name) and strides (in elements; None: contiguous) of a tensor. No data."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Distinct bytes it covers: a dimension of stride 0 (expanded) is counted once."""
        sizes = self.shape
        if self.strides is not None and len(self.strides) == len(sizes):
            sizes = tuple(1 if t == 0 and n > 0 else n for n, t in zip(sizes, self.strides, strict=True))
        return prod(sizes) * dtypes.itemsize(self.dtype)

    @property
    def logical_nbytes(self) -> int:
        """Bytes of every element, expanded dimensions and all."""
        return self.numel * dtypes.itemsize(self.dtype)


Arg: TypeAlias = "Tensor | tuple[Arg, ...] | int | float | bool | str | None"
"""A tensor, a list (as a tuple), or a scalar; None for what was absent or not recorded."""

Phase = Literal["forward", "backward", "optimizer", ""]


@dataclass(frozen=True, slots=True)
class Where:
    """Where in the user's program: module path ("encoder.layer.0"), "file.py:12", and phase. Empty: not known."""

    module: str = ""
    source: str = ""
    phase: Phase = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator, positional arguments in its schema's order, whoever saw it.

    `operator` is torch's qualified name without overload ("aten::addmm"). `outputs` is empty where they were
    not recorded (profiler traces): formulas must then work them out from the arguments.
    """

    operator: str
    args: tuple[Arg, ...]
    outputs: tuple[Tensor, ...] = ()

    def tensor(self, index: int) -> Tensor | None:
        """The tensor at `index`, or None if there is none there."""
        value = self.args[index] if index < len(self.args) else None
        return value if isinstance(value, Tensor) else None

    def value(self, index: int, default: Arg = None) -> Arg:
        """The argument at `index`, or `default` where it is absent."""
        return self.args[index] if index < len(self.args) and self.args[index] is not None else default

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor among the arguments, lists flattened, in order."""
        return tuple(_flatten(self.args))


def _flatten(args: tuple[Arg, ...]) -> list[Tensor]:
    found: list[Tensor] = []
    for arg in args:
        if isinstance(arg, Tensor):
            found.append(arg)
        elif isinstance(arg, tuple):
            found.extend(_flatten(arg))
    return found


@dataclass(frozen=True, slots=True)
class Gemm:
    """`batch` products of m x k by k x n."""

    batch: int
    m: int
    n: int
    k: int
    aligned: int = 16
    """Largest power of two, up to 16 bytes, that divides each operand's row pitch in bytes."""


@dataclass(frozen=True, slots=True)
class Attention:
    """batch x q_heads queries of `q` positions over kv_heads keys of `kv` positions, head sizes d and d_v."""

    batch: int
    q_heads: int
    kv_heads: int
    q: int
    kv: int
    d: int
    d_v: int
    causal: bool
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """A reduction, norm, softmax, sort or scan: `rows` independent runs of `length` elements."""

    rows: int
    length: int


Detail: TypeAlias = "Gemm | Attention | Rows | None"

Family = Literal[
    "matmul", "conv", "attention", "elementwise", "reduction", "norm", "softmax", "copy", "transpose", "gather",
    "scatter", "sort", "scan", "pool", "random", "optimizer", "fill", "collective", "view", "other",
]  # fmt: skip
"""The kernel model that prices it. "view" launches nothing and moves nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call asks of a machine, by its formula. FLOP convention: one multiply-add is 2 FLOP.

    `read` and `written` are the bytes that must move: each distinct input byte once, each output byte once.
    `dtype` is the compute dtype, `unit` who does the arithmetic. `kernels` is how many kernels eager PyTorch
    launches for it.
    """

    flops: int
    read: int
    written: int
    dtype: str
    unit: Unit
    family: Family
    kernels: int = 1
    detail: Detail = None
    assumed: str = ""
    """What the figures rest on besides the arguments; "" where they follow from these alone."""

    @property
    def bytes(self) -> int:
        return self.read + self.written

    @property
    def intensity(self) -> float | None:
        """FLOP per byte; None where no byte moves."""
        return self.flops / self.bytes if self.bytes else None


@dataclass(frozen=True, slots=True)
class Unpriced:
    """No cost is known for a call, and why, in a few words."""

    reason: str


@dataclass(frozen=True, slots=True)
class Op:
    """A call, where it was made, and what it costs."""

    call: Call
    cost: Cost | Unpriced
    where: Where = Where()
    syncs: bool = False
    """The CPU waits for the GPU here (`.item()`, a copy to the host, `nonzero`)."""
    inner: tuple[Op, ...] = ()
    """For a fused kernel: the calls it replaces, `call.operator` then being "fused::…"."""
    inputs: tuple[int, ...] = ()
    """Value ids, one for each of `call.tensors`, in order; a view has its base's id. Empty: not recorded."""
    results: tuple[int, ...] = ()
    """Value ids, one for each of `call.outputs`; an in-place result has its input's id. Empty: not recorded."""

    @property
    def operator(self) -> str:
        return self.call.operator

    def at(self, where: Where) -> Op:
        return replace(self, where=where)


@dataclass(frozen=True, slots=True)
class Program:
    """What a captured function asks for, in order, and the memory it holds.

    `peak_memory`, `parameters`: bytes; peak counts parameters, gradients, optimizer state and live activations.
    """

    ops: tuple[Op, ...]
    name: str
    parameters: int = 0
    peak_memory: int = 0
    notes: tuple[str, ...] = ()
    returned: tuple[int, ...] = ()
    """Value ids that outlive the program (what it returned, gradients, state)."""

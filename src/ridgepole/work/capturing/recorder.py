"""The dispatch mode that sees every ATen op of a program on fake tensors and writes it down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode

from ridgepole.errors import BadInput
from ridgepole.work.capturing.assumed import SYNCING, Assumed, bounded
from ridgepole.work.capturing.gpu_names import on_gpu
from ridgepole.work.capturing.memory import Memory
from ridgepole.work.capturing.place import Places, accumulating
from ridgepole.work.capturing.values import Known, Values
from ridgepole.work.cost import assess
from ridgepole.work.op import Arg, Call, Cost, Op, Tensor, Where

CPU = torch.device("cpu")
_LIFTS = ("aten::lift_fresh", "aten::lift_fresh_copy")
_SCALAR = "aten::_local_scalar_dense"
_DTYPES: dict[Any, str] = {}


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Runs each op on fake CPU tensors and records what a GPU would have been asked.

    Tensors are taken to be in the GPU's memory, except those that the program says are not: `.cpu()`,
    `.to("cpu")`, scalars made by `torch.tensor(...)`. Work on those alone is the CPU's and is not recorded.
    """

    def __init__(self, lift: Callable[[Any], Any], memory: Memory, places: Places) -> None:
        super().__init__()
        self.ops: list[Op] = []
        self.memory = memory
        self.places = places
        self.assumed = Assumed()
        self.recording = False
        self.arriving = False
        """The next op copies from the CPU's memory to the GPU's."""
        self.detaching = False
        """The program itself calls `detach`."""
        self.wait = False
        """The next op recorded makes the CPU wait."""
        self._lift = lift
        self._silent = 0
        self._hosts: set[int] = set()
        self._values = Values()
        self._schemas: dict[Any, _Schema] = {}

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Ops run but are not recorded; what they make is counted."""
        self._silent += 1
        try:
            yield
        finally:
            self._silent -= 1

    def on_host(self, tensor: Any) -> bool:
        """Whether `tensor` is in the CPU's memory."""
        return isinstance(tensor, FakeTensor) and self.memory.value(tensor) in self._hosts

    def fake(self, tensor: Any) -> Any:
        """The fake tensor that stands for a real one; a fake one as it is."""
        return self._lift(tensor)

    def to_host(self, tensor: Any) -> None:
        """`tensor` is in the CPU's memory from now on."""
        self._hosts.add(self.memory.value(tensor))

    def waits(self, what: str) -> None:
        """The program waits for the GPU with no op (torch.cuda.synchronize)."""
        if self.recording and not self._silent:
            where, _ = self.places.here()
            self.ops.append(Op(Call(what, ()), Cost(0, 0, 0, "float32", "vector", "view", 0), where, syncs=True))

    def write(self, operator: str, args: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Record a call that a GPU would run and a CPU has no such operator for."""
        if not self.recording or self._silent:
            return
        reads: list[int] = []
        call = Call(operator, tuple(self._arg(arg, reads) for arg in args), tuple(_tensor(t) for t in outputs))
        where, setup = self.places.here()
        if not setup:
            made = tuple(self.memory.value(t) for t in outputs)
            self._append(call, where, False, tuple(reads), made)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(kind not in (FakeTensor, torch.Tensor) for kind in types):
            return NotImplemented  # a tensor subclass: its own ops come back here
        kwargs = kwargs or {}
        schema = self._schemas.get(func)
        if schema is None:
            schema = self._schemas[func] = _Schema(func)
        if schema.inert:
            return func(*args, **kwargs)
        to_gpu, self.arriving = self.arriving, False
        if kwargs:
            device = kwargs.get("device")
            if device is not None and device.type not in ("cpu", "meta"):
                to_gpu = True
                kwargs = {**kwargs, "device": CPU}
            if kwargs.get("pin_memory"):
                kwargs = {**kwargs, "pin_memory": False}
            kwargs = {name: self._faked(arg) for name, arg in kwargs.items()}
        if schema.operator not in _LIFTS:
            args = tuple(self._faked(arg) for arg in args)
        return self._seen(func, schema, args, kwargs, to_gpu)

    def _faked(self, arg: Any) -> Any:
        if isinstance(arg, torch.Tensor):
            return self._lift(arg)
        if isinstance(arg, (list, tuple)):
            return [self._faked(a) for a in arg]
        return arg

    def _seen(self, func: Any, schema: _Schema, args: Any, kwargs: Any, to_gpu: bool) -> Any:
        """Run the op, follow what it does to memory and places, record it, and return its result."""
        reads: list[int] = []
        given = schema.ordered(args, kwargs)
        watched = self.recording and not self._silent
        call_args: tuple[Arg, ...] = ()
        if watched:
            call_args = tuple(self._arg(arg, reads) for arg in given)
        else:
            reads = [self.memory.value(t) for t in _tensors(given)]
        try:
            out, assumption = func(*args, **kwargs), ""
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            out, assumption = self._guess(func, schema, args, reads, error)
        except UnsupportedOperatorException as error:
            raise BadInput(
                f"{schema.operator} has no fake kernel: give it one with torch.library.register_fake"
            ) from error
        outputs = _tensors(out) or [t for index in schema.written for t in _tensors(given[index])]
        made = tuple(self.memory.value(t) for t in outputs)
        on_host = bool(reads) and not to_gpu and all(i in self._hosts for i in reads)
        from_host = bool(reads) and to_gpu and reads[0] in self._hosts
        to_host = not on_host and bool(made) and made[0] in self._hosts
        if on_host or (schema.operator in _LIFTS and out.dim() == 0):
            self._hosts.update(made)
        self._values.follow(func, args, kwargs, reads, made)
        if on_host or schema.operator in _LIFTS or not watched:
            return out
        if schema.operator == "aten::detach" and not (self.detaching or accumulating()):
            return out  # autograd's own, saving a result: without a mode that looks on it is no op
        where, setup = self.places.here()
        if assumption:
            self.assumed.size(assumption, where.source)
        if setup:
            return out
        call = Call(schema.operator, call_args, tuple(_tensor(t) for t in outputs))
        blocking = not kwargs.get("non_blocking", False)
        syncs = schema.operator in SYNCING or bool(assumption) or ((from_host or to_host) and blocking)
        self._append(call, where, syncs, tuple(reads), made)
        return out

    def _guess(self, func: Any, schema: _Schema, args: Any, reads: Sequence[int], error: Exception) -> tuple[Any, str]:
        """A plausible result of an op that depends on values, and in words what its size was taken for."""
        if schema.operator in (_SCALAR, "aten::equal"):
            value = Known(True, sure=False) if schema.operator == "aten::equal" else self._values.get(reads[0])
            dtype = torch.bool if schema.operator == "aten::equal" else args[0].dtype
            ours = not self.recording or bool(self._silent) or reads[0] in self._hosts
            return self.assumed.value(dtype, value, None if ours else self.places.here()[0].source), ""
        found = bounded(func, tuple(args))
        if found is None:
            raise BadInput(
                f"{schema.operator} makes a result whose size depends on values: no bound is known for it"
            ) from error
        return found

    def _append(self, call: Call, where: Where, syncs: bool, reads: tuple[int, ...], made: tuple[int, ...]) -> None:
        translated = on_gpu(call)
        if translated is not call:
            ids = {id(t): i for t, i in zip(call.tensors, reads, strict=True)}
            call, reads = translated, tuple(ids[id(t)] for t in translated.tensors)
        self.ops.append(Op(call, assess(call), where, syncs or self.wait, (), reads, made))
        self.wait = False

    def _arg(self, value: Any, reads: list[int]) -> Arg:
        """`value` as plain data, in `reads` the value ids of its tensors."""
        if value is None or type(value) in (int, float, bool, str):
            return value  # type: ignore[no-any-return]
        if isinstance(value, torch.Tensor):
            reads.append(self.memory.value(value))
            return _tensor(value)
        if isinstance(value, (list, tuple)):
            return tuple(self._arg(v, reads) for v in value)
        if isinstance(value, torch.SymInt):
            return int(value)
        if isinstance(value, torch.device):
            return "cuda"
        if isinstance(value, torch.Generator):
            return None
        return str(value).removeprefix("torch.")


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(v)]
    return []


def _tensor(tensor: Any) -> Tensor:
    dtype = _DTYPES.get(tensor.dtype)
    if dtype is None:
        dtype = _DTYPES[tensor.dtype] = str(tensor.dtype).removeprefix("torch.")
    strides = tuple(tensor.stride()) if tensor.layout is torch.strided else None
    return Tensor(tuple(tensor.shape), dtype, strides)


class _Schema:
    """What we need of an operator's schema, read once."""

    __slots__ = ("_defaults", "_names", "inert", "operator", "written")

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.operator: str = schema.name
        self.inert = schema.name.startswith(("prim::", "aten::sym_", "profiler::")) or schema.name in _INERT
        self._names = [argument.name for argument in schema.arguments]
        self._defaults = [argument.default_value for argument in schema.arguments]
        self.written = [
            index
            for index, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]

    def ordered(self, args: Sequence[Any], kwargs: Any) -> list[Any]:
        """The arguments in the schema's order, defaults in the place of what was left out."""
        values = [*args, *self._defaults[len(args) :]]
        if kwargs:
            for name, value in kwargs.items():
                values[self._names.index(name)] = value
        return values


_INERT = frozenset({"aten::is_contiguous", "aten::is_strides_like_format", "aten::is_non_overlapping_and_dense"})

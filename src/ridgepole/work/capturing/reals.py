"""Real tensors that a program brings along, and the fake ones that stand for them while it is captured."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from ridgepole.work.capturing.memory import Memory


class Reals:
    """Makes one fake CPU tensor for each real one and remembers the pair. No data is read or copied."""

    def __init__(self, mode: FakeTensorMode, memory: Memory) -> None:
        self._mode = mode
        self._memory = memory
        self._pairs: dict[int, tuple[Any, Any]] = {}
        self._grads: list[tuple[Any, Any]] = []

    def fake(self, tensor: Any) -> Any:
        """The fake tensor that stands for `tensor`; a fake one as it is."""
        if self.has(tensor):
            return tensor
        known = self._pairs.get(id(tensor))
        if known is not None:
            return known[1]
        fake = self._make(tensor)
        self._pairs[id(tensor)] = (tensor, fake)
        if tensor.is_leaf and tensor.requires_grad:
            self._grads.append((tensor, tensor.grad))
        self._memory.was_there(fake)
        return fake

    def has(self, tensor: Any) -> bool:
        """Whether `tensor` is a fake one of this capture; one left by another counts as real."""
        return isinstance(tensor, FakeTensor) and tensor.fake_mode is self._mode

    def _make(self, tensor: Any) -> Any:
        plain = type(tensor) is torch.Tensor and tensor.device.type == "cpu" and not tensor.requires_grad
        if plain and tensor.dim() == 0:
            return self._mode.fake_tensor_converter.from_real_tensor(self._mode, tensor, make_constant=True)
        # Without the modes above the fake one: nothing of this is the program's.
        with torch.utils._python_dispatch._disable_current_modes(), torch._C.DisableTorchFunction(), self._mode:
            if tensor.layout is not torch.strided or tensor.is_quantized:
                return self._mode.from_tensor(tensor)
            fake = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")
            if isinstance(tensor, torch.nn.Parameter):
                return torch.nn.Parameter(fake, requires_grad=tensor.requires_grad)
            return fake.requires_grad_(tensor.requires_grad)

    @contextlib.contextmanager
    def swapped(self, modules: list[Any], optimizers: list[Any]) -> Iterator[None]:
        """Within: the modules' parameters and buffers, and what the optimizers hold of them, are fake."""
        undo: list[Callable[[], None]] = []
        try:
            for module in {id(m): m for root in modules for m in root.modules()}.values():
                for held in (module._parameters, module._buffers):
                    for name, tensor in held.items():
                        if tensor is not None and not self.has(tensor):
                            undo.append(_put(held, name, tensor))
                            held[name] = self._with_grad(tensor)
            for optimizer in optimizers:
                undo.append(self._swap(optimizer))
            yield
        finally:
            for back in reversed(undo):
                back()
            for tensor, grad in self._grads:
                if tensor.grad is not grad:
                    tensor.grad = grad

    def _with_grad(self, tensor: Any) -> Any:
        fake = self.fake(tensor)
        if tensor.grad is not None and fake.grad is None:
            fake.grad = self.fake(tensor.grad)
        return fake

    def _swap(self, optimizer: Any) -> Callable[[], None]:
        groups = [(group, group["params"]) for group in optimizer.param_groups]
        state = optimizer.state
        for group, parameters in groups:
            group["params"] = [self.fake(p) for p in parameters]
        optimizer.state = defaultdict(dict)
        for parameter, values in state.items():
            held = {k: self.fake(v) if isinstance(v, torch.Tensor) else v for k, v in values.items()}
            optimizer.state[self.fake(parameter)] = held

        def back() -> None:
            optimizer.state = state
            for group, parameters in groups:
                group["params"] = parameters

        return back


def _put(held: Any, name: str, tensor: Any) -> Callable[[], None]:
    return lambda: held.__setitem__(name, tensor)


def found_in(*values: Any) -> tuple[list[Any], list[Any]]:
    """The modules and optimizers that a function brings along: itself, what it closes over, its file's globals."""
    modules: dict[int, Any] = {}
    optimizers: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = [(value, 0) for value in values]
    while waiting:
        value, depth = waiting.pop()
        if id(value) in seen or depth > DEEPEST:
            continue
        seen.add(id(value))
        if isinstance(value, torch.nn.Module):
            modules[id(value)] = value
        elif isinstance(value, torch.optim.Optimizer):
            optimizers[id(value)] = value
        else:
            waiting.extend((inside, depth + 1) for inside in _inside(value, depth))
    return list(modules.values()), list(optimizers.values())


DEEPEST = 3


def _inside(value: Any, depth: int) -> list[Any]:
    if isinstance(value, (list, tuple, set)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    inside: list[Any] = []
    for name in ("__self__", "__wrapped__", "func", "args", "keywords"):
        if callable(value) and hasattr(value, name):
            inside.append(getattr(value, name))
    code = getattr(value, "__code__", None)
    if code is not None:
        for cell in getattr(value, "__closure__", None) or ():
            with contextlib.suppress(ValueError):  # a variable not yet bound
                inside.append(cell.cell_contents)
        inside.extend(getattr(value, "__defaults__", None) or ())
        if depth == 0:
            inside.extend(getattr(value, "__globals__", {}).values())
        return inside
    if depth and not isinstance(value, type) and hasattr(value, "__dict__") and type(value).__module__ not in _PLAIN:
        inside.extend(vars(value).values())
    return inside


_PLAIN = ("builtins", "types", "logging", "importlib._bootstrap")

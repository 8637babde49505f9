"""Calls as a dispatch mode sees them, on meta tensors: shapes and dtypes of any size without data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from ridgepole.work.cost import assess
from ridgepole.work.op import Arg, Call, Cost, Tensor


def arg(value: Any) -> Arg:
    """A torch value as a call holds it."""
    if isinstance(value, torch.Tensor):
        return Tensor(tuple(value.shape), str(value.dtype).removeprefix("torch."), tuple(value.stride()))
    if isinstance(value, list | tuple):
        return tuple(arg(one) for one in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


class Seen(TorchDispatchMode):
    """Every ATen call made within, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = dict(kwargs or {})
        out = func(*args, **named)
        positional = list(args)
        for parameter in func._schema.arguments[len(args) :]:
            positional.append(named.get(parameter.name, parameter.default_value))
        outputs = out if isinstance(out, list | tuple) else (out,)
        self.calls.append(
            Call(
                func._schema.name,
                tuple(arg(one) for one in positional),
                tuple(t for t in map(arg, outputs) if isinstance(t, Tensor)),
            )
        )
        return out


def seen(run: Callable[[], object]) -> list[Call]:
    """The calls that `run` makes."""
    with Seen() as mode:
        run()
    return mode.calls


def counted(run: Callable[[], object]) -> int:
    """FLOP of `run` by torch's own counter, which knows matrix products, convolutions and attention only."""
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())


def flops(calls: list[Call]) -> int:
    """FLOP of the calls' matrix products, convolutions and attention by our formulas."""
    costs = [assess(call) for call in calls]
    unpriced = [call.operator for call, cost in zip(calls, costs, strict=True) if not isinstance(cost, Cost)]
    assert not unpriced
    matrix = ("matmul", "conv", "attention")
    return sum(cost.flops for cost in costs if isinstance(cost, Cost) and cost.family in matrix)


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor without data."""
    return torch.empty(shape, dtype=dtype, device="meta")

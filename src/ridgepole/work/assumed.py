"""Values and sizes that only running would tell, and what capture takes them for, said in notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ridgepole.errors import BadInput

MOST_READS = 10_000
"""Values read at one line of the program before it is taken for a loop that never ends."""


class Assumed:
    """What was assumed, and where in the program."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], int] = {}
        self._sizes: dict[tuple[str, str], int] = {}

    def value(self, dtype: Any, truth: bool | None, source: str | None) -> Any:
        """A plausible value for one read from the GPU: 1, or `truth` where what made it says more.

        `source`: the line that reads it; None: not worth a note.
        """
        import torch

        if dtype is torch.bool:
            value: Any = bool(truth)
        elif truth is False:
            value = 0.0 if dtype.is_floating_point else 0
        else:
            value = 1.0 if dtype.is_floating_point else 1 + 0j if dtype.is_complex else 1
        if source is None:
            return value
        key = (repr(value), source)
        self._values[key] = self._values.get(key, 0) + 1
        if self._values[key] > MOST_READS:
            where = f" at {source}" if source else ""
            raise BadInput(f"a loop{where} ends by a value on the GPU, which capture cannot know: bound it by a count")
        return value

    def size(self, what: str, source: str) -> None:
        """Note what was taken for a size that depends on values."""
        self._sizes[what, source] = self._sizes.get((what, source), 0) + 1

    def notes(self) -> list[str]:
        """One line for each kind and place."""
        lines = []
        for (value, source), count in self._values.items():
            reads = "1 value" if count == 1 else f"{count} values"
            lines.append(f"assumed: {reads} read from the GPU{_at(source)} taken for {value}")
        for (what, source), _count in self._sizes.items():
            lines.append(f"assumed: {what}{_at(source)}")
        return lines


def _at(source: str) -> str:
    return f" ({source})" if source else ""


def truth_of(operator: str, inputs: Sequence[bool | None]) -> bool | None:
    """Whether a flag that `operator` makes is true in a program in which all goes well; None: cannot tell."""
    name = operator.split("::")[-1].rstrip("_")
    if name in ("all", "isfinite", "equal"):
        return True
    if name in ("any", "isnan", "isinf", "_amp_foreach_non_finite_check_and_unscale"):
        return False
    if name in ("logical_not", "bitwise_not"):
        return None if not inputs or inputs[0] is None else not inputs[0]
    if name in ("view", "reshape", "clone", "detach", "_to_copy", "squeeze", "alias"):
        return inputs[0] if inputs else None
    return None


Bound = Callable[[Any, tuple[Any, ...]], tuple[Any, str]]


def bounded(func: Any, args: tuple[Any, ...]) -> tuple[Any, str] | None:
    """The result of an op whose size depends on values, as large as it can be, and what that assumes."""
    bound = _BOUNDS.get(func._schema.name)
    return bound(func, args) if bound is not None else None


def _nonzero(func: Any, args: tuple[Any, ...]) -> tuple[Any, str]:
    import torch

    x = args[0]
    return torch.empty((x.numel(), x.dim()), dtype=torch.int64), "every element is nonzero, an upper bound"


def _masked_select(func: Any, args: tuple[Any, ...]) -> tuple[Any, str]:
    import torch

    numel = torch.broadcast_shapes(args[0].shape, args[1].shape)
    return args[0].new_empty(numel).flatten(), "the mask selects every element, an upper bound"


def _index(func: Any, args: tuple[Any, ...]) -> tuple[Any, str]:
    """Masks among the indices become as many indices as they have elements."""
    import torch

    indices: list[Any] = []
    for index in args[1]:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            indices.extend(torch.empty(index.numel(), dtype=torch.int64) for _ in range(index.dim()))
        else:
            indices.append(index)
    return func(args[0], indices), "the mask selects every element, an upper bound"


UNIQUE = "every element is unique, an upper bound"


def _unique(func: Any, args: tuple[Any, ...]) -> tuple[Any, str]:
    import torch

    x = args[0]
    count = x.numel()
    places = torch.empty(x.shape, dtype=torch.int64)
    return (
        x.new_empty(count),
        places,
        torch.empty(count, dtype=torch.int64),
    ), UNIQUE


def _unique2(func: Any, args: tuple[Any, ...]) -> tuple[Any, str]:
    result, what = _unique(func, args)
    return (result if func._schema.name != "aten::_unique" else result[:2]), what


def _repeat(func: Any, args: tuple[Any, ...]) -> tuple[Any, str]:
    import torch

    return torch.empty(args[0].numel(), dtype=torch.int64), "each element is repeated once on average"


def _bincount(func: Any, args: tuple[Any, ...]) -> tuple[Any, str]:
    import torch

    least = args[2] if len(args) > 2 else 0
    dtype = args[1].dtype if len(args) > 1 and args[1] is not None else torch.int64
    return torch.empty(max(int(least), 1), dtype=dtype), "bincount counts no more than minlength values"


_BOUNDS: dict[str, Bound] = {
    "aten::nonzero": _nonzero,
    "aten::masked_select": _masked_select,
    "aten::index": _index,
    "aten::_unique2": _unique2,
    "aten::_unique": _unique2,
    "aten::unique_consecutive": _unique,
    "aten::repeat_interleave": _repeat,
    "aten::bincount": _bincount,
}
SYNCING = frozenset(
    {
        "aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero", "aten::nonzero", "aten::masked_select",
        "aten::_unique", "aten::_unique2", "aten::unique_consecutive", "aten::unique_dim", "aten::bincount",
    }
)  # fmt: skip
"""Operators that make the CPU wait for the GPU, whatever their arguments."""

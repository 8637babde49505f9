"""Values and sizes that only running would tell, and what capture takes them for, said in notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ridgepole.errors import BadInput
from ridgepole.work.capturing.values import Known

MOST_READS = 2_000
"""Values read at one line of the program before it is taken for a loop that never ends."""


class Assumed:
    """What was assumed, and where in the program."""

    def __init__(self) -> None:
        self._reads: dict[str, int] = {}
        self._values: dict[tuple[str, str], int] = {}
        self._sizes: dict[tuple[str, str], int] = {}

    def value(self, dtype: Any, known: Known | None, source: str | None) -> Any:
        """A plausible value for one read from the GPU: what is known of it, else 1, and False for flags.

        `source`: the line that reads it; None: not worth a note.
        """
        import torch

        if known is not None:
            value: Any = known.value
        else:
            value = dtype is not torch.bool
        kind = bool if dtype is torch.bool else float if dtype.is_floating_point else int
        value = complex(value) if dtype.is_complex else kind(value)
        if source is None:
            return value
        self._reads[source] = self._reads.get(source, 0) + 1
        if self._reads[source] > MOST_READS:
            raise BadInput(
                f"{MOST_READS:,} values read from the GPU at {source or 'one place'}: if a loop ends by them, "
                "price one pass of it"
            )
        if known is None or not known.sure:
            key = (repr(value), source)
            self._values[key] = self._values.get(key, 0) + 1
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


def _ctc(func: Any, args: tuple[Any, ...]) -> tuple[Any, str]:
    import torch

    scores, targets = args[0], args[1]
    time, batch = scores.shape[0], scores.shape[1]
    longest = targets.shape[-1] if targets.dim() > 1 else targets.numel()
    paths = scores.new_empty((batch, time, 2 * longest + 1))
    return (torch.empty(batch, dtype=scores.dtype), paths), "targets are as long as their tensor, an upper bound"


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
    "aten::_ctc_loss": _ctc,
}
SYNCING = frozenset(
    {
        "aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero", "aten::nonzero", "aten::masked_select",
        "aten::_unique", "aten::_unique2", "aten::unique_consecutive", "aten::unique_dim", "aten::bincount",
    }
)  # fmt: skip
"""Operators that make the CPU wait for the GPU, whatever their arguments."""

"""What is known of the values in fake tensors: those whose elements are all one number, and flags of programs
in which all goes well.

Enough to follow stopping flags, step counters and scale factors; everything else stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Number: TypeAlias = "bool | int | float"


@dataclass(frozen=True, slots=True)
class Known:
    """Every element is `value`; `sure`: by the program's own constants, not by assuming that all goes well."""

    value: Number
    sure: bool = True


_THROUGH_NAMES = (
    "view reshape _unsafe_view slice select expand squeeze unsqueeze permute transpose t clone detach alias _to_copy "
    "max min amax amin mean index index_select gather contiguous as_strided repeat lift_fresh"
)
_THROUGH = frozenset(_THROUGH_NAMES.split())
"""Operators whose result has the first tensor's one value, if it has one."""
_ONES = frozenset({"ones", "ones_like", "new_ones"})
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros", "zero"})
_GOES_WELL = {"all": True, "isfinite": True, "any": False, "isnan": False, "isinf": False}
_FULL = frozenset({"full", "full_like", "new_full", "fill", "scalar_tensor"})
_SOURCES = _ONES | _ZEROS | _FULL | _GOES_WELL.keys()
"""Operators whose result may be known though nothing of their inputs is."""
_OR = frozenset({"bitwise_or", "logical_or", "__or__", "__ior__"})
_AND = frozenset({"bitwise_and", "logical_and", "__and__", "__iand__"})


class Values:
    """What is known, by value id."""

    def __init__(self) -> None:
        self._known: dict[int, Known] = {}
        self._names: dict[Any, str] = {}

    def get(self, value: int) -> Known | None:
        """What is known of a value."""
        return self._known.get(value)

    def follow(
        self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], reads: Sequence[int], made: Sequence[int]
    ) -> None:
        """An op ran: what it made is now known, or no longer."""
        name = self._names.get(func)
        if name is None:
            name = func._schema.name.removeprefix("aten::")
            name = self._names[func] = name if name.endswith("__") else name.rstrip("_")
        if name == "_amp_foreach_non_finite_check_and_unscale":
            self._known.update(dict.fromkeys(made, Known(0.0, sure=False)))
            return
        inputs = [self._known.get(i) for i in reads]
        known = None
        if len(made) == 1 and (name in _SOURCES or any(i is not None for i in inputs)):
            known = self._result(func, name, args, kwargs, inputs)
        for value in made:
            if known is None:
                self._known.pop(value, None)
            else:
                self._known[value] = known

    def _result(
        self, func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], inputs: Sequence[Known | None]
    ) -> Known | None:
        if name in _ONES or name in _ZEROS:
            return Known(int(name in _ONES))
        if name in _FULL:
            given = [a for a in args if isinstance(a, (bool, int, float))]
            return Known(given[-1]) if given else None
        first = inputs[0] if inputs else None
        if name in _GOES_WELL:
            if first is not None and name in ("all", "any"):
                return Known(bool(first.value), first.sure)
            return Known(_GOES_WELL[name], sure=False)
        if name == "copy":
            return inputs[1] if len(inputs) > 1 else None
        if name in _THROUGH:
            return first
        if name in ("cat", "stack"):
            return first if first is not None and all(i == first for i in inputs) else None
        if name in _OR:
            decided = next((i for i in inputs if i is not None and i.value), None)
            if decided is not None or None in inputs:
                return decided
        if name in _AND:
            decided = next((i for i in inputs if i is not None and not i.value), None)
            if decided is not None or None in inputs:
                return decided
        return _pointwise(func, args, kwargs, inputs)


def _pointwise(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], inputs: Sequence[Known | None]
) -> Known | None:
    """One element of an elementwise op computed for all of them."""
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    sure = [i.sure for i in inputs if i is not None]
    if not inputs or len(sure) != len(inputs) or torch.Tag.pointwise not in func.tags:
        return None
    numbers = iter(i.value for i in inputs if i is not None)

    def element(arg: Any) -> Any:
        return torch.tensor(next(numbers), dtype=arg.dtype) if isinstance(arg, torch.Tensor) else arg

    try:
        with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad():
            result = func(*[element(a) for a in args], **{k: element(v) for k, v in kwargs.items() if k != "out"})
            return Known(result.item(), all(sure)) if isinstance(result, torch.Tensor) else None
    except (RuntimeError, TypeError, ValueError, NotImplementedError, StopIteration):
        return None  # not computable on one element: unknown

"""Kernel names as people say them: no template arguments, no namespaces, the functor kept where it says what runs."""

from __future__ import annotations

import re
from functools import cache

_FUNCTOR = re.compile(r"(\w*(?:[Ff]unctor\w*|_kernel_(?:cuda|impl)))\b")
_PLAIN = re.compile(r"[\w.$-]+")


@cache
def short(name: str) -> str:
    """A C++ kernel's own name, without what surrounds it; any other name as it is.

    >>> short("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)")
    'vectorized_layer_norm_kernel'
    >>> short("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, int>(int)")
    'vectorized_elementwise_kernel CUDAFunctor_add'
    """
    if not name.startswith("void ") and not ("::" in name and ("(" in name or "<" in name)):
        return name
    head = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    own = re.split(r"[<(]", head, maxsplit=1)[0].rpartition("::")[2].strip()
    if not _PLAIN.fullmatch(own):
        return name
    inside = _FUNCTOR.search(head, head.find("<")) if "elementwise" in own and "<" in head else None
    return f"{own} {inside[1]}" if inside else own

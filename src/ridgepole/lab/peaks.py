"""The rates a machine's arithmetic units reach: large products by the vendor's library, one dtype at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.timing import Timing
from ridgepole.machine.model import Unit

SIDES = (4096, 8192)
"""Sides of the products tried; the best counts. FLOPs 2 n³, so the unit is busy for 0.1 ms at the least."""
QUICK_SIDES = (4096,)
DTYPES: tuple[tuple[Unit, str, str], ...] = (
    ("vector", "float32", "float32"),
    ("tensor", "tf32", "float32"),
    ("tensor", "float16", "float16"),
    ("tensor", "bfloat16", "bfloat16"),
    ("tensor", "float8", "float8_e4m3fn"),
    ("tensor", "float64", "float64"),
)
"""Unit, the machine's name of the dtype, and torch's name of its elements."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The best rate of one dtype, FLOP/s, at products of `side`; `why`: said instead where it could not be had."""

    unit: Unit
    dtype: str
    rate: float | None
    side: int
    timing: Timing | None
    why: str = ""


def measure(bench: Bench) -> Iterator[Peak]:
    """Each dtype's peak on a GPU through torch, as it is measured."""
    for unit, dtype, elements in DTYPES:
        bench.note(f"products in {dtype}")
        yield _best(bench, unit, dtype, elements)


def _best(bench: Bench, unit: Unit, dtype: str, elements: str) -> Peak:
    best = Peak(unit, dtype, None, 0, None, "")
    for side in QUICK_SIDES if bench.quick else SIDES:
        try:
            product = _product(bench.torch, bench.device.torch, dtype, elements, side)
            with products_in(bench.torch, "high" if dtype == "tf32" else "highest"):
                timing = bench.time(bench.framework(product))
        except (RuntimeError, AttributeError, NotImplementedError) as error:
            said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            return best if best.rate else Peak(unit, dtype, None, side, None, said)
        rate = 2.0 * side**3 / timing.seconds
        why = gate(rate, bench.most_flops(unit, dtype), "rate")
        if why:
            return Peak(unit, dtype, None, side, timing, why)
        if best.rate is None or rate > best.rate:
            best = Peak(unit, dtype, rate, side, timing)
    return best


def _product(torch: Any, device: str | None, dtype: str, elements: str, side: int) -> Callable[[], object]:
    kind = getattr(torch, elements)
    a, b = (torch.randn(side, side, device=device) for _ in range(2))
    if dtype == "float8":
        one = torch.ones((), device=device)
        left, right = a.to(kind), b.to(kind).t()
        return lambda: torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    left, right = a.to(kind), b.to(kind)
    out = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=out)


@contextmanager
def products_in(torch: Any, precision: str) -> Iterator[None]:
    """Lets products of float32 run in TF32 ("high"), or not ("highest"), and puts the setting back."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)

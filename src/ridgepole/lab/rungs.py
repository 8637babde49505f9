"""The ladder's rungs and the vendor's product beside them: each timed at one size, with its error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from ridgepole.errors import Missing
from ridgepole.lab.bench import Bench
from ridgepole.lab.peaks import products_in
from ridgepole.lab.timing import Timing

RUNGS = ("matmul_naive", "matmul_tiled16", "matmul_tiled32", "matmul_registers")
TILE = {"matmul_naive": 1, "matmul_tiled16": 16, "matmul_tiled32": 32, "matmul_registers": 64}
"""Side of the tile for which A and B are read once."""
SHARED_READS = {"matmul_tiled16": 2.0, "matmul_tiled32": 2.0, "matmul_registers": 0.5}
"""Elements read from shared memory for a multiply-add: one of A and one of B, or 4 and 4 for 16."""
VENDOR = "vendor library"
SAMPLE = 256
"""Rows of the vendor's product that are held to float64."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One product of n x n matrices. `worst`: the largest difference from float64 of any element looked at."""

    rung: str
    n: int
    timing: Timing
    worst: float
    relative: float
    registers: int | None = None

    @property
    def rate(self) -> float:
        """FLOP/s: 2 n³ over the time."""
        return 2.0 * self.n**3 / self.timing.seconds


def rung(bench: Bench, name: str, n: int) -> Timed:
    """A rung of the library, checked and timed."""
    ready = bench.kernel(name, n, n, n)
    error = ready.error
    return Timed(name, n, bench.time(ready.run), error.worst, error.relative, ready.program.registers)


def vendor(bench: Bench, n: int, dtype: str = "float32") -> Timed:
    """torch's product in `dtype` ("tf32": float32 matrices on the tensor units). Raises Missing without torch."""
    torch = bench.torch
    elements = getattr(torch, "float32" if dtype == "tf32" else dtype)
    generator = torch.Generator(device=bench.device.torch).manual_seed(n)
    a, b = (torch.randn(n, n, device=bench.device.torch, generator=generator).to(elements) for _ in range(2))
    out = torch.empty_like(a)
    act: Callable[[], object] = lambda: torch.mm(a, b, out=out)  # noqa: E731
    # Elsewhere than on CUDA the setting means other things.
    with products_in(torch, "high" if dtype == "tf32" else "highest") if not bench.on_cpu else nullcontext():
        timing = bench.time(bench.framework(act))
    relative, worst = _error(torch, a, b, out)
    name = VENDOR if dtype == "float32" else f"{VENDOR}, {dtype}"
    return Timed(name, n, timing, worst, relative)


def _error(torch: Any, a: Any, b: Any, out: Any) -> tuple[float, float]:
    if str(a.device).startswith("mps"):  # which has no float64
        a, b, out = a.cpu(), b.cpu(), out.cpu()
    rows = torch.linspace(0, a.shape[0] - 1, min(SAMPLE, a.shape[0]), device=a.device).long()
    reference = a[rows].double() @ b.double()
    difference = (out[rows].double() - reference).abs()
    return float(difference.norm() / reference.norm()), float(difference.max())


def vendor_dtypes(bench: Bench) -> tuple[str, ...]:
    """What the vendor's product is timed in: float32, and on a GPU what its tensor units take. None without torch."""
    try:
        assert bench.torch is not None
    except Missing as error:
        bench.note(str(error))
        return ()
    return ("float32", "tf32", "bfloat16") if bench.device.backend == "cuda" else ("float32",)


def first_line(error: BaseException) -> str:
    """What went wrong in torch, without its dump."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)

"""What a kernel computes, how it is launched, what it must cost, and its result in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from types import MappingProxyType
from typing import Any

from ridgepole.errors import BadInput
from ridgepole.kernels.device import Launch, backends
from ridgepole.registry import Registry

TOLERANCE = 1e-5
"""Of float32 results, as ‖out - ref‖ / ‖ref‖: rounding stays far under it, a wrong index far over."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Values in float64, of the output at `where` (a numpy index); None: of its first len(values) elements.

    Large products are held to a sample of their rows.
    """

    values: Any
    where: Any = None


@dataclass(frozen=True, slots=True)
class Output:
    """One output array: its element type as numpy calls it, and its elements, of the sizes."""

    dtype: str
    shape: Callable[..., tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of the library. The functions take the sizes in the order of `sizes`.

    `file` and `entry`: the source's stem, the same in each backend's folder, and the function in it. Its arguments
    are the inputs, the outputs, then the sizes as 32-bit unsigned integers; `defines` become macros.
    `make(random, *sizes)` gives the inputs as numpy arrays; `reference(inputs, *sizes)` what each output must hold.
    `flops`, `bytes`: what it must do and move at least. `refuse`: why it cannot run these sizes, "" where it can.
    """

    name: str
    says: str
    file: str
    entry: str
    sizes: tuple[str, ...]
    make: Callable[..., Sequence[Any]]
    outputs: tuple[Output, ...]
    launch: Callable[..., Launch]
    reference: Callable[..., Sequence[Expected]]
    flops: Callable[..., float] = lambda *sizes: 0.0
    bytes: Callable[..., float] = lambda *sizes: 0.0
    refuse: Callable[..., str] = lambda *sizes: ""
    defines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    tolerance: float = TOLERANCE

    def source(self, backend: str) -> str:
        """Its text for a backend. Raises BadInput where that backend has none."""
        suffix = backends.all()[backend].suffix
        path = resources.files(f"ridgepole.kernels.{backend}").joinpath(f"{self.file}{suffix}")
        if not path.is_file():
            raise BadInput(f"{self.name} is not written for {backend}")
        return path.read_text(encoding="utf-8")


kernels: Registry[Kernel] = Registry("kernel", "ridgepole.kernels.library")


def register(kernel: Kernel) -> Kernel:
    """Add a kernel to the library under its own name."""
    return kernels(kernel.name)(kernel)


def find(name: str) -> Kernel:
    """The kernel called `name`. Raises BadInput with the names there are."""
    kernel = kernels.find(name)
    if kernel is None:
        raise BadInput(f"no kernel is called {name!r}: there are {', '.join(kernels.all())}")
    return kernel


def cover(elements: int, block: int) -> Launch:
    """Enough blocks of `block` threads in a row for one thread an element."""
    return Launch((-(-elements // block), 1, 1), (block, 1, 1))

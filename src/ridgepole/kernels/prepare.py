"""A kernel made ready on a device: compiled, given random inputs, and held to float64 before anyone times it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ridgepole.errors import Missing
from ridgepole.kernels.device import Buffer, Device, Launch, Program, Refused
from ridgepole.kernels.kernel import Expected, Kernel, Output, find

SEED = 20261201
MOST_INDEX = 1 << 32
"""Sizes travel as 32-bit unsigned integers."""


@dataclass(frozen=True, slots=True)
class Error:
    """How far a result is from float64: ‖out - ref‖ / ‖ref‖, and the largest single difference."""

    relative: float
    worst: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """A kernel that gave the right result on this device, ready to be timed: `run(i)` queues the i-th call.

    Inputs rotate over `sets` like sets of buffers, so that calls in a row do not find theirs in a cache.
    """

    device: Device
    kernel: Kernel
    sizes: tuple[int, ...]
    program: Program
    launch: Launch
    sets: tuple[tuple[Buffer, ...], ...]
    calls: tuple[Callable[[], None], ...]
    error: Error

    def run(self, i: int = 0) -> None:
        self.calls[i % len(self.calls)]()

    @property
    def flops(self) -> float:
        return self.kernel.flops(*self.sizes)

    @property
    def bytes(self) -> float:
        return self.kernel.bytes(*self.sizes)

    def output(self, index: int = 0) -> Any:
        """An output of the last call of the first set, as a numpy array."""
        return _read(self.device, self.kernel.outputs[index], _last(self.sets[0], self.kernel)[index], self.sizes)


def prepare(
    device: Device,
    name: str,
    *sizes: int,
    sets: int = 1,
    defines: Mapping[str, int] | None = None,
    launch: Launch | None = None,
) -> Prepared:
    """The kernel `name` at `sizes`, checked. `defines` and `launch` replace its own.

    Raises BadInput for sizes it does not take, Refused for what the device refuses, and for a result that is not
    the float64 one within the kernel's tolerance: a wrong kernel is never timed.
    """
    numpy = _numpy()
    kernel = find(name)
    said = _impossible(kernel, sizes) or kernel.refuse(*sizes)
    if said:
        raise Refused(f"{name} at {_called(kernel, sizes)}: {said}")
    program = device.compile(kernel.source(device.backend), kernel.entry, {**kernel.defines, **(defines or {})})
    geometry = launch or kernel.launch(*sizes)
    inputs = tuple(kernel.make(numpy.random.default_rng(SEED), *sizes))

    def made() -> tuple[Buffer, ...]:
        return tuple(device.upload(array) for array in (*inputs, *_poisoned(numpy, kernel, sizes)))

    def bound(buffers: tuple[Buffer, ...]) -> Callable[[], None]:
        return device.bind(program, geometry, buffers, sizes)

    first = made()
    call = bound(first)
    call()
    device.synchronize()
    outputs = [
        _read(device, spec, held, sizes) for spec, held in zip(kernel.outputs, _last(first, kernel), strict=True)
    ]
    error = _error(numpy, outputs, kernel.reference(inputs, *sizes))
    if not error.relative <= kernel.tolerance:
        raise Refused(
            f"{name} at {_called(kernel, sizes)} on {device.name} gives a wrong result: off by {error.relative:.2g} "
            f"of the norm, where {kernel.tolerance:g} is rounding; not timed"
        )
    rest = tuple(made() for _ in range(sets - 1))
    calls = (call, *(bound(buffers) for buffers in rest))
    return Prepared(device, kernel, sizes, program, geometry, (first, *rest), calls, error)


def _last(buffers: Sequence[Buffer], kernel: Kernel) -> Sequence[Buffer]:
    """The buffers that are outputs."""
    return buffers[len(buffers) - len(kernel.outputs) :]


def _read(device: Device, spec: Output, held: Buffer, sizes: tuple[int, ...]) -> Any:
    shape = spec.shape(*sizes)
    return device.download(held, spec.dtype, _count(shape)).reshape(shape)


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise Missing("the laboratory needs numpy: pip install 'ridgepole[lab]'") from None
    return numpy


def _impossible(kernel: Kernel, sizes: tuple[int, ...]) -> str:
    if len(sizes) != len(kernel.sizes):
        return f"it takes {len(kernel.sizes)} sizes ({', '.join(kernel.sizes)})"
    if any(not 1 <= size < MOST_INDEX for size in sizes):
        return "sizes are from 1 to 4,294,967,295"
    return ""


def _called(kernel: Kernel, sizes: tuple[int, ...]) -> str:
    if len(sizes) != len(kernel.sizes):
        return " x ".join(f"{size}" for size in sizes) or "no size"
    return ", ".join(f"{name}={size}" for name, size in zip(kernel.sizes, sizes, strict=True)) or "no size"


def _count(shape: Sequence[int]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _poisoned(numpy: Any, kernel: Kernel, sizes: tuple[int, ...]) -> list[Any]:
    """Outputs of which every byte is 0xff, NaN in a float: what a kernel leaves unwritten shows."""
    made = []
    for spec in kernel.outputs:
        array = numpy.empty(spec.shape(*sizes), spec.dtype)
        array.view(numpy.uint8).fill(0xFF)
        made.append(array)
    return made


def _error(numpy: Any, outputs: Sequence[Any], expected: Sequence[Expected]) -> Error:
    relative = worst = 0.0
    for array, want in zip(outputs, expected, strict=True):
        values = numpy.asarray(want.values, dtype=numpy.float64)
        got = array[want.where] if want.where is not None else array.reshape(-1)[: values.size].reshape(values.shape)
        if values.size == 0:
            continue
        # In place: for large arrays this is most of what checking costs.
        difference = got.astype(numpy.float64)
        difference -= values
        numpy.abs(difference, out=difference)
        norm = float(numpy.linalg.norm(values)) or 1.0
        relative = max(relative, float(numpy.linalg.norm(difference)) / norm)
        worst = max(worst, float(difference.max()))
        if not numpy.isfinite(difference).all():
            return Error(float("inf"), float("inf"))
    return Error(relative, worst)

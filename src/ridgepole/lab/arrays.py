"""Arrays so large that making them takes longer than any kernel over them: made once, and several kernels share them.

Each kernel is held to float64 twice: whole at a small size that is no multiple of anything, and in runs spread over
the large one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ridgepole.kernels.device import Buffer, Device, Refused
from ridgepole.kernels.kernel import find
from ridgepole.kernels.prepare import SEED, Error, Prepared, prepare

RUN, RUNS = 1 << 20, 16
"""Elements of a run that is checked, and how many of them, evenly spread, the first and the last among them."""

Wanted = Callable[[tuple[Any, ...], int, int], Any]
"""From the inputs, what elements start … stop - 1 of the output must be in float64."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """Inputs of n random float32 each, on the host and on the device.

    `unwritten`: what an output holds before its kernel runs, NaN, so that what a kernel leaves out shows.
    """

    device: Device
    n: int
    inputs: tuple[Any, ...]
    held: tuple[Buffer, ...]
    unwritten: Any


def make(device: Device, n: int, many: int = 2) -> Arrays:
    """`many` inputs. Raises Refused where memory is out."""
    import numpy

    random = numpy.random.default_rng(SEED)
    inputs = tuple(random.random(n, dtype="float32") for _ in range(many))
    unwritten: Any = numpy.full(n, numpy.nan, dtype="float32")
    return Arrays(device, n, inputs, tuple(device.upload(array) for array in inputs), unwritten)


def ready(arrays: Arrays, name: str, small: tuple[int, ...], wanted: Wanted, *more: int) -> Prepared:
    """The kernel `name` over the arrays, checked whole at the sizes `small`, then in runs at (n, *more).

    Raises Refused for a result that is wrong.
    """
    import numpy

    device, kernel = arrays.device, find(name)
    first = prepare(device, name, *small)
    takes = len(first.sets[0]) - len(kernel.outputs)
    out = device.upload(arrays.unwritten)
    buffers = (*arrays.held[:takes], out)
    sizes = (arrays.n, *more)
    said = kernel.refuse(*sizes)
    if said:
        raise Refused(f"{name} at n={arrays.n}: {said}")
    launch = kernel.launch(*sizes)
    call = device.bind(first.program, launch, buffers, sizes)
    call()
    device.synchronize()
    got = device.download(out, "float32", arrays.n)
    relative = worst = 0.0
    for start, stop in runs(arrays.n):
        want = wanted(arrays.inputs[:takes], start, stop)
        difference = numpy.abs(got[start:stop].astype("float64") - want)
        worst = max(worst, float(difference.max()))
        relative = max(relative, float(numpy.linalg.norm(difference) / (numpy.linalg.norm(want) or 1.0)))
        if not relative <= kernel.tolerance or not numpy.isfinite(difference).all():
            raise Refused(
                f"{name} at n={arrays.n} on {device.name} gives a wrong result in elements {start:,} to {stop:,}: "
                f"off by {relative:.2g} of the norm; not timed"
            )
    return Prepared(device, kernel, sizes, first.program, launch, (buffers,), (call,), Error(relative, worst))


def runs(n: int) -> list[tuple[int, int]]:
    """The runs that are checked: all of a small array."""
    if n <= RUN * RUNS:
        return [(start, min(start + RUN, n)) for start in range(0, n, RUN)]
    last = n - RUN
    return [(last * i // (RUNS - 1), last * i // (RUNS - 1) + RUN) for i in range(RUNS)]


def elementwise(name: str) -> Wanted:
    """What a kernel gives whose i-th output depends on the i-th inputs alone."""
    reference = find(name).reference
    return lambda inputs, start, stop: reference([array[start:stop] for array in inputs], stop - start)[0].values

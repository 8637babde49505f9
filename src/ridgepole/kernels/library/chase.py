"""Pointer chasing: every load's address is the value of the one before, so that time over loads is latency.

One thread. No FLOPs; one line a load. The registers' turn is a chain of dependent integer multiply-adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from ridgepole.kernels.device import Launch
from ridgepole.kernels.kernel import Expected, Kernel, Output, register

ONE_THREAD = Launch((1, 1, 1), (1, 1, 1))
OFFSET = 1_013_904_223
"""Of the register chain: i = i * i + OFFSET mod 2^32. A compiler cannot fold two of its steps into one."""
SHARED_ELEMENTS = 4096
"""16 KiB of shared memory: every GPU and CPU has it."""
WRAP = 1 << 32


def slots(random: Any, elements: int, stride: int) -> Any:
    """The elements visited, in order: every stride-th one, shuffled, from 0 on and back to it."""
    import numpy

    many = max(1, elements // stride)
    order = random.permutation(many - 1) + 1 if many > 1 else numpy.empty(0, dtype=int)
    return numpy.concatenate(([0], order)) * stride


def _make(random: Any, elements: int, stride: int, steps: int) -> Sequence[Any]:
    import numpy

    order = slots(random, elements, stride)
    following: Any = numpy.zeros(elements, dtype="uint32")
    following[order] = numpy.roll(order, -1)
    return (following,)


def _reference(inputs: Sequence[Any], elements: int, stride: int, steps: int) -> Sequence[Expected]:
    # A memoryview is indexed several times faster than the array; the cycle is known, so no step is walked twice.
    following = memoryview(inputs[0])
    at = 0
    for _ in range(steps % max(1, elements // stride)):
        at = following[at]
    return (Expected([at]),)


def _refuse(elements: int, stride: int, steps: int) -> str:
    return f"a stride of {stride} leaves no element of {elements}" if stride > elements else ""


def _refuse_shared(elements: int, stride: int, steps: int) -> str:
    if elements > SHARED_ELEMENTS:
        return f"at most {SHARED_ELEMENTS} elements, what its array in shared memory holds"
    return _refuse(elements, stride, steps)


def _registers(inputs: Sequence[Any], steps: int) -> Sequence[Expected]:
    at = int(inputs[0][0])
    for _ in range(steps):
        at = (at * at + OFFSET) % WRAP
    return (Expected([at]),)


def _output(*sizes: int) -> tuple[int, ...]:
    """The last index, and the cycles it took by the device's own counter, 0 where it has none."""
    return (2,)


register(
    Kernel(
        name="chase",
        says="i = next[i], one thread, one line a load",
        file="chase",
        entry="chase",
        sizes=("elements", "stride", "steps"),
        make=_make,
        outputs=(Output("uint32", _output),),
        launch=lambda elements, stride, steps: ONE_THREAD,
        reference=_reference,
        refuse=_refuse,
        tolerance=0.0,
    )
)
register(
    Kernel(
        name="chase_shared",
        says="i = next[i] in shared memory, one thread",
        file="chase",
        entry="chase_shared",
        sizes=("elements", "stride", "steps"),
        make=_make,
        outputs=(Output("uint32", _output),),
        launch=lambda elements, stride, steps: ONE_THREAD,
        reference=_reference,
        refuse=_refuse_shared,
        defines=MappingProxyType({"ELEMENTS": SHARED_ELEMENTS}),
        tolerance=0.0,
    )
)
register(
    Kernel(
        name="chase_registers",
        says="i = i * i + offset, one thread, nothing but registers",
        file="chase",
        entry="chase_registers",
        sizes=("steps",),
        make=lambda random, steps: (random.integers(1, WRAP, 1, dtype="uint32"),),
        outputs=(Output("uint32", _output),),
        launch=lambda steps: ONE_THREAD,
        reference=_registers,
        defines=MappingProxyType({"OFFSET": OFFSET}),
        tolerance=0.0,
    )
)

"""A kernel of a length that can be chosen: `rounds` dependent multiply-adds a thread. FLOPs 2 threads x rounds."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from ridgepole.kernels.device import Launch
from ridgepole.kernels.kernel import Expected, Kernel, Output, register
from ridgepole.kernels.library.streams import BLOCK, ITEM

HALVES = 0.5
"""x = x * 0.5 + 1 from x = thread mod 8: every value is exact in float32 for 20 rounds, then tends to 2."""
STARTS = 8


def _reference(inputs: Sequence[Any], threads: int, rounds: int) -> Sequence[Expected]:
    import numpy

    start: Any = numpy.arange(threads) % STARTS
    # The limit is 2; what is left of the distance to it halves each round.
    return (Expected(2.0 + (start - 2.0) * numpy.power(HALVES, min(rounds, 1000))),)


def _launch(threads: int, rounds: int) -> Launch:
    block = min(threads, BLOCK)
    return Launch((-(-threads // block), 1, 1), (block, 1, 1))


register(
    Kernel(
        name="spin",
        says="rounds dependent multiply-adds a thread, the last value kept",
        file="spin",
        entry="spin",
        sizes=("threads", "rounds"),
        make=lambda random, threads, rounds: (),
        outputs=(Output("float32", lambda threads, rounds: (threads,)),),
        launch=_launch,
        reference=_reference,
        flops=lambda threads, rounds: 2.0 * threads * rounds,
        bytes=lambda threads, rounds: float(ITEM) * threads,
        defines=MappingProxyType({"STARTS": STARTS}),
    )
)

"""How much shared memory does a block get? It fills BYTES of it, and each thread sums words that others wrote."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ridgepole.kernels.device import Launch
from ridgepole.kernels.kernel import Expected, Kernel, Output, register

THREADS = 128
WORD = 4
BYTES = 16 << 10
WRAP = 1 << 32


def expected(words: int, rounds: int) -> Any:
    """Word i holds i; in round r thread t reads word (t * WORDS_APART + r * THREADS) mod words, and adds it."""
    import numpy

    thread: Any = numpy.arange(THREADS, dtype=numpy.int64)
    total: Any = numpy.zeros(THREADS, dtype=numpy.int64)
    for r in range(rounds):
        total += (thread + 1 + r * THREADS) % words
    return total % WRAP


register(
    Kernel(
        name="shared_probe",
        says="fills BYTES of shared memory and reads what other threads wrote",
        file="shared_probe",
        entry="shared_probe",
        sizes=("words", "rounds"),
        make=lambda random, words, rounds: (),
        outputs=(Output("uint32", lambda words, rounds: (THREADS,)),),
        launch=lambda words, rounds: Launch((1, 1, 1), (THREADS, 1, 1), words * WORD),
        reference=lambda inputs, words, rounds: (Expected(expected(words, rounds)),),
        defines=MappingProxyType({"BYTES": BYTES}),
        tolerance=0.0,
    )
)

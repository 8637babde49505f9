"""A kernel that keeps LIVE values of a thread in registers at once: the more, the fewer warps fit an SM.

Thread i loads a[i], a[i + n/LIVE], …: LIVE values; then mixes all of them for ROUNDS rounds, so that none can be let
go, and stores their sum. Bytes 4 n read, 4 n / LIVE written.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from ridgepole.kernels.device import Launch
from ridgepole.kernels.kernel import Expected, Kernel, Output, cover, register
from ridgepole.kernels.library.streams import BLOCK, ITEM

ROUNDS = 4
"""Each takes the mean of all values, and moves each value halfway to it: all are needed until the mean is known."""
LIVES = (8, 16, 32, 64, 128)


def _make(random: Any, n: int) -> Sequence[Any]:
    return (random.standard_normal(n, dtype="float32"),)


def _mixed(live: int) -> Any:
    def reference(inputs: Sequence[Any], n: int) -> Sequence[Expected]:
        values = list(inputs[0].astype("float64").reshape(live, n // live))
        for _ in range(ROUNDS):
            mean = sum(values[1:], values[0]) / live
            values = [value * 0.5 + mean * 0.5 for value in values]
        return (Expected(sum(values[1:], values[0])),)

    return reference


def _hungry(live: int) -> Kernel:
    def launch(n: int) -> Launch:
        return cover(n // live, BLOCK)

    return Kernel(
        name=f"hungry{live}",
        says=f"keeps {live} values of a thread in registers at once",
        file="hungry",
        entry="hungry",
        sizes=("n",),
        make=_make,
        outputs=(Output("float32", lambda n: (n // live,)),),
        launch=launch,
        reference=_mixed(live),
        flops=lambda n: float(n) * (3 * ROUNDS + 1),
        bytes=lambda n: float(ITEM) * (n + n // live),
        refuse=lambda n: "" if n % live == 0 else f"n must be a multiple of {live}, the values of a thread",
        defines=MappingProxyType({"LIVE": live, "ROUNDS": ROUNDS}),
    )


for _live in LIVES:
    register(_hungry(_live))

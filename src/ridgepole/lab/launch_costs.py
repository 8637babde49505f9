"""Where a launch's microseconds go: each part the difference of two timings of the CPU's side of a call."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ridgepole.kernels.device import Device, Run

BATCHES = 15
QUICK_BATCHES = 7
CALLS = 300
"""Calls of a batch: fewer than any launch queue is deep, so that the CPU never waits for room in one."""
WARM = 100


@dataclass(frozen=True, slots=True)
class Call:
    """Seconds the CPU spends in one call, the device's work going on behind it: median and quartiles of batches."""

    seconds: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Distance of the quartiles as a share of the median."""
        return (self.high - self.low) / self.seconds if self.seconds else 0.0


def of_cpu(device: Device, run: Run, *, quick: bool = False) -> Call:
    """The CPU's side of `run`; a batch begins with the device at rest."""
    for i in range(WARM):
        run(i)
    times = []
    for _ in range(QUICK_BATCHES if quick else BATCHES):
        device.synchronize()
        start = time.perf_counter()
        for i in range(CALLS):
            run(i)
        times.append((time.perf_counter() - start) / CALLS)
    device.synchronize()
    times.sort()
    quarter = len(times) // 4
    return Call(statistics.median(times), times[quarter], times[-1 - quarter])


def nothing(i: int) -> None:
    """A call with nothing in it."""


def calls_nothing() -> Run:
    """The path of a prepared kernel's call, a function in a function, with nothing at its end."""
    calls: tuple[Callable[[int], None], ...] = (nothing,)

    def run(i: int) -> None:
        calls[i % len(calls)](i)

    return run


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a call's time. `seconds` None: too small to tell from the noise of the two timings it comes from."""

    call: str
    name: str
    seconds: float | None
    how: str


PYTHON, BINDING, DRIVER = "Python's call", "our binding", "runtime, driver"
BOTH, DISPATCH = "binding and driver", "dispatcher"
REPLAYED = "a graph of one kernel replayed, less a call of nothing"
DISPATCHED = "torch's Python binding and dispatcher: torch.mul less the replay"
KERNEL, TORCH = "empty", "torch.mul"


def parts(known: Mapping[str, Call]) -> tuple[Part, ...]:
    """The parts of a kernel's call and of a torch op's, from what was timed.

    `known`: "python" (a call of nothing), "kernel" (the empty kernel by our backend), "replay" (a graph of it alone)
    and "torch" (an op of one element that launches one kernel). Without graphs, what is ours and what the driver's
    cannot be told apart; without a launch inside the torch op (on a CPU), give no "torch".
    """
    python, kernel, replay, torch = (known.get(name) for name in ("python", "kernel", "replay", "torch"))
    if python is None:
        return ()
    found = []
    if kernel is not None:
        found.append(Part(KERNEL, PYTHON, python.seconds, "the loop, and a call of nothing"))
        if replay is None:
            found.append(_difference(KERNEL, BOTH, kernel, python, "the empty kernel less a call of nothing"))
        else:
            found.append(_difference(KERNEL, DRIVER, replay, python, REPLAYED))
            found.append(_difference(KERNEL, BINDING, kernel, replay, "the empty kernel less the replay"))
    if torch is not None:
        found.append(Part(TORCH, PYTHON, python.seconds, "the loop, and a call of nothing"))
        if replay is not None:
            found.append(_difference(TORCH, DRIVER, replay, python, REPLAYED))
            found.append(_difference(TORCH, DISPATCH, torch, replay, DISPATCHED))
    return tuple(found)


def _difference(call: str, name: str, more: Call, less: Call, how: str) -> Part:
    """What `more` has beyond `less`; not told where their quartiles overlap."""
    return Part(call, name, more.seconds - less.seconds if more.low > less.high else None, how)

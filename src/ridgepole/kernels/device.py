"""One interface to every backend: compile, allocate, launch with grid and block, time, synchronise, limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ridgepole.errors import BadInput, Missing
from ridgepole.registry import Registry

Run = Callable[[int], object]
"""Queues the i-th of many like calls; i chooses among rotated inputs."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the device itself reports. Sizes in bytes, clock in Hz (its highest); None where it does not say."""

    sms: int
    warp: int
    threads_per_block: int
    shared_per_block: int
    memory: int
    clock: float | None = None
    l2: int | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """`grid` blocks of `block` threads, x first, and `shared` bytes of shared memory given at launch."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int = 0

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


class Program(Protocol):
    """A compiled kernel. Counts are a thread's registers, a block's static shared bytes, a thread's spilled bytes;
    None where the backend cannot say."""

    @property
    def registers(self) -> int | None: ...
    @property
    def shared(self) -> int | None: ...
    @property
    def spilled(self) -> int | None: ...


class Buffer(Protocol):
    """Device memory."""

    @property
    def nbytes(self) -> int: ...


class Device(Protocol):
    """A device that is open. `torch` is what torch calls it ("cuda:0", "cpu", "mps"), where torch can use it too."""

    backend: str
    name: str
    driver: str
    limits: Limits
    torch: str | None

    def compile(self, source: str, entry: str, defines: Mapping[str, int]) -> Program:
        """The kernel `entry` of `source`, with `defines` as macros. Raises Refused with the compiler's first error."""
        ...

    def upload(self, array: Any) -> Buffer:
        """A buffer holding a numpy array. Raises Refused where memory is out."""
        ...

    def download(self, buffer: Buffer, dtype: str, count: int) -> Any:
        """The first `count` elements as a numpy array, once all queued work is done."""
        ...

    def bind(
        self, program: Program, launch: Launch, buffers: Sequence[Buffer], scalars: Sequence[int]
    ) -> Callable[[], None]:
        """What queues this launch at each call, everything that can be done beforehand being done.

        The kernel's arguments are `buffers`, then `scalars` as 32-bit unsigned. Both raise Refused.
        """
        ...

    def synchronize(self) -> None:
        """Wait for all queued work. Raises Refused for what went wrong in it."""
        ...

    def elapsed(self, run: Run, count: int) -> float:
        """Seconds of run(0) … run(count - 1), queued with one wait at the end: by the device's own clock if it has
        one for this, else the host's."""
        ...

    def graph(self, run: Run, count: int) -> Callable[[], None] | None:
        """What replays run(0) … run(count - 1) as one graph launch; None where the device has no graphs."""
        ...


class Refused(BadInput):
    """The device or its compiler refused this kernel, launch or allocation; the line says which and why."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to run kernels. `suffix`: of its source files; `order`: which is tried first, lowest first.

    `names` lists its devices; `open` opens one by its index. Both raise Missing where the backend cannot run here,
    with how to get it.
    """

    name: str
    suffix: str
    order: int
    names: Callable[[], tuple[str, ...]]
    open: Callable[[int], Device]


backends: Registry[Backend] = Registry("backend", "ridgepole.kernels")


def open_device(name: str | None = None) -> Device:
    """The device called `name`: a backend ("cuda", "metal", "opencl"), one of its devices ("opencl:1"), or "cpu".

    None: the first backend that has a device. Raises BadInput for a name that is none, Missing with what to install.
    """
    known = sorted(backends.all().values(), key=lambda backend: backend.order)
    if name is not None:
        wanted, colon, index = ("opencl" if name == "cpu" else name).partition(":")
        chosen = backends.find(wanted)
        if chosen is None or (colon and not index.isdecimal()):
            said = ", ".join(backend.name for backend in known)
            raise BadInput(f"no device is called {name!r}: use one of {said}, with an index as in cuda:1, or cpu")
        return _opened(chosen, int(index or 0))
    failed = []
    for backend in known:
        try:
            return _opened(backend, 0)
        except Missing as error:
            failed.append(str(error))
    raise Missing("no backend can run kernels here: " + "; ".join(failed))


def _opened(backend: Backend, index: int) -> Device:
    names = backend.names()
    if index >= len(names):
        raise BadInput(f"{backend.name} has {len(names)} device(s) here, so there is no {backend.name}:{index}")
    return backend.open(index)

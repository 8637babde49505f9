"""A device through pyopencl. On a CPU the "SMs" are its cores and the shared memory is its cache."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ridgepole.errors import Missing
from ridgepole.kernels.device import Buffer, Launch, Limits, Program, Refused, Run
from ridgepole.kernels.opencl import host_cpu

INSTALL = "pip install 'ridgepole[lab]' (pyopencl and PoCL, which runs OpenCL on the CPU)"


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel pyopencl built. It says nothing of registers."""

    built: Any
    entry: str
    registers: int | None = None
    shared: int | None = None
    spilled: int | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A buffer and its size; pyopencl frees it with the last reference, so a queued launch must not hold the last."""

    memory: Any
    nbytes: int


def _cl() -> Any:
    try:
        import pyopencl
    except ImportError as error:
        raise Missing(f"OpenCL needs pyopencl, which does not import here ({error}): {INSTALL}") from None
    return pyopencl


def _devices(cl: Any) -> list[Any]:
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise Missing(f"OpenCL finds no device ({_said(error)}): {INSTALL}") from None
    if not found:
        raise Missing(f"OpenCL finds no device: {INSTALL}")
    return found


def names() -> tuple[str, ...]:
    """Every OpenCL device here. Raises Missing where there is none."""
    return tuple(device.name.strip() for device in _devices(_cl()))


class OpenCL:
    """One OpenCL device with one in-order queue. See `ridgepole.kernels.device.Device`."""

    backend = "opencl"

    def __init__(self, index: int) -> None:
        self._cl = cl = _cl()
        found = _devices(cl)[index]
        if "Portable Computing Language" in found.platform.name:
            if shutil.which("ld") is None:
                raise Missing("PoCL links each kernel with ld and aborts without it: install binutils")
            host_cpu.name_it(found)
        self._context = cl.Context([found])
        self._queue = cl.CommandQueue(self._context)
        self._device = found
        self.name: str = found.name.strip()
        self.driver = f"{found.platform.name} {found.driver_version}".strip()
        on_cpu = bool(found.type & cl.device_type.CPU)
        self.torch: str | None = "cpu" if on_cpu else None
        self.limits = Limits(
            sms=int(found.max_compute_units),
            warp=1 if on_cpu else 32,
            threads_per_block=int(found.max_work_group_size),
            shared_per_block=int(found.local_mem_size),
            memory=int(found.global_mem_size),
            clock=float(found.max_clock_frequency) * 1e6 or None,
            l2=int(found.global_mem_cache_size) or None,
        )

    def compile(self, source: str, entry: str, defines: Mapping[str, int]) -> Program:
        options = [f"-D{name}={value}" for name, value in defines.items()]
        try:
            program = self._cl.Program(self._context, source).build(options)
            return Built(program, entry)
        except self._cl.Error as error:
            raise Refused(f"{entry} does not compile for {self.name}: {_said(error)}") from None

    def upload(self, array: Any) -> Buffer:
        cl, flags = self._cl, self._cl.mem_flags
        try:
            memory = cl.Buffer(self._context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=array)
        except (cl.Error, MemoryError) as error:
            raise Refused(f"{self.name} has no room for {array.nbytes:,} B more ({_said(error)})") from None
        return Held(memory, int(array.nbytes))

    def download(self, buffer: Buffer, dtype: str, count: int) -> Any:
        import numpy

        assert isinstance(buffer, Held)
        array: Any = numpy.empty(count, dtype)
        self._cl.enqueue_copy(self._queue, array, buffer.memory, is_blocking=True)
        return array

    def bind(
        self, program: Program, launch: Launch, buffers: Sequence[Buffer], scalars: Sequence[int]
    ) -> Callable[[], None]:
        import numpy

        assert isinstance(program, Built)
        cl, queue = self._cl, self._queue
        threads = tuple(g * b for g, b in zip(launch.grid, launch.block, strict=True))
        # A kernel object of its own holds the arguments set in it, and with them the buffers.
        kernel = cl.Kernel(program.built, program.entry)
        arguments = (*(held.memory for held in buffers if isinstance(held, Held)), *(numpy.uint32(s) for s in scalars))
        kernel.set_args(*arguments)

        def call() -> None:
            try:
                cl.enqueue_nd_range_kernel(queue, kernel, threads, launch.block)
            except cl.Error as error:
                raise Refused(f"{program.entry} cannot be launched on {self.name}: {_said(error)}") from None

        call.arguments = arguments  # type: ignore[attr-defined]
        return call

    def synchronize(self) -> None:
        self._queue.finish()

    def elapsed(self, run: Run, count: int) -> float:
        self._queue.finish()
        start = time.perf_counter()
        for i in range(count):
            run(i)
        self._queue.finish()
        return time.perf_counter() - start

    def graph(self, run: Run, count: int) -> Callable[[], None] | None:
        return None


def _said(error: BaseException) -> str:
    """What pyopencl says, without its dumps: the first line with a word in it."""
    return next(
        (line.strip() for line in re.split(r"[\r\n]+", str(error)) if re.search(r"\w", line)), "no reason given"
    )

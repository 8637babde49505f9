"""A device through pyopencl. On a CPU the "SMs" are its cores and the shared memory is its cache."""

from __future__ import annotations

import re
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ridgepole.errors import Missing
from ridgepole.kernels import watchdog
from ridgepole.kernels.device import Buffer, Launch, Limits, Program, Refused, Run
from ridgepole.kernels.opencl import pocl

INSTALL = "pip install 'ridgepole[lab]' (pyopencl and PoCL, which runs OpenCL on the CPU)"
ERROR = re.compile(r"\berror\b", re.IGNORECASE)
PLACE = re.compile(r":(\d+):\d+:\s*(?:fatal )?(?:error:\s*)?(.+)")
"""Line, column and what is said, as clang and every OpenCL compiler derived from it print an error."""


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel pyopencl built, and the bytes of local memory its groups take. OpenCL says nothing of registers."""

    built: Any
    entry: str
    shared: int | None
    registers: int | None = None
    spilled: int | None = None


# Without slots: only so can a finalizer be attached to it in Python 3.10.
@dataclass(frozen=True)
class Held:
    """A buffer and its size; pyopencl frees it with the last reference, so a queued launch must not hold the last."""

    memory: Any
    nbytes: int


def _cl() -> Any:
    pocl.give_a_cache()
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
        platform = found.platform
        by_pocl = pocl.PLATFORM in platform.name
        if by_pocl:
            pocl.make_ready(found)
        self._context = cl.Context([found])
        self._queue = cl.CommandQueue(self._context)
        self._device = found
        self._queued = "nothing"
        self._held = 0
        self._on_cpu = bool(found.type & cl.device_type.CPU)
        self.name: str = found.name.strip()
        self.driver = pocl.version(platform.version) if by_pocl else f"{platform.name} {found.driver_version}".strip()
        self.torch: str | None = "cpu" if self._on_cpu else None
        self.limits = Limits(
            sms=int(found.max_compute_units),
            warp=1 if self._on_cpu else 32,
            threads_per_block=int(found.max_work_group_size),
            shared_per_block=int(found.local_mem_size),
            memory=int(found.global_mem_size),
            clock=float(found.max_clock_frequency) * 1e6 or None,
            l2=int(found.global_mem_cache_size) or None,
        )

    def compile(self, source: str, entry: str, defines: Mapping[str, int]) -> Program:
        cl = self._cl
        options = [f"-D{name}={value}" for name, value in defines.items()]
        try:
            with warnings.catch_warnings(), pocl.quiet():
                warnings.simplefilter("ignore", cl.CompilerWarning)
                # The drivers that gain by a cache have their own; pyopencl's would need a home that can be written.
                program = cl.Program(self._context, source).build(options, cache_dir=False)
                kernel = cl.Kernel(program, entry)
            shared = int(kernel.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, self._device))
        except cl.Error as error:
            raise Refused(f"{entry} does not compile for {self.name}: {_said(error)}") from None
        most = self.limits.shared_per_block
        if shared > most:
            # PoCL takes it, and dies when the kernel runs.
            raise Refused(f"{entry} takes {shared:,} B of local memory a group: {self.name} has {most:,} B")
        return Built(program, entry, shared)

    def upload(self, array: Any) -> Buffer:
        cl, flags, size = self._cl, self._cl.mem_flags, int(array.nbytes)
        self._check_room(size)
        try:
            if size == 0:
                memory = cl.Buffer(self._context, flags.READ_WRITE, size=1)
            else:
                memory = cl.Buffer(self._context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=array)
        except (cl.Error, MemoryError) as error:
            raise Refused(f"{self.name} has no room for {size:,} B more ({_said(error)})") from None
        held = Held(memory, size)
        self._held += size
        weakref.finalize(held, _release, weakref.ref(self), size)
        return held

    def _check_room(self, size: int) -> None:
        """PoCL itself would take what it has not, and be killed for it when the memory is touched."""
        most = int(self._device.max_mem_alloc_size)
        if size > most:
            raise Refused(f"{self.name} gives at most {most:,} B to one buffer, and {size:,} B are asked for")
        free = self.limits.memory - self._held
        if self._on_cpu:
            free = min(free, _available() or free)
        if size > free:
            raise Refused(
                f"{self.name} has no room for {size:,} B more: {max(0, free):,} B of {self.limits.memory:,} B are free"
            )

    def download(self, buffer: Buffer, dtype: str, count: int) -> Any:
        import numpy

        assert isinstance(buffer, Held)
        array: Any = numpy.empty(count, dtype)
        if count:
            self.synchronize()
            self._cl.enqueue_copy(self._queue, array, buffer.memory, is_blocking=True)
        return array

    def bind(
        self, program: Program, launch: Launch, buffers: Sequence[Buffer], scalars: Sequence[int]
    ) -> Callable[[], None]:
        import numpy

        assert isinstance(program, Built)
        self._check_launch(program, launch)
        cl, queue, entry, block = self._cl, self._queue, program.entry, launch.block
        # Whole groups only: PoCL gets barriers wrong in partial ones.
        threads = tuple(g * b for g, b in zip(launch.grid, block, strict=True))
        try:
            # A kernel object of its own holds the arguments set in it.
            kernel = cl.Kernel(program.built, entry)
            memories = (held.memory for held in buffers if isinstance(held, Held))
            kernel.set_args(*memories, *(numpy.uint32(scalar) for scalar in scalars))
        except (cl.Error, TypeError) as error:
            raise Refused(f"{entry} does not take these arguments on {self.name}: {_said(error)}") from None
        start = cl.enqueue_nd_range_kernel

        def call() -> None:
            self._queued = entry
            try:
                start(queue, kernel, threads, block)
            except cl.Error as error:
                raise Refused(f"{entry} cannot be launched on {self.name}: {_said(error)}") from None

        # OpenCL keeps no reference to what a kernel reads: these live as long as the call does.
        call.held = tuple(buffers)  # type: ignore[attr-defined]
        return call

    def _check_launch(self, program: Built, launch: Launch) -> None:
        """What PoCL would answer with a number, or not at all."""
        most = self.limits.threads_per_block
        if launch.threads > most:
            raise Refused(
                f"{program.entry}: {launch.threads:,} threads a block, and {self.name} takes at most {most:,}"
            )
        if min(*launch.grid, *launch.block) < 1:
            raise Refused(f"{program.entry}: a launch of {launch.grid} blocks of {launch.block} threads is empty")

    def synchronize(self) -> None:
        with watchdog.waiting(f"kernel {self._queued} on {self.name}"):
            try:
                self._queue.finish()
            except self._cl.Error as error:
                raise Refused(f"{self._queued} failed on {self.name}: {_said(error)}") from None

    def elapsed(self, run: Run, count: int) -> float:
        """By the host's clock. The first launch of a kernel with a new block builds code for it: warm up before."""
        self.synchronize()
        start = time.perf_counter()
        for i in range(count):
            run(i)
        self.synchronize()
        return time.perf_counter() - start

    def graph(self, run: Run, count: int) -> Callable[[], None] | None:
        return None


def _release(device: weakref.ref[OpenCL], size: int) -> None:
    living = device()
    if living is not None:
        living._held -= size


def _available() -> int | None:
    """Bytes of host memory that can be had without swapping, as Linux says; None elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return int(kilobytes) << 10 if kilobytes else None


def _said(error: BaseException) -> str:
    """What pyopencl says without its dumps: the compiler's first error with its line, else the first line there is."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", str(error)) if re.search(r"\w", line)]
    for line in lines:
        place = PLACE.search(line)
        if place and ERROR.search(line):
            return f"line {place.group(1)}: {place.group(2)}"
    for line in lines:
        if re.match(r"(?:fatal )?error\b", line):
            return line
    # It repeats itself: "clBuildProgram failed: X - clBuildProgram failed: X".
    return lines[0].split(" - ")[0] if lines else "no reason given"

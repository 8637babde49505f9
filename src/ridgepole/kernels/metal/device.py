"""An Apple GPU: kernels compiled and launched by torch.mps, in torch's memory. Never run on one: see the package.

What torch does with a call was read in its source (torch/csrc/mps/Module.cpp, aten/src/ATen/native/mps/
OperationUtils.mm, as of 2026; 2.8's library for macOS has the same words): a tensor is bound to the buffer of its place
among the arguments, at its storage offset; an integer is 64 bits wide unless `arg_casts` says "int32", which keeps the
lower 32; `threads` counts all threads, not blocks, and where it is given a kernel needs no argument; a source is ASCII.
"""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ridgepole.errors import Missing
from ridgepole.kernels.device import Buffer, Launch, Limits, Program, Refused, Run
from ridgepole.machine import detect

SIMD_GROUP = 32
"""Threads of a SIMD group (Apple: Metal Feature Set Tables, every Apple GPU; a pipeline's threadExecutionWidth)."""
MOST_THREADS = 1024
"""Threads of a threadgroup (Metal Feature Set Tables, Apple4 and later); a kernel that needs many registers gets
fewer, and torch says how many of each."""
THREADGROUP_MEMORY = 32 << 10
"""Bytes of threadgroup memory (Metal Feature Set Tables, Apple4 and later). torch has no question for it."""
SMALLEST = 16
"""Bytes of the smallest buffer: Metal has none of no bytes."""
_ERROR = re.compile(r":(?P<line>\d+):\d+: error: (?P<what>[^\n]+)")


@dataclass(frozen=True, slots=True)
class Built:
    """A compute pipeline torch built. `shared`: bytes of its threadgroup arrays; Metal says nothing of registers."""

    kernel: Any
    entry: str
    threads: int
    shared: int | None
    registers: int | None = None
    spilled: int | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A torch tensor of bytes."""

    tensor: Any
    nbytes: int


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise Missing(f"Metal kernels need torch, which does not import here ({error}): pytorch.org has it") from None
    mps = torch.backends.mps
    if not mps.is_built():
        raise Missing("this torch is built without Metal (MPS): that takes a Mac with Apple silicon and its torch")
    if not mps.is_available():
        raise Missing("torch finds no Metal (MPS) device: that takes Apple silicon and macOS 14 or later")
    if not hasattr(torch.mps, "compile_shader"):
        raise Missing(f"Metal kernels need torch 2.8 or later, and this is {torch.__version__}: pip install -U torch")
    return torch


def names() -> tuple[str, ...]:
    """The Metal device torch uses: there is one. Raises Missing where there is none."""
    return (_name(_torch()),)


def _name(torch: Any) -> str:
    asked = getattr(torch.backends.mps, "get_name", None)
    return str(asked() if asked else detect.apple().name or "Apple GPU")


def _cores(torch: Any) -> int:
    asked = getattr(torch.backends.mps, "get_core_count", None)
    cores = asked() if asked else detect.apple().sms
    if not cores:
        raise Missing("neither torch nor ioreg says how many cores this GPU has: a virtual machine hides it")
    return int(cores)


def text(source: str, entry: str, defines: Mapping[str, int]) -> str:
    """What the compiler is given: the macros, then the source, its lines numbered as in the file."""
    macros = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    return f'{macros}#line 1 "{entry}.metal"\n{source}'


class Metal:
    """The one Metal device torch uses. See `ridgepole.kernels.device.Device`."""

    backend = "metal"

    def __init__(self, index: int) -> None:
        self._torch = torch = _torch()
        self.name: str = _name(torch)
        self.driver = f"Metal · macOS {platform.mac_ver()[0] or 'unknown'} · torch {torch.__version__}"
        self.torch: str | None = "mps"
        self.limits = Limits(
            sms=_cores(torch),
            warp=SIMD_GROUP,
            threads_per_block=MOST_THREADS,
            shared_per_block=THREADGROUP_MEMORY,
            memory=int(torch.mps.recommended_max_memory()),
        )

    def compile(self, source: str, entry: str, defines: Mapping[str, int]) -> Program:
        try:
            library = self._torch.mps.compile_shader(text(source, entry, defines))
            kernel = getattr(library, entry)
        except (SyntaxError, RuntimeError, AttributeError) as error:
            raise Refused(f"{entry} does not compile for {self.name}: {_said(error)}") from None
        threads = int(getattr(kernel, "max_threads_per_threadgroup", MOST_THREADS))
        return Built(kernel, entry, threads, getattr(kernel, "static_thread_group_memory_length", None))

    def upload(self, array: Any) -> Buffer:
        torch = self._torch
        try:
            held = torch.empty(max(array.nbytes, SMALLEST), dtype=torch.uint8, device=self.torch)
        except RuntimeError as error:
            raise Refused(f"{self.name} has no room for {array.nbytes:,} B more ({_said(error)})") from None
        if array.nbytes:
            host = array if array.flags.writeable else array.copy()
            held[: array.nbytes].copy_(torch.from_numpy(host.reshape(-1).view("uint8")))
        return Held(held, int(array.nbytes))

    def download(self, buffer: Buffer, dtype: str, count: int) -> Any:
        import numpy

        assert isinstance(buffer, Held)
        size = numpy.dtype(dtype).itemsize * count
        return buffer.tensor[:size].cpu().numpy().view(dtype)

    def bind(
        self, program: Program, launch: Launch, buffers: Sequence[Buffer], scalars: Sequence[int]
    ) -> Callable[[], None]:
        assert isinstance(program, Built)
        if launch.threads > program.threads:
            raise Refused(
                f"{program.entry} cannot be launched on {self.name}: {launch.threads} threads a threadgroup, where it "
                f"gives this kernel at most {program.threads}"
            )
        if program.shared is not None and launch.shared > program.shared:
            raise Refused(
                f"{program.entry} asks for {launch.shared:,} B of threadgroup memory at launch: torch gives a Metal "
                f"kernel what its arrays have when it is compiled, {program.shared:,} B here"
            )
        kernel, group = program.kernel, list(launch.block)
        threads = [g * b for g, b in zip(launch.grid, launch.block, strict=True)]
        arguments = (*(held.tensor for held in buffers if isinstance(held, Held)), *(int(s) for s in scalars))

        def call() -> None:
            try:
                kernel(*arguments, threads=threads, group_size=group, arg_casts="int32")
            except (RuntimeError, ValueError) as error:
                raise Refused(f"{program.entry} cannot be launched on {self.name}: {_said(error)}") from None

        return call

    def synchronize(self) -> None:
        try:
            self._torch.mps.synchronize()
        except RuntimeError as error:
            raise Refused(f"{self.name}: {_said(error)}") from None

    def elapsed(self, run: Run, count: int) -> float:
        """By the host's clock. torch's MPS events are stamped by the host too, in callbacks that may come late or in
        the wrong order, and could wait for ever (pytorch/pytorch#196395, of September 2026, mends both).

        torch may hand its commands to the GPU only when it is waited for: then the time to encode them is in this.
        """
        self.synchronize()
        start = time.perf_counter()
        for i in range(count):
            run(i)
        self.synchronize()
        return time.perf_counter() - start

    def graph(self, run: Run, count: int) -> Callable[[], None] | None:
        """None: torch has no graphs on Metal."""
        return None


def _said(error: BaseException) -> str:
    """The compiler's first error with its line, else the first line said."""
    found = _ERROR.search(str(error))
    if found is not None:
        return f"line {found['line']}: {found['what'].strip()}"
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)

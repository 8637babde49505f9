"""A stand-in for torch with its MPS parts, written from torch's source; its kernels run on the shim.

`stand_in` is put where `import torch` finds it. It is as strict as torch and Metal are about a launch, or stricter: a
call that torch would take for something else is an error.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ridgepole.kernels.device import Launch, Refused

from .shim import Held, Shim

CORES = 10
MEMORY = 16 << 30


class Kernel:
    """torch's `_mps_MetalKernel`."""

    def __init__(self, shim: Shim, text: str, entry: str) -> None:
        self.shim = shim
        self.program: Any = shim.compile(text, entry, {})
        self.calls: list[tuple[list[int], list[int]]] = []

    @property
    def max_threads_per_threadgroup(self) -> int:
        return self.shim.limits.threads_per_block

    @property
    def static_thread_group_memory_length(self) -> int:
        return self.program.shared

    def __call__(self, *arguments: Any, threads: Any = None, group_size: Any = None, arg_casts: Any = None) -> None:
        if threads is None or group_size is None or len(threads) != len(group_size):
            raise RuntimeError("Number of threads is undefined or has wrong dimension")
        if not all(type(n) is int and n > 0 for n in (*threads, *group_size)):
            raise RuntimeError("a dispatch of no threads")
        scalars = [value for value in arguments if type(value) is int]
        tensors = [value for value in arguments if type(value) is not int]
        if list(arguments) != [*tensors, *scalars]:
            raise RuntimeError("an argument is neither a tensor nor an integer, or they are not in order")
        if scalars and arg_casts != "int32":
            raise RuntimeError("an integer is 64 bits wide, and the kernel reads 32")
        grid = [n // b for n, b in zip(threads, group_size, strict=True)]
        assert [g * b for g, b in zip(grid, group_size, strict=True)] == list(threads), "not whole threadgroups"
        self.calls.append((list(threads), list(group_size)))
        held = [Held(tensor.numpy(), tensor.nbytes) for tensor in tensors]
        self.shim.bind(self.program, Launch(tuple(grid), tuple(group_size)), held, scalars)()  # type: ignore[arg-type]
        for tensor, buffer in zip(tensors, held, strict=True):
            tensor.numpy()[...] = buffer.array


class Library:
    """torch's `_mps_ShaderLibrary`: a kernel is an attribute."""

    def __init__(self, shim: Shim, text: str) -> None:
        self._shim, self._text = shim, text.encode("ascii").decode()
        self._kernels: dict[str, Kernel] = {}

    def __getattr__(self, entry: str) -> Kernel:
        if f"void {entry}(" not in self._text:
            raise RuntimeError(f"Failed to create function state object for: {entry}")
        if entry not in self._kernels:
            try:
                self._kernels[entry] = Kernel(self._shim, self._text, entry)
            except Refused as error:
                raise SyntaxError(f"program_source:1:1: error: {error}") from None
        return self._kernels[entry]


def stand_in(shim: Shim) -> SimpleNamespace:
    import torch

    def empty(size: int, *, dtype: Any, device: str) -> Any:
        assert device == "mps"
        return torch.empty(size, dtype=dtype)

    waits: list[None] = []
    backend = SimpleNamespace(
        is_built=lambda: True,
        is_available=lambda: True,
        get_name=lambda: "Apple M0",
        get_core_count=lambda: CORES,
    )
    mps = SimpleNamespace(
        compile_shader=lambda text: Library(shim, text),
        synchronize=lambda: waits.append(None),
        recommended_max_memory=lambda: MEMORY,
        waits=waits,
    )
    return SimpleNamespace(
        __version__="2.0.stand-in",
        uint8=torch.uint8,
        empty=empty,
        from_numpy=torch.from_numpy,
        mps=mps,
        backends=SimpleNamespace(mps=backend),
    )

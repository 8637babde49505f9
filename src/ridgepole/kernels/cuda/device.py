"""An NVIDIA GPU: kernels built by cuda-core, launched by the driver on torch's current stream, in torch's memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ridgepole.errors import Missing
from ridgepole.kernels import watchdog
from ridgepole.kernels.cuda import compiler
from ridgepole.kernels.device import Buffer, Launch, Limits, Program, Refused, Run

STATIC_SHARED = 48 << 10
"""Bytes of shared memory a block gets without asking for more (CUDA programming guide, compute capabilities)."""
MOST_GRID = (0x7FFFFFFF, 65535, 65535)
"""Blocks of a grid along x, y and z (CUDA programming guide, compute capabilities)."""


@dataclass(slots=True)
class Loaded:
    """A kernel on the device, with the driver's handle. `dynamic`: shared bytes its blocks may be given at launch."""

    entry: str
    kernel: Any
    handle: Any
    registers: int
    shared: int
    spilled: int
    dynamic: int = STATIC_SHARED


@dataclass(frozen=True, slots=True)
class Held:
    """A torch tensor of bytes."""

    tensor: Any
    address: int
    nbytes: int


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise Missing(f"CUDA kernels need torch, which does not import here ({error}): pytorch.org has it") from None
    if getattr(torch.version, "hip", None):
        raise Missing("this torch is built for ROCm; the kernels' text was written for HIP too but never run there")
    if torch.version.cuda is None:
        raise Missing("this torch is built without CUDA: install one that is (pytorch.org has the line)")
    if not torch.cuda.is_available():
        raise Missing("torch finds no CUDA device: nvidia-smi says why")
    return torch


def names() -> tuple[str, ...]:
    """Every CUDA device torch sees. Raises Missing where there is none, or no cuda-core."""
    torch = _torch()
    compiler.core()
    return tuple(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))


class CUDA:
    """One CUDA device. See `ridgepole.kernels.device.Device`."""

    backend = "cuda"

    def __init__(self, index: int) -> None:
        from cuda.bindings import driver

        self._torch = torch = _torch()
        self._driver = driver
        self._index = index
        # What torch's own compiled code asks: `current_stream()` makes an object at each call.
        self._stream = torch._C._cuda_getCurrentRawStream
        self._streams: dict[int, Any] = {}
        self.torch: str | None = f"cuda:{index}"
        torch.cuda.set_device(index)
        torch.cuda.init()
        torch.zeros(1, device=self.torch)
        compiler.core().Device(index).set_current()
        p = torch.cuda.get_device_properties(index)
        # "a": instructions of this very architecture; the newest parts' fast paths need it.
        self._arch = f"sm_{p.major}{p.minor}" + ("a" if p.major >= 9 else "")
        self.name: str = p.name
        version = self._ask(driver.cuDriverGetVersion())
        self.driver = f"CUDA {version // 1000}.{version % 1000 // 10} driver · torch {torch.__version__}"
        attribute = driver.CUdevice_attribute
        self.limits = Limits(
            sms=int(p.multi_processor_count),
            warp=int(getattr(p, "warp_size", 32)),
            threads_per_block=self._attribute(attribute.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            shared_per_block=self._attribute(attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            memory=int(p.total_memory),
            clock=self._attribute(attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE) * 1e3,
            l2=self._attribute(attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        )

    def _ask(self, answer: tuple[Any, ...]) -> Any:
        """The value of a driver call. Raises Refused with the driver's own name for what went wrong."""
        error, *values = answer
        if int(error) != 0:
            _, said = self._driver.cuGetErrorString(error)
            text = said.decode() if isinstance(said, bytes) else str(error)
            raise Refused(f"{self.name if hasattr(self, 'name') else 'CUDA'}: {text}")
        return values[0] if values else None

    def _attribute(self, which: Any) -> int:
        return int(self._ask(self._driver.cuDeviceGetAttribute(which, self._index)))

    def compile(self, source: str, entry: str, defines: Mapping[str, int]) -> Program:
        kernel = compiler.build(source, entry, defines, self._arch).get_kernel(entry)
        handle = getattr(kernel, "handle", None)
        handle = kernel._handle if handle is None else handle
        which = self._driver.CUfunction_attribute

        def ask(attribute: Any) -> int:
            return int(self._ask(self._driver.cuKernelGetAttribute(attribute, handle, self._index)))

        return Loaded(
            entry,
            kernel,
            handle,
            registers=ask(which.CU_FUNC_ATTRIBUTE_NUM_REGS),
            shared=ask(which.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
            spilled=ask(which.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        )

    def upload(self, array: Any) -> Buffer:
        torch = self._torch
        try:
            held = torch.empty(max(array.nbytes, 16), dtype=torch.uint8, device=self.torch)
        except torch.cuda.OutOfMemoryError:
            free, total = torch.cuda.mem_get_info(self._index)
            raise Refused(
                f"{self.name} has no room for {array.nbytes:,} B more ({free:,} B of {total:,} B are free)"
            ) from None
        if array.nbytes:
            host = array if array.flags.writeable else array.copy()
            held[: array.nbytes].copy_(torch.from_numpy(host.reshape(-1).view("uint8")))
        return Held(held, int(held.data_ptr()), int(array.nbytes))

    def download(self, buffer: Buffer, dtype: str, count: int) -> Any:
        import numpy

        assert isinstance(buffer, Held)
        size = numpy.dtype(dtype).itemsize * count
        return buffer.tensor[:size].cpu().numpy().view(dtype)

    def bind(
        self, program: Program, launch: Launch, buffers: Sequence[Buffer], scalars: Sequence[int]
    ) -> Callable[[], None]:
        assert isinstance(program, Loaded)
        if launch.shared > program.dynamic:
            self._allow(program, launch.shared)
        core = compiler.core()
        arguments = (*(held.address for held in buffers if isinstance(held, Held)), *map(ctypes.c_uint32, scalars))
        config = core.LaunchConfig(grid=launch.grid, block=launch.block, shmem_size=launch.shared)
        start, kernel, stream, index, known = core.launch, program.kernel, self._stream, self._index, self._streams

        def call() -> None:
            handle = stream(index)
            if handle not in known:
                known[handle] = core.Stream.from_handle(handle)
            try:
                start(known[handle], config, kernel, *arguments)
            except Exception as error:
                raise self._refused(program, launch, error) from None

        # The arguments are addresses: what is at them lives as long as the call does.
        call.held = tuple(buffers)  # type: ignore[attr-defined]
        return call

    def _refused(self, program: Loaded, launch: Launch, error: Exception) -> Refused:
        shape = f"{launch.blocks:,} blocks of {launch.threads} threads, {launch.shared:,} B shared"
        return Refused(f"{program.entry} cannot be launched on {self.name} ({shape}): {' '.join(str(error).split())}")

    def _allow(self, program: Loaded, shared: int) -> None:
        """Let blocks of `program` have `shared` bytes, beyond what they get unasked."""
        most = self.limits.shared_per_block - program.shared
        if shared > most:
            raise Refused(f"{program.entry}: {shared:,} B of shared memory a block: {self.name} gives at most {most:,}")
        attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._ask(self._driver.cuKernelSetAttribute(attribute, shared, program.handle, self._index))
        program.dynamic = shared

    def occupancy(self, program: Program, block: int, shared: int = 0) -> int:
        """Blocks of `block` threads and `shared` dynamic bytes resident on one SM, by the driver's own count."""
        assert isinstance(program, Loaded)
        if shared > program.dynamic:
            self._allow(program, shared)
        # The driver takes a CUkernel wherever it takes a CUfunction.
        function = self._driver.CUfunction(int(program.handle))
        return int(self._ask(self._driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, block, shared)))

    def synchronize(self) -> None:
        try:
            with watchdog.waiting(f"what was queued on {self.name}"):
                self._torch.cuda.synchronize(self._index)
        except RuntimeError as error:
            said = str(error).splitlines()[0]
            raise Refused(f"{self.name}: {said}; the device's context is lost, start again") from None

    def elapsed(self, run: Run, count: int) -> float:
        event = self._torch.cuda.Event
        start, end = event(enable_timing=True), event(enable_timing=True)
        self.synchronize()
        start.record()
        for i in range(count):
            run(i)
        end.record()
        self.synchronize()
        return float(start.elapsed_time(end)) * 1e-3

    def graph(self, run: Run, count: int) -> Callable[[], None] | None:
        graph = self._captured(run, count, self._torch.cuda.CUDAGraph())

        def replay() -> None:
            graph.replay()

        return replay

    def kernels(self, run: Run) -> int | None:
        """Kernels that run(0) launches: the kernel nodes of a graph of it. None where torch shows no graph (2.8 on)."""
        try:
            graph = self._torch.cuda.CUDAGraph(keep_graph=True)
        except TypeError:
            return None
        self._captured(run, 1, graph)
        driver, raw = self._driver, self._driver.CUgraph(int(graph.raw_cuda_graph()))
        error, _, many = driver.cuGraphGetNodes(raw)
        self._ask((error,))
        error, nodes, _ = driver.cuGraphGetNodes(raw, many)
        self._ask((error,))
        wanted = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
        return sum(bool(self._ask(driver.cuGraphNodeGetType(node)) == wanted) for node in nodes[:many])

    def _captured(self, run: Run, count: int, graph: Any) -> Any:
        """`graph` with run(0) … run(count - 1) in it, after one run on the side, as torch asks."""
        torch = self._torch
        side = torch.cuda.Stream(self._index)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run(0)
        torch.cuda.current_stream().wait_stream(side)
        self.synchronize()
        with torch.cuda.graph(graph):
            for i in range(count):
                run(i)
        return graph

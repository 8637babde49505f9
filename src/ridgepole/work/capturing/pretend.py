"""A GPU for programs that ask for one: their "cuda" is fake CPU tensors, the calls about a device are answered.

Held only while a function is captured; everything is put back afterwards.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ridgepole.errors import BadInput
from ridgepole.work.capturing import autocast, gpu_kernels
from ridgepole.work.capturing.recorder import Recorder

MEMORY = 80 * 10**9
"""Bytes of memory that the pretended GPU says it has."""
RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
STEP_SECONDS = 0.001

Notes = Callable[[str], None]


class Pretend(TorchFunctionMode):  # type: ignore[misc]
    """Answers torch functions that a CPU build would refuse or run in another way than a GPU."""

    def __init__(self, recorder: Recorder, note: Notes) -> None:
        super().__init__()
        self._recorder = recorder
        self._answers: dict[Any, Callable[..., Any]] = _answers(recorder, note)
        self._fp32 = autocast.full_precision()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        answer = self._answers.get(func)
        if answer is not None:
            return answer(*args, **kwargs)
        if func in self._fp32 and torch.is_autocast_enabled("cpu"):
            args, kwargs = autocast.widen(args), {name: autocast.widen(value) for name, value in kwargs.items()}
        return func(*args, **kwargs)


def _answers(recorder: Recorder, note: Notes) -> dict[Any, Callable[..., Any]]:
    functional = torch.nn.functional
    plain_to = torch.Tensor.to

    def move(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device", args[0] if args else None)
        if isinstance(device, str) and device == "cpu":
            return to_cpu(tensor)
        if not _is_gpu(device):
            return plain_to(tensor, *args, **kwargs)
        rest = args[1:] if args and _is_gpu(args[0]) else args
        given = dict(zip(("dtype", "non_blocking", "copy"), rest, strict=False)) | kwargs
        return arrive(tensor, given.get("dtype"), bool(given.get("non_blocking")), bool(given.get("copy")))

    def to_gpu(tensor: Any, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        return arrive(tensor, None, non_blocking, False)

    def arrive(tensor: Any, dtype: Any, non_blocking: bool, copy: bool) -> Any:
        if recorder.on_host(tensor):
            recorder.arriving = True
            return plain_to(tensor, dtype or tensor.dtype, non_blocking=non_blocking, copy=True)
        note(ON_GPU)
        return tensor if dtype is None and not copy else plain_to(tensor, dtype or tensor.dtype, copy=copy)

    def to_cpu(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.on_host(tensor):
            return tensor
        recorder.wait = True
        copied = plain_to(tensor, tensor.dtype, copy=True)
        recorder.to_host(copied)
        return copied

    def numpy(tensor: Any, **kwargs: Any) -> Any:
        import numpy

        host = to_cpu(tensor.detach())
        note("assumed: arrays taken from tensors hold ones")
        name = str(host.dtype).removeprefix("torch.")
        one: Any = numpy.ones((), dtype=name if hasattr(numpy, name) else "float32")
        spread = numpy.broadcast_to(one, tuple(host.shape))
        return spread.copy() if host.numel() <= COPIED else spread

    def tolist(tensor: Any) -> Any:
        to_cpu(tensor.detach())
        note("assumed: lists taken from tensors hold ones")
        one = True if tensor.dtype is torch.bool else 1.0 if tensor.is_floating_point() else 1
        return _nested(tuple(tensor.shape), one)

    plain_detach = torch.Tensor.detach

    def detach(tensor: Any) -> Any:
        recorder.detaching = True
        try:
            return plain_detach(tensor)
        finally:
            recorder.detaching = False

    attention = gpu_kernels.attention(functional.scaled_dot_product_attention)
    drop = gpu_kernels.dropout(torch.dropout)
    norm = gpu_kernels.rms_norm(torch.rms_norm, recorder)
    return {
        torch.Tensor.to: move,
        torch.Tensor.cuda: to_gpu,
        torch.Tensor.cpu: to_cpu,
        torch.Tensor.numpy: numpy,
        torch.Tensor.tolist: tolist,
        torch.Tensor.pin_memory: lambda tensor, *args, **kwargs: tensor,
        torch.Tensor.is_cuda.__get__: lambda tensor: not recorder.on_host(tensor),
        functional.scaled_dot_product_attention: attention,
        torch.dropout: drop,
        torch.rms_norm: norm,
        torch.Tensor.detach: detach,
        torch.detach: detach,
    }


ON_GPU = "assumed: what the program moves to the GPU is there already; copies from the host are not priced"
COPIED = 1 << 20
"""Elements up to which an array is made whole, to be written to."""


def _is_gpu(device: Any) -> bool:
    if isinstance(device, torch.device):
        return device.type not in ("cpu", "meta")
    if isinstance(device, str):
        return not device.startswith(("cpu", "meta"))
    return isinstance(device, int) and not isinstance(device, bool)


def _nested(shape: tuple[int, ...], one: Any) -> Any:
    return one if not shape else [_nested(shape[1:], one) for _ in range(shape[0])]


class _Stream:
    """A stream or an event: everything about it succeeds at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.cuda_stream = 0
        self.device = torch.device("cpu")

    def elapsed_time(self, other: Any) -> float:
        return STEP_SECONDS * 1000

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


class _Generator(torch.Generator):  # type: ignore[misc]
    """A generator of random numbers for any device."""

    def __new__(cls, device: Any = None) -> Any:
        return super().__new__(cls, "cpu")


def _no_graphs(*args: Any, **kwargs: Any) -> None:
    raise BadInput("the program makes a CUDA graph itself: price the step that the graph holds, with --mode graph")


@contextlib.contextmanager
def answering(recorder: Recorder, note: Notes) -> Iterator[None]:
    """Within: torch speaks of a GPU that is there, compiled functions run uncompiled, optimizers choose as on a GPU."""
    mode = Pretend(recorder, note)
    with contextlib.ExitStack() as stack:
        for owner, name, value in _patches(recorder, note, mode):
            if hasattr(owner, name):
                stack.enter_context(_replaced(owner, name, value))
        stack.enter_context(autocast.on_cpu())
        stack.enter_context(_uncompiled(note))
        stack.enter_context(_no_fast_path())
        stack.enter_context(torch.backends.mkldnn.flags(enabled=False))  # oneDNN's ops are the CPU's own
        stack.enter_context(mode)
        yield


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def libraries() -> Iterator[None]:
    """Within: model libraries treat fake tensors as they do real ones."""
    utilities = sys.modules.get("transformers.utils.import_utils")
    if utilities is None or not hasattr(utilities, "is_fake_tensor"):
        yield
        return
    with _replaced(utilities, "is_fake_tensor", _always(False)):
        yield


@contextlib.contextmanager
def _no_fast_path() -> Iterator[None]:
    """Transformer layers as the separate ops that they are in training: their inference path has no fake kernel."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextlib.contextmanager
def _uncompiled(note: Notes) -> Iterator[None]:
    """`torch.compile` gives back what it is given; functions compiled earlier run as they were written."""

    def compile(model: Any = None, **kwargs: Any) -> Any:
        note("torch.compile is left out here: price the compiled program with --mode compiled")
        return model if model is not None else lambda fn: fn

    with _replaced(torch, "compile", compile):
        frames = sys.modules.get("torch._dynamo.eval_frame")
        if frames is None or not hasattr(torch.compiler, "set_stance"):
            yield
            return
        with torch.compiler.set_stance("force_eager"):
            yield


def _patches(recorder: Recorder, note: Notes, mode: Pretend) -> list[tuple[Any, str, Any]]:
    from torch._subclasses.fake_tensor import FakeTensor

    cuda = torch.cuda
    nothing = _nothing
    optimizers = importlib.import_module("torch.optim.optimizer")  # torch.optim hides the module
    properties = SimpleNamespace(
        name="GPU",
        total_memory=MEMORY,
        multi_processor_count=132,
        major=9,
        minor=0,
        warp_size=32,
        L2_cache_size=50 << 20,
    )
    functional = torch.nn.functional
    flex = importlib.import_module("torch.nn.attention.flex_attention")
    answers = mode._answers
    constants: dict[str, Any] = {
        "is_available": True, "device_count": 1, "current_device": 0, "is_initialized": True, "is_bf16_supported": True,
        "get_device_name": "GPU", "get_device_capability": (9, 0), "get_device_properties": properties,
        "is_current_stream_capturing": False, "memory_summary": "", "memory_stats": {},
        "mem_get_info": (MEMORY, MEMORY),
    }  # fmt: skip
    silent = (
        "set_device init _lazy_init empty_cache ipc_collect reset_peak_memory_stats reset_max_memory_allocated "
        "reset_max_memory_cached reset_accumulated_memory_stats manual_seed manual_seed_all seed seed_all "
        "set_per_process_memory_fraction set_stream"
    )
    patches: list[tuple[Any, str, Any]] = [(cuda, name, _always(value)) for name, value in constants.items()]
    patches += [(cuda, name, nothing) for name in silent.split()]
    patches += [(cuda, name, lambda *a, **k: recorder.memory.live) for name in ("memory_allocated", "memory_reserved")]
    patches += [
        (cuda, name, lambda *a, **k: recorder.memory.peak) for name in ("max_memory_allocated", "max_memory_reserved")
    ]
    patches += [(cuda, name, _Stream) for name in ("Stream", "Event", "current_stream", "default_stream")]
    patches += [(cuda, name, lambda *a, **k: contextlib.nullcontext()) for name in ("stream", "device")]
    patches += [(cuda, "synchronize", lambda *a, **k: recorder.waits("cuda::synchronize"))]
    patches += [(cuda.nvtx, name, nothing) for name in ("range_push", "range_pop", "mark", "range_start", "range_end")]
    patches += [(cuda.nvtx, "range", lambda *a, **k: contextlib.nullcontext())]
    patches += [(torch, "set_default_device", nothing), (torch, "Generator", _Generator)]
    patches += [(cuda, name, _no_graphs) for name in ("CUDAGraph", "graph", "make_graphed_callables")]
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        patches += [
            (accelerator, "is_available", _always(True)),
            (accelerator, "device_count", _always(1)),
            (accelerator, "current_accelerator", _always(torch.device("cuda"))),
            (accelerator, "current_stream", _Stream),
            (accelerator, "current_device_index", _always(0)),
            (accelerator, "current_device_idx", _always(0)),
            *((accelerator, name, nothing) for name in ("set_device_index", "set_device_idx", "set_stream")),
            *((accelerator, name, nothing) for name in ("empty_cache", "reset_peak_memory_stats")),
            (accelerator, "synchronize", lambda *a, **k: recorder.waits("cuda::synchronize")),
        ]
    patches += [
        (flex, "flex_attention", gpu_kernels.flex_attention(recorder, note)),
        (FakeTensor, "tolist", answers[torch.Tensor.tolist]),
        *((torch._VF, name, _recurrent(getattr(torch._VF, name), note)) for name in RECURRENT),
        (torch.nn.Module, "_apply", _conversion(recorder)),
        (functional, "scaled_dot_product_attention", answers[functional.scaled_dot_product_attention]),
        (torch._VF, "dropout", answers[torch.dropout]),
        (torch, "rms_norm", answers[torch.rms_norm]),
        *((optimizers.Optimizer, f"_{name}_graph_capture_health_check", nothing) for name in ("cuda", "accelerator")),
        (importlib.import_module("torch.nn.utils.clip_grad"), "_has_foreach_support", _always(True)),
        (optimizers, "_get_foreach_kernels_supported_devices", lambda: ["cuda", "cpu"]),
        (optimizers, "_get_fused_kernels_supported_devices", lambda: ["cuda", "cpu"]),
        (optimizers, "_foreach_supported_types", [*optimizers._foreach_supported_types, FakeTensor]),
    ]
    return patches


def _recurrent(plain: Callable[..., Any], note: Notes) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        note("recurrent layers are priced step by step, as written: cuDNN fuses steps, so this is an upper bound")
        return plain(*args, **kwargs)

    return run


def _conversion(recorder: Recorder) -> Callable[..., Any]:
    """`nn.Module._apply` for fake parameters, which torch's own cannot convert in place."""

    def _apply(self: Any, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        if recurse:
            for child in self.children():
                child._apply(fn)
        with torch.no_grad(), recorder.silence():
            for name, parameter in self._parameters.items():
                applied = None if parameter is None else fn(parameter)
                if applied is not parameter:
                    self._parameters[name] = torch.nn.Parameter(applied, requires_grad=parameter.requires_grad)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    return _apply


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value

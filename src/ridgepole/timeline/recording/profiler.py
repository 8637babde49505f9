"""One recording of torch.profiler, and the device it waits for.

Two habits of the profiler matter here (measured on an H200, torch 2.11, CUDA 13): its first start takes about 4 s,
and once CUPTI has been used every later launch is 40 % slower (a launch-bound step: 4.4 ms before, 6.1 ms after)
until CUPTI is torn down, which brings 4.4 ms back and takes 0.3 s. So it is torn down after each recording.
And a stopped recording that is exported after a later one began crashes the process: one is exported, or given up,
before the next starts, and none of ours starts once the program has used the profiler itself.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

Device = Literal["auto", "cpu", "cuda"]
"""What to record: "cuda" (ROCm too), "cpu" alone, or "auto": the GPU once the program uses one."""

_NO_LOG = "6"
"""Kineto's log level above all of its own (torch 2.13 writes two lines to stderr at each recording below it)."""

_SAFE_TEARDOWN = (12, 6)
"""CUDA before 12.6 crashes when CUPTI comes back after a teardown while CUDA graphs live (torch.profiler's note)."""


class Session:
    """One recording, from `start` to `stop`, on the thread that starts it. CPU ops and, on a GPU, its kernels.

    `owner`: whose it is, so that its owner does not take it for the program's own (see `foreign`).
    """

    def __init__(self, gpu: bool, owner: object = None) -> None:
        self.gpu = gpu
        self.on = False
        self._owner = owner
        self._written: Path | None = None
        self._profile: Any = None
        self._range: Any = None

    def start(self) -> None:
        """Records from now on. RuntimeError where another profiler runs already."""
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.gpu else [])]
        with owned_by(self._owner), _quiet():
            # acc_events: else torch warns on the user's stderr that events of earlier cycles are dropped
            self._profile = profile(activities=activities, record_shapes=True, acc_events=True)
            self._profile.start()
        self.on = True

    def stop(self, *, tear_down: bool = True) -> None:
        """Records no more; everything recorded stays in memory until `export`. `tear_down`: the program goes on."""
        if not self.on:
            return
        self.close_range()
        self.on = False
        tear_down = tear_down and self.gpu and teardown_is_safe()
        with owned_by(self._owner), _quiet(), _environment("TEARDOWN_CUPTI", "1") if tear_down else nullcontext():
            self._profile.stop()

    def open_range(self, name: str) -> None:
        """Opens the annotation `name`, closing the one that is open."""
        from torch.profiler import record_function

        self.close_range()
        self._range = record_function(name)
        self._range.__enter__()

    def close_range(self) -> None:
        opened, self._range = self._range, None
        if opened is not None:
            opened.__exit__(None, None, None)

    def export(self, path: Path) -> Path:
        """The stopped recording as a chrome trace: written to `path`, unless it has been written before."""
        if self._written is None:
            with owned_by(self._owner), _quiet():
                self._profile.export_chrome_trace(str(path))
            self._written, self._profile = path, None
        return self._written


def hush_in_child() -> None:
    """Ends a forked child's share of its parent's recording, which would fill its memory (2.7 kB an op) for nothing.

    Only the CPU's side: CUPTI must not be touched in a child. torch warns of that on stderr, straight from C++.
    """
    import torch
    from torch.profiler import ProfilerActivity

    toggle = getattr(torch._C._autograd, "_toggle_collection_dynamic", None)
    if toggle is None:
        return
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        toggle(False, {ProfilerActivity.CPU})
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


_owner: object = None


@contextmanager
def owned_by(owner: object) -> Iterator[None]:
    """Marks the use of the profiler inside as `owner`'s."""
    global _owner
    before, _owner = _owner, owner
    try:
        yield
    finally:
        _owner = before


def owner() -> object:
    """Whose use of the profiler this is; None: the program's."""
    return _owner


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the profiler's own warnings and log lines off the program's stderr."""
    with warnings.catch_warnings(), _environment("KINETO_LOG_LEVEL", _NO_LOG):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Sets an environment variable that torch's C++ side reads, unless the user has set it."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)


def teardown_is_safe() -> bool:
    """Whether CUPTI may be torn down and come back in this process."""
    import torch

    version = torch.version.cuda
    if version is None:
        return False
    return tuple(int(part) for part in version.split(".")[:2]) >= _SAFE_TEARDOWN


def gpu_possible() -> bool:
    """Whether this torch and machine may have a GPU that the profiler can record, without waking it.

    Asking torch itself would start the driver, and a program that forks before its first use of the GPU would then
    fail in its children.
    """
    import torch

    if torch.version.cuda is not None:
        return os.environ.get("CUDA_VISIBLE_DEVICES") != "" and _has_node("nvidia0", "nvidiactl", "dxg")
    if torch.version.hip is not None:
        return os.environ.get("HIP_VISIBLE_DEVICES") != "" and _has_node("kfd", "dxg")
    return False


def _has_node(*names: str) -> bool:
    return sys.platform == "win32" or any(Path("/dev", name).exists() for name in names)


def gpu_awake() -> bool:
    """Whether the program has used the GPU in this process."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "cuda") and bool(torch.cuda.is_initialized())


def when_gpu_wakes(act: Callable[[], None]) -> None:
    """Does `act` once, as soon as the program's first use of the GPU in this process has initialised it."""
    import torch

    initialise = torch.cuda._lazy_init  # what every first use of the GPU calls, torch's C++ side included

    @functools.wraps(initialise)
    def watched() -> None:
        initialise()
        if torch.cuda._lazy_init is watched and torch.cuda.is_initialized():  # not while it is being initialised
            torch.cuda._lazy_init = initialise
            act()

    torch.cuda._lazy_init = watched


def synchroniser() -> Callable[[], None]:
    """The function that waits for every device the program has used so far in this process."""
    import torch

    if gpu_awake():
        return _wait_for_gpus
    if hasattr(torch, "mps") and torch.backends.mps.is_available():
        return torch.mps.synchronize  # type: ignore[no-any-return]
    if hasattr(torch, "xpu") and torch.xpu.is_initialized():
        return torch.xpu.synchronize  # type: ignore[no-any-return]
    return _no_wait


def _wait_for_gpus() -> None:
    import torch

    if torch.cuda.is_current_stream_capturing():
        return  # a wait would break the capture
    current = torch.cuda.current_device()
    for device in range(torch.cuda.device_count()):
        if device == current or torch.cuda.memory_reserved(device):  # no context on devices that are not used
            torch.cuda.synchronize(device)


def _no_wait() -> None:
    return None

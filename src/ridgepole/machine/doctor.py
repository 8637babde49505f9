"""What works on this machine, by trying it: each check runs the real thing and says why where it fails."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """One thing tried. `ok`: True, False, or None where it does not apply here; `fix`: what to do, "" if nothing."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""


OLDEST_TORCH = (2, 8)


def checkup() -> tuple[Check, ...]:
    """Every check, in the order a person would ask. None of them raises."""
    return tuple(_all())


def _all() -> Iterator[Check]:
    yield Check("Python", sys.version_info >= (3, 10), platform.python_version(), "")
    torch, check = _torch()
    yield check
    if torch is not None:
        yield _tried(
            "CPU profiler", lambda: _profiler(torch, gpu=False), "reinstall torch: kineto is missing from this build"
        )
        yield from _cuda(torch)
    yield _transformers()
    yield _home()


def _tried(name: str, act: Callable[[], str], fix: str) -> Check:
    try:
        return Check(name, True, act())
    except Exception as error:
        said = " ".join(str(error).split())[:160] or type(error).__name__
        return Check(name, False, said, fix)


def _torch() -> tuple[Any, Check]:
    try:
        import torch
    except Exception as error:
        return None, Check("torch", False, f"does not import: {error}", "pip install torch (2.8 or newer)")
    number = str(torch.__version__)
    parts = tuple(int(part) for part in number.split("+")[0].split(".")[:2] if part.isdecimal())
    return torch, Check(
        "torch", parts >= OLDEST_TORCH, number, "" if parts >= OLDEST_TORCH else "2.8 or newer is needed"
    )


def _profiler(torch: Any, gpu: bool) -> str:
    """Records one product and counts what came out."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if gpu else [])
    device = "cuda" if gpu else "cpu"
    x = torch.ones(64, 64, device=device)
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # torch 2.13 writes to stderr at each recording below it
    with profile(activities=activities, record_shapes=True, acc_events=True) as recording:
        x @ x
        if gpu:
            torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recording.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    wanted = "kernel" if gpu else "cpu_op"
    found = sum(event.get("cat") == wanted for event in events)
    if not found:
        raise RuntimeError(f"a recorded product left no {wanted} event")
    return f"a recorded product left {found} {wanted} event{'s' if found > 1 else ''}"


def _cuda(torch: Any) -> Iterator[Check]:
    runtime = "ROCm" if getattr(torch.version, "hip", None) else "CUDA"
    built = torch.version.hip or torch.version.cuda
    if built is None:
        card = shutil.which("nvidia-smi") is not None
        fix = "pip install a torch built for CUDA (pytorch.org has the line)" if card else ""
        yield Check(runtime, False if card else None, "this torch is built without it", fix)
        return
    if not torch.cuda.is_available():
        yield Check(
            runtime,
            False,
            f"torch is built for {runtime} {built} and finds no device",
            "nvidia-smi or rocminfo says why",
        )
        return

    def kernel() -> str:
        x = torch.arange(1000, device="cuda")
        total = int((x * 2).sum().item())
        if total != 999_000:
            raise RuntimeError(f"a sum on the device gave {total}, not 999,000")
        return f"{torch.cuda.get_device_name(0)}, {runtime} {built}: a kernel ran and its result is right"

    yield _tried(runtime, kernel, "reinstall torch for this driver")
    yield _tried(
        f"{runtime} profiler",
        lambda: _profiler(torch, gpu=True),
        "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: run as root, or set NVreg_RestrictProfilingToAdminUsers=0",
    )


def _transformers() -> Check:
    try:
        return Check("transformers", True, version("transformers"))
    except PackageNotFoundError:
        return Check(
            "transformers", None, "not installed: needed to price a config.json", "pip install 'ridgepole[hf]'"
        )


def _home() -> Check:
    from ridgepole.machine import catalog

    folder = catalog.user_folder()

    def load() -> str:
        machines = catalog.load()
        own = len(list(folder.glob("*.toml")))
        return f"{len(machines)} machines; {own} files of your own in {folder}"

    return _tried("machine files", load, "mend the file, or move it away: nothing else loads while it is there")

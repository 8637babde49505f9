"""This machine: its GPU as the driver names it, else its CPU with ceilings measured here (once, then cached)."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ridgepole.errors import BadInput, Missing
from ridgepole.machine import catalog
from ridgepole.machine.match import match
from ridgepole.machine.model import Figure, Limits, Machine, MemoryLevel, Overheads, Source

SECONDS_A_CEILING = 0.3
"""How long each ceiling is measured."""
COPY_BYTES = 256 << 20
"""Past any last-level cache there is on the machines we know."""
CACHE_SHARE = 0.25
"""Of a cache, what the two buffers take whose copy measures it: the rest is for whatever else runs."""
CROWDED = 1.5
"""Running tasks a core, over the last minute, from which other work must be taking the cores: ours fills each once."""
PRODUCT = 1024
"""Side of the matrix product that measures FLOP/s."""
SLOW_PRODUCT = 256
"""Its side for a dtype that torch multiplies without the CPU's help: there PRODUCT takes a second a time."""
SLOW = 3e-3
"""Seconds of a SLOW_PRODUCT product from which a dtype is such: 11 GFLOP/s and less."""
PLAUSIBLE = {"B/s": (1e8, 2e13), "FLOP/s": (1e7, 1e16), "s": (1e-8, 1e-2)}
"""What a figure measured here can be; anything else was not measured by us, and is measured again."""
MEASURED = {
    "copy": "B/s",
    "read": "B/s",
    "float32": "FLOP/s",
    "float64": "FLOP/s",
    "bfloat16": "FLOP/s",
    "float16": "FLOP/s",
    "small": "s",
}
"""What is measured of a CPU, besides the copies within its caches ("l2", "llc")."""


@dataclass(frozen=True, slots=True)
class Described:
    """A device as torch's driver interface describes it."""

    name: str
    memory: int | None
    sms: int | None
    warp: int | None
    compute: str


def local(device: str | None = None) -> Machine:
    """The machine this runs on: its first GPU where torch sees one, else the CPU; "cpu" for the CPU in any case.

    Raises Missing without torch, BadInput for a GPU that no table has.
    """
    torch = _torch()
    if device != "cpu":
        described = _gpu(torch)
        if described is not None:
            found = match(described)
            if found.machine is None:
                raise BadInput(found.note)
            return found.machine
    return cpu()


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise Missing(f"measuring this machine needs torch, which does not import here ({error})") from None
    return torch


def _gpu(torch: Any) -> Described | None:
    if torch.cuda.is_available():
        p = torch.cuda.get_device_properties(0)
        return Described(
            p.name, p.total_memory, p.multi_processor_count, getattr(p, "warp_size", None), f"{p.major}.{p.minor}"
        )
    if getattr(torch.backends, "mps", None) is not None and torch.backends.mps.is_available():
        return apple()
    return None


def apple() -> Described:
    """This Mac's GPU, as sysctl and ioreg tell of it; no name, no cores where they do not."""
    cores = re.search(r'"gpu-core-count"\s*=\s*(\d+)', _said("ioreg", "-rc", "AGXAccelerator", "-d", "1"))
    return Described(_apple_name(), None, int(cores[1]) if cores else None, None, "")


def _apple_name() -> str:
    return _said("sysctl", "-n", "machdep.cpu.brand_string").strip()


def _said(*command: str) -> str:
    """What a command prints; "" where there is none such."""
    import subprocess

    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def cpu(*, measure_again: bool = False) -> Machine:
    """The CPU as a machine: bandwidth, FLOP/s and the cost of one small op, measured by torch's own kernels."""
    torch = _torch()
    name, threads = cpu_name(), int(torch.get_num_threads())
    own = None if measure_again else catalog.measured_here(name, threads)
    if own is not None:
        return own
    path = _cache(f"{name}|{threads}|{torch.__version__}|{PRODUCT}")
    figures = None if measure_again else _read(path)
    if figures is None:
        figures = _measure(torch)
        if not crowded() and not _disturbed(figures, threads):  # else they are too low, and would stay so
            _write(path, figures)
    return _machine(name, threads, str(torch.__version__), figures)


def crowded() -> tuple[str, ...]:
    """A note where more is running here than there are cores, so that times hold waiting for them; else nothing."""
    if not hasattr(os, "getloadavg"):
        return ()
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if load < CROWDED * cores:
        return ()
    return (f"other work ran here too (load {load:.1f} on {cores} cores): times include waiting for a core",)


def _disturbed(figures: Mapping[str, float | str], threads: int) -> bool:
    """Whether a cache seemed slower than the memory behind it: threads of a short copy waited for a core."""
    return "llc" in _cache_sizes(threads) and "llc" not in figures


def cpu_name() -> str:
    """The CPU's model name, as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    named = _apple_name() if platform.system() == "Darwin" else ""
    return named or platform.processor() or platform.machine()


def _cache(key: str) -> Path:
    home = os.environ.get("RIDGEPOLE_HOME")
    base = Path(home) if home else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "ridgepole"
    return Path(os.path.expanduser(base)) / f"cpu-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> dict[str, float | str] | None:
    """The figures of a cache file; None where it is not one that we wrote, or one of an older version."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("when"), str) or not set(MEASURED) <= set(found):
        return None
    for key, value in found.items():
        low, high = PLAUSIBLE[MEASURED.get(key, "B/s")]
        if key != "when" and not (type(value) is float and low <= value <= high):
            return None
    return found


def _write(path: Path, figures: dict[str, float | str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_suffix(f".{os.getpid()}")
        whole.write_text(json.dumps(figures))
        whole.replace(path)
    except OSError:
        # A machine without a writable home measures again next time.
        return


def _best(run: Callable[[], object]) -> float:
    """Seconds of the fastest run within the time allowed, after one to warm up."""
    run()
    best, until = float("inf"), time.perf_counter() + SECONDS_A_CEILING
    while time.perf_counter() < until:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def _measure(torch: Any) -> dict[str, float | str]:
    figures: dict[str, float | str] = {"when": date.today().isoformat()}
    with torch.no_grad():
        figures["copy"], figures["read"] = _copy_rate(torch, 2 * COPY_BYTES), _read_rate(torch)
        outer = float(figures["copy"])
        for name, size in reversed(_cache_sizes(int(torch.get_num_threads())).items()):
            rate = max(_copy_rate(torch, int(size * CACHE_SHARE)) for _ in range(2))
            if rate < outer and name == "llc":
                break
            # A copy so short as fits L2 is slowed by its own call.
            figures[name] = outer = max(rate, outer)
        for dtype in ("float32", "float64", "bfloat16", "float16"):
            figures[dtype] = _product_rate(torch, getattr(torch, dtype))
        small = torch.ones(8)
        figures["small"] = _small(lambda: torch.add(small, small, out=small))
        # Once more at the end: memory is shared with whatever else runs, and a ceiling is the best it gives.
        figures["copy"] = max(float(figures["copy"]), _copy_rate(torch, 2 * COPY_BYTES))
        figures["read"] = max(float(figures["read"]), _read_rate(torch))
    return figures


def _copy_rate(torch: Any, held: int) -> float:
    """B/s, read and written, of a copy between two buffers that hold `held` bytes together."""
    x = torch.ones(held // 8)
    y = torch.empty_like(x)
    return float(2 * x.nbytes / _best(lambda: y.copy_(x)))


def _read_rate(torch: Any) -> float:
    """B/s of a sum. It writes nothing, and so reads faster than a copy where a write costs a read of its own."""
    x = torch.ones(COPY_BYTES // 4)
    return float(x.nbytes / _best(x.sum))


def _product_rate(torch: Any, dtype: Any) -> float:
    def product(side: int) -> Callable[[], object]:
        a = torch.randn(side, side).to(dtype)
        out = torch.empty_like(a)
        return lambda: torch.mm(a, a, out=out)

    small = product(SLOW_PRODUCT)
    small()
    start = time.perf_counter()
    small()
    if time.perf_counter() - start > SLOW:
        return float(2 * SLOW_PRODUCT**3 / _best(small))
    return float(2 * PRODUCT**3 / _best(product(PRODUCT)))


def _small(run: Callable[[], object]) -> float:
    """Median seconds of one call of an op too small to matter."""
    times = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(200):
            run()
        times.append((time.perf_counter() - start) / 200)
    return statistics.median(times)


def _machine(name: str, threads: int, torch_version: str, figures: dict[str, float | str]) -> Machine:
    when = f"{figures['when']}, torch {torch_version}, {threads} threads"

    def measured(key: str, unit: str, how: str) -> Figure:
        return Figure(float(figures[key]), unit, Source("measured", f"{how}, {when}"))

    small = measured("small", "s", "torch.add of 8 floats, median")
    none = Figure(0.0, "s", Source("derived", "the CPU runs its ops itself: nothing is launched"))
    copied = f"copy of {COPY_BYTES >> 20} MiB, read + written"
    read = float(figures["read"]) > float(figures["copy"])
    dram = measured(
        "read" if read else "copy", "B/s", f"sum of {COPY_BYTES >> 20} MiB, best" if read else f"{copied}, best"
    )
    product = f"torch.mm of {PRODUCT}x{PRODUCT} ({SLOW_PRODUCT}x{SLOW_PRODUCT} where slow), best"
    slower = float(figures["float32"]) / float(figures["float16"])
    halves = (f"float16 products run {slower:.0f} times slower than float32 ones here",) if slower > 2 else ()
    return Machine(
        name=name,
        kind="cpu",
        vendor="",
        architecture=platform.machine(),
        compute="",
        peaks=MappingProxyType(
            {
                ("vector", "float32"): measured("float32", "FLOP/s", product),
                ("vector", "float64"): measured("float64", "FLOP/s", product),
                ("tensor", "bfloat16"): measured("bfloat16", "FLOP/s", product),
                ("tensor", "float16"): measured("float16", "FLOP/s", product),
            }
        ),
        memory=(
            *(
                MemoryLevel(
                    level,
                    "device",
                    Figure(
                        size, "B", Source("measured", "the system's report" + (" x threads" if level == "l2" else ""))
                    ),
                    measured(level, "B/s", f"copy within {CACHE_SHARE:.0%} of it, read + written, best")
                    if level in figures
                    else None,
                )
                for level, size in _cache_sizes(threads).items()
            ),
            MemoryLevel("dram", "device", _memory(), dram),
        ),
        limits=Limits(
            sms=Figure(float(threads), "1", Source("measured", f"torch's threads, {when}")),
            warp=Figure(1.0, "1", Source("derived", "a core has no warps")),
        ),
        overheads=Overheads(small, none, small, none, none, Figure(1.0, "1", Source("derived", "nothing is queued"))),
        confidence="high",
        notes=("ceilings are what torch's own kernels reached here, not a datasheet's", *halves),
    )


def _cache_sizes(threads: int) -> dict[str, float]:
    """Bytes of the L2 of all threads' cores together, and of the last level, as Linux reports them; none elsewhere."""
    sizes = {}
    for index, name, many in ((2, "l2", threads), (3, "llc", 1)):
        try:
            text = Path(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size").read_text().strip()
            sizes[name] = float(text[:-1]) * {"K": 1024, "M": 1024**2}[text[-1]] * many
        except (OSError, KeyError, ValueError, IndexError):
            continue
    return sizes


def _memory() -> Figure | None:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    return Figure(float(size), "B", Source("measured", "the system's report"))

"""Under what conditions a measurement was taken: date, driver, clocks, versions, load."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version

from ridgepole.kernels.device import Device
from ridgepole.lab.experiment import Value
from ridgepole.machine import detect

PACKAGES = ("ridgepole", "torch", "numpy", "pyopencl", "pocl-binary-distribution", "cuda-core", "nvidia-cuda-nvrtc")


def conditions(device: Device) -> Mapping[str, Value | Mapping[str, str]]:
    """Read now; the clocks are those at this moment, so read them while the device is still warm."""
    driver, clocks = _driver_and_clocks(device)
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "backend": device.backend,
        "device": device.name,
        "driver": driver,
        "clocks": clocks,
        "versions": {"python": platform.python_version(), **_versions()},
        "load": "; ".join(detect.crowded()) or None,
    }


def _driver_and_clocks(device: Device) -> tuple[str, str]:
    if device.backend == "cuda":
        from ridgepole.kernels.cuda.clocks import clocks

        now = clocks()
        return f"driver {now.driver} · {device.driver}" if now.driver else device.driver, str(now)
    return device.driver, f"{device.limits.clock / 1e6:,.0f} MHz at most" if device.limits.clock else "not known"


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found

"""OpenCL: PoCL on the CPU where nothing else is, any vendor's driver where there is one."""

from __future__ import annotations

from ridgepole.kernels.device import Backend, Device, backends


def _names() -> tuple[str, ...]:
    from ridgepole.kernels.opencl import device

    return device.names()


def _open(index: int) -> Device:
    from ridgepole.kernels.opencl import device

    return device.OpenCL(index)


backends("opencl")(Backend("opencl", ".cl", 2, _names, _open))

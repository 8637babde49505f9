"""CUDA C++ through cuda-core and NVRTC, on torch's stream and in torch's memory.

The kernels keep to what HIP's C++ has too (no inline PTX), so hipRTC should take them as they are; that was never run.
"""

from __future__ import annotations

from ridgepole.kernels.device import Backend, Device, backends


def _names() -> tuple[str, ...]:
    from ridgepole.kernels.cuda import device

    return device.names()


def _open(index: int) -> Device:
    from ridgepole.kernels.cuda import device

    return device.CUDA(index)


backends("cuda")(Backend("cuda", ".cu", 0, _names, _open))

"""Metal through `torch.mps.compile_shader`, on torch's stream and in torch's memory.

What was run, and what was not: no Apple machine was at hand. The kernels' text, these very files, was compiled by g++
and run on a CPU with a stand-in for Metal's language and its threadgroups (tests/kernels/metal_shim), and held to
float64 there; Apple's compiler never saw it. `device.py` was run with a stand-in for torch.mps, written from torch's
source, and never with the real one. No time on Apple's hardware was ever taken by it.
"""

from __future__ import annotations

from ridgepole.kernels.device import Backend, Device, backends


def _names() -> tuple[str, ...]:
    from ridgepole.kernels.metal import device

    return device.names()


def _open(index: int) -> Device:
    from ridgepole.kernels.metal import device

    return device.Metal(index)


backends("metal")(Backend("metal", ".metal", 1, _names, _open))

"""What each backend can do here, by running a real kernel and holding its result to float64."""

from __future__ import annotations

from ridgepole.errors import Missing
from ridgepole.kernels.device import backends
from ridgepole.kernels.prepare import prepare
from ridgepole.machine.doctor import Check

ELEMENTS = 1000


def checkup() -> tuple[Check, ...]:
    """One check a backend, in the order they are tried. None of them raises."""
    known = sorted(backends.all().values(), key=lambda backend: backend.order)
    return tuple(_check(backend.name) for backend in known)


def _check(name: str) -> Check:
    title = f"{name} kernels"
    try:
        device = backends.all()[name].open(0)
        prepare(device, "add", ELEMENTS)
    except Missing as error:
        said, _, fix = str(error).partition(": ")
        return Check(title, None, said, fix)
    except Exception as error:
        return Check(title, False, " ".join(str(error).split())[:160] or type(error).__name__)
    return Check(title, True, f"{device.name}, {device.driver}: add of {ELEMENTS:,} floats ran and is right")

"""A name for the CPU where PoCL's compiler does not know it.

PoCL asks its LLVM for the host CPU's name. An LLVM older than the CPU says "generic", a name its own C front end
then refuses ("unknown target CPU 'generic'", pocl/pocl#1049), so that every build fails: the PoCL 3.0 wheel on a Zen 5.
PoCL has no setting for the name, so we give its device record another one: a CPU that LLVM 14 knows and whose
instructions this one has.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

UNKNOWN = b"generic\0"
UNNAMED = "-generic"
"""End of what such a device calls its version: PoCL puts the CPU's name there."""
RECORD = 1024
"""Bytes of the device record that are searched, in words; PoCL 3.0 has the name 640 bytes in."""
WORD = 8
NAMES = (
    (
        "skylake-avx512",
        {"avx512f", "avx512bw", "avx512dq", "avx512cd", "avx512vl", "avx2", "fma", "bmi2", "adx", "clwb"},
    ),
    ("haswell", {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"}),
    ("x86-64", set[str]()),
)
"""CPUs that LLVM 14 knows, best first, with the flags (as Linux names them) they need.

On a Zen 5 no other name, znver3 among them, made any kernel of the library measurably faster than the first that fits.
"""

_kept: dict[int, Any] = {}
"""Names that PoCL now points to, by the address of the device: they must live as long as the process."""


def name_it(device: Any) -> str | None:
    """Name the CPU of a PoCL device if PoCL could not; the name given, or None where nothing was to do."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return None
    address = int(device.int_ptr)
    if address in _kept or not device.version.strip().endswith(UNNAMED):
        return None
    spans = list(_mapped())
    for at in range(address, address + RECORD, WORD):
        if not _within(spans, at, WORD, write=True):
            return None
        held = ctypes.c_uint64.from_address(at)
        if _within(spans, held.value, len(UNKNOWN)) and ctypes.string_at(held.value, len(UNKNOWN)) == UNKNOWN:
            name = known_name(_flags())
            _kept[address] = ctypes.create_string_buffer(name.encode())
            held.value = ctypes.addressof(_kept[address])
            return name
    return None


def known_name(flags: set[str]) -> str:
    """The best CPU of NAMES whose flags are all there."""
    return next(name for name, needed in NAMES if needed <= flags)


def _flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":", 1)[1].split())
    return set()


def _mapped() -> Iterator[tuple[int, int, str]]:
    """This process's memory: first address, end, permissions."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, permissions = line.split()[:2]
        first, end = (int(part, 16) for part in span.split("-"))
        yield first, end, permissions


def _within(spans: list[tuple[int, int, str]], at: int, size: int, *, write: bool = False) -> bool:
    return any(first <= at and at + size <= end and "r" in p and (not write or "w" in p) for first, end, p in spans)

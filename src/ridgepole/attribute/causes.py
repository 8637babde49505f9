"""Why time went where it went: every cause's id and meaning, and the names that give a cause away."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

CAUSES: Mapping[str, str] = {
    # busy
    "compute": "arithmetic was the limit",
    "memory": "moving bytes through device memory was the limit",
    "kernel-floor": "kernels too small to fill the device: starting them costs more than their work",
    "unknown": "kernels whose work is not known",
    "unrecorded-graph": "a graph was replaying, but the recording does not hold its kernels",
    "exposed-communication": "only collectives ran, so nothing hid them",
    # copies and fills
    "htod-pageable": "copies from ordinary host memory to the device",
    "htod-pinned": "copies from pinned host memory to the device",
    "htod": "copies from the host to the device",
    "dtoh-pageable": "copies from the device to ordinary host memory",
    "dtoh-pinned": "copies from the device to pinned host memory",
    "dtoh": "copies from the device to the host",
    "dtod": "copies within the device",
    "ptop": "copies between devices",
    "htoh": "copies within the host",
    "copy": "copies of unknown direction",
    "memset": "filling memory with a value",
    # idle
    "gap": "the next kernel was already launched and about to start: launch latency, or the gap between two kernels",
    "stall": "launched work did not start: it waited for another stream, device or process, or records are missing",
    "graph-gap": "between two kernels of one graph",
    "launch": "the CPU was inside the call that launches work",
    "dispatch": "the CPU was inside framework ops, on the way to a launch",
    "python": "the CPU ran Python or other host code, with no framework op",
    "sync": "the CPU had waited for the device, so nothing was queued when it finished",
    "data-loading": "the CPU was fetching or preparing the next batch",
    "allocator": "device or pinned memory was being allocated or freed",
    "compilation": "code was being compiled, autotuned or loaded",
    "profiler": "the profiler was busy with its own buffers",
    "before-first": "before the first launch",
    "after-last": "after the last device work",
    "idle-unrecorded-cpu": "the device was idle, and the recording does not say what the CPU did about its next work",
}
"""Every cause id a ledger may hold, with its meaning in plain words."""

_LOADING = re.compile(
    r"dataloader|data_?load|_next_data|(?:next|load|get|fetch|read|wait_for|copy)_?batch|batch_to_(?:gpu|device)", re.I
)
# "Compiled" is left out on purpose: "Torch-Compiled Region" and "Call CompiledFxGraph" run what was compiled before.
_COMPILING = re.compile(
    r"compil(?!ed)|autotun|OutputGraph\.|bytecode_tracing|GraphLowering|cudagraphify|fx_codegen|create_aot_dispatcher"
    r"|^(?:cuda|cu|hip)(?:Module|Library)Load|^(?:cu|hip)Link|^(?:nv|hip)rtc|(?:Function|Module) Loading",
    re.I,
)
_ALLOCATING = re.compile(
    r"^(?:cuda|cu|hip)(?:Ext)?(?:Malloc|Free|Host(?:Alloc|Malloc|Free|Register|Unregister)"
    r"|Mem(?:Alloc|Free|HostAlloc|Create|Map|Unmap|Release|AddressReserve|AddressFree|SetAccess))"
)
_PROFILING = re.compile(r"^(?:Activity Buffer Request|Buffer Flush|Instrumentation|Resource)\b")
_DIRECTION = re.compile(r"(?:\b|Copy|Memcpy)([HDP])(?:ost|evice|eer)?to([HDP])", re.I)
_HOST_MEMORY = re.compile(r"\b(Pageable|Pinned)\b", re.I)


@cache
def cause_of_call(kind: str, name: str) -> str | None:
    """The cause of idle while a CPU span of this kind and name runs, by itself; None: it says nothing.

    Ranges and framework ops may be loading or compilation by name; a runtime call may be an allocation.
    """
    if _COMPILING.search(name):
        return "compilation"
    if kind in ("op", "annotation"):
        if _LOADING.search(name):
            return "data-loading"
        return "dispatch" if kind == "op" else None
    if _ALLOCATING.search(name):
        return "allocator"
    if kind in ("launch", "sync"):
        return kind
    return "profiler" if _PROFILING.search(name) else None


@cache
def cause_of_transfer(kind: str, name: str) -> str:
    """The cause under which a copy or set is booked: direction, and the host's memory where it is named.

    >>> cause_of_transfer("copy", "Memcpy HtoD (Pageable -> Device)")
    'htod-pageable'
    """
    if kind == "set":
        return "memset"
    found = _DIRECTION.search(name)
    if found is None:
        return "copy"
    direction = f"{found[1]}to{found[2]}".lower()
    if direction not in CAUSES:
        return "copy"
    host = _HOST_MEMORY.search(name)
    if host is None or direction not in ("htod", "dtoh"):
        return direction
    return f"{direction}-{host[1].lower()}"

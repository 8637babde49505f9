"""When each thing ran: spans on lanes, predicted or measured alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ridgepole.work.op import Op

Kind = Literal["op", "launch", "kernel", "copy", "set", "collective", "sync", "annotation", "overhead"]
"""CPU lanes: op (framework op), launch (a runtime call that launches device work), sync (a runtime call that
waits for the device), overhead (the profiler's own, or any other runtime call: its name says which),
annotation (user ranges and profiler steps). GPU lanes: kernel, copy, set, collective."""

DEVICE_KINDS = frozenset({"kernel", "copy", "set", "collective"})


@dataclass(frozen=True, slots=True)
class Lane:
    """A CPU thread or a stream of a device. `device` is "" for a CPU thread, else the device's id as text."""

    kind: Literal["cpu", "gpu"]
    device: str
    name: str


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel was launched, and how much a copy moved. None: not recorded.

    Of a launch call `kernel` is the kernel it names, where the trace says so (ROCm).
    """

    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared: int | None = None
    nbytes: int | None = None
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """One thing that ran. Times are integer nanoseconds since the timeline's origin, end exclusive.

    `lane` indexes Timeline.lanes. `op` indexes Timeline.ops: for a device span the op that launched it, for an
    op span the op itself. `launch` indexes Timeline.spans: for a device span the launch call that issued it.
    `parent` indexes Timeline.spans: for an op, launch or sync span the enclosing op span on its thread.
    `graph`: ran inside a graph replay. `raw_end` is the end as recorded, where the span was clipped.
    """

    lane: int
    start: int
    end: int
    kind: Kind
    name: str
    op: int | None = None
    launch: int | None = None
    parent: int | None = None
    graph: bool = False
    info: Launch | None = None
    raw_end: int | None = None

    @property
    def ns(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Window:
    """The stretch of time explained, and which rule chose it ("2 profiler steps", "first to last event")."""

    start: int
    end: int
    rule: str

    @property
    def ns(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device as the trace describes it, and its raw totals over the whole file (before any clipping).

    `id` is the text used in Lane.device; "cpu" where the CPU itself is the machine. `name` "" and None fields:
    not recorded. `events` counts kernels, copies and sets; `busy_ns` is their raw union; `window_ns` their
    first start to last end.
    """

    id: str
    name: str = ""
    memory: int | None = None
    sms: int | None = None
    warp: int | None = None
    compute: str = ""
    """Compute capability "9.0" as the trace gives it (ROCm traces: gfx major.minor)."""
    shared_per_sm: int | None = None
    registers_per_sm: int | None = None
    threads_per_sm: int | None = None
    events: int = 0
    busy_ns: int = 0
    window_ns: int = 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """Spans in order of start (ties: longer first), on lanes, with the ops they stand for.

    `kind`: "measured" or "priced". `origin`: absolute nanoseconds of time 0. `steps`: the profiler steps found,
    as windows. `inflation`: recorded wall over unrecorded wall where both were timed, else None; `scaled_ns`:
    the unrecorded wall of the window where idle was scaled to it.
    `notes`: what was clipped, lost, repaired or assumed, one line each.
    `unrecorded`: stretches in which a graph ran whose kernels were not recorded: not idle, of unknown work.
    """

    kind: Literal["measured", "priced"]
    target: str
    spans: tuple[Span, ...]
    lanes: tuple[Lane, ...]
    ops: tuple[Op, ...]
    window: Window
    devices: tuple[DeviceInfo, ...]
    origin: int = 0
    steps: tuple[Window, ...] = ()
    notes: tuple[str, ...] = ()
    inflation: float | None = None
    scaled_ns: int | None = None
    unrecorded: tuple[tuple[int, int], ...] = ()

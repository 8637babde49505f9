"""What is kept of a trace while its parts are being linked: one row an event, and what goes with the rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ridgepole.timeline.model import Kind, Launch
from ridgepole.work.op import Phase

CallKey = tuple[str, bytes, bytes, bytes, bytes]
"""An op's name and, as the file writes them, its input dims, types, strides and concrete values."""


@dataclass(slots=True, eq=False)
class Row:
    """One event. Times in ns, as absolute as the file has them. Of a device row `lane` is a stream's."""

    lane: int
    start: int
    end: int
    kind: Kind
    name: str
    correlation: object = None
    external: object = None
    call: int = -1
    """Of an op: index of its CallKey; -1: none."""
    sequence: object = None
    backward: bool = False
    info: Launch | None = None
    graph: bool = False
    raw_end: int | None = None
    parent: Row | None = None
    """The enclosing op on its thread."""
    launch: Row | None = None
    op: Row | None = None
    module: str = ""
    phase: Phase = ""
    launches: bool = False
    """Of an op: it launched something. Of a launch: some device event came of it."""
    index: int = -1


@dataclass(slots=True)
class Module:
    """A call of an nn.Module on a thread: recorded only with Python stacks."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Stream:
    """Where a device event ran, as the file says it."""

    device: str
    pid: str
    name: str


@dataclass(slots=True)
class Rows:
    """A whole trace's rows. Threads are (pid, tid) as text."""

    threads: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    streams: dict[Stream, list[Row]] = field(default_factory=dict)
    modules: dict[tuple[str, str], list[Module]] = field(default_factory=dict)
    marks: list[Row] = field(default_factory=list)
    calls: list[CallKey] = field(default_factory=list)
    sources: dict[object, tuple[str, str, int]] = field(default_factory=dict)
    """Flow id to the thread and time that it starts from."""
    targets: dict[tuple[str, str, int], object] = field(default_factory=dict)
    """Device lane and time that a flow ends at, to its id."""
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    recording: tuple[int, int] | None = None
    """First and last moment of the recording, where the file says it."""
    whole_microseconds: bool = True
    untimed: int = 0
    negative: int = 0
    unknown: Counter[str] = field(default_factory=Counter)

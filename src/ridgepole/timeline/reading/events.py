"""One event of a trace, with the fields that are needed and no others: the rest is skipped, not built."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

_ABSENT = Raw()

_ARGS = {
    "external": "External id",
    "external_2021": "external id",
    "dims": "Input Dims",
    "dims_2021": "Input dims",
    "types": "Input type",
    "strides": "Input Strides",
    "concrete": "Concrete Inputs",
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "hierarchy": "Module Hierarchy",
    "registers": "registers per thread",
    "shared": "shared memory",
    "nbytes": "bytes",
    "graph_node": "graph node id",
    "task": "Task Type",
}


class Args(msgspec.Struct, gc=False, rename=_ARGS):
    """What an event's `args` say that matters here, as the file has it: nothing is to be trusted yet."""

    correlation: Any = None
    external: Any = None
    external_2021: Any = None
    device: Any = None
    stream: Any = None
    dims: Raw = _ABSENT
    dims_2021: Raw = _ABSENT
    types: Raw = _ABSENT
    strides: Raw = _ABSENT
    concrete: Raw = _ABSENT
    sequence: Any = None
    forward_thread: Any = None
    hierarchy: Any = None
    grid: Any = None
    block: Any = None
    registers: Any = None
    shared: Any = None
    nbytes: Any = None
    graph_node: Any = None
    kernel: Any = None
    name: Any = None
    task: Any = None


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One element of `traceEvents`. `ts` and `dur` stay text, so that they can be read exactly."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Raw = _ABSENT
    dur: Raw = _ABSENT
    id: Any = None
    args: Args | None = None


class BareEvent(msgspec.Struct, gc=False):
    """As Event where `args` cannot be used."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Raw = _ABSENT
    dur: Raw = _ABSENT
    id: Any = None

    def event(self) -> Event:
        return Event(self.ph, self.cat, self.name, self.pid, self.tid, self.ts, self.dur, self.id)


many = msgspec.json.Decoder(list[Event])
one = msgspec.json.Decoder(Event)
bare = msgspec.json.Decoder(BareEvent)

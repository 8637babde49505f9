"""A run as a Chrome trace that Perfetto opens: lanes of spans coloured by bucket, and a counter a bucket."""

from __future__ import annotations

import json
from typing import Any

from ridgepole.attribute.ledger import BUCKETS, Bucket
from ridgepole.session import Run

COLOR: dict[Bucket, str] = {
    "compute": "thread_state_running",
    "memory": "thread_state_runnable",
    "transfer": "rail_load",
    "communication": "rail_animation",
    "overhead": "terrible",
    "unknown": "grey",
}
"""Names of the trace viewer's palette (catapult, color_scheme.html); Perfetto keeps the bucket as an argument."""


def render(run: Run) -> str:
    """Trace-event JSON; times in microseconds since the window's start."""
    track = run.track
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "GPU"}},
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "CPU"}},
    ]
    for index, name in enumerate(track.lanes):
        events.append({"ph": "M", "name": "thread_name", "pid": _pid(name), "tid": index, "args": {"name": name}})
    for row, start in enumerate(track.start):
        lane = track.lane[row]
        bucket = BUCKETS[track.bucket[row]] if track.bucket[row] >= 0 else None
        event: dict[str, Any] = {
            "ph": "X",
            "name": track.names[track.name[row]],
            "cat": bucket or track.kind[row],
            "pid": _pid(track.lanes[lane]),
            "tid": lane,
            "ts": start / 1000,
            "dur": track.ns[row] / 1000,
        }
        if bucket is not None:
            event["cname"] = COLOR[bucket]
            event["args"] = {"bucket": bucket}
            events += _counter(bucket, start, track.ns[row])
        events.append(event)
        link = track.link[row]
        if link >= 0:
            events += _arrow(run, row, link)
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events, "ridgepole": {"target": run.target}})


def _pid(lane: str) -> int:
    return 1 if lane.startswith("GPU") else 0


def _counter(bucket: Bucket, start: int, ns: int) -> list[dict[str, Any]]:
    name = f"bucket: {bucket}"
    return [
        {"ph": "C", "name": name, "pid": 1, "ts": start / 1000, "args": {"running": 1}},
        {"ph": "C", "name": name, "pid": 1, "ts": (start + ns) / 1000, "args": {"running": 0}},
    ]


def _arrow(run: Run, row: int, link: int) -> list[dict[str, Any]]:
    track = run.track
    ends = []
    for phase, at in (("s", link), ("f", row)):
        lane = track.lane[at]
        end: dict[str, Any] = {
            "ph": phase,
            "id": row,
            "name": "launch",
            "cat": "launch",
            "pid": _pid(track.lanes[lane]),
            "tid": lane,
            "ts": track.start[at] / 1000,
        }
        if phase == "f":
            end["bp"] = "e"
        ends.append(end)
    return ends

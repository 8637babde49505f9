"""The devices of a trace: what it says of each, and the raw totals of what ran there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ridgepole.printable import printable
from ridgepole.timeline.model import DeviceInfo
from ridgepole.timeline.reading.rows import Row, Rows, Stream


def union(intervals: Iterable[tuple[int, int]]) -> int:
    """Nanoseconds covered by at least one of the intervals (start, end)."""
    covered = 0
    reach: int | None = None
    for start, end in sorted(intervals):
        if reach is None or start > reach:
            covered += end - start
            reach = end
        elif end > reach:
            covered += end - reach
            reach = end
    return covered


def identify(rows: Rows) -> dict[Stream, str]:
    """The device id of every stream: the file's own number, made distinct where ranks were merged into one file."""
    processes: dict[str, set[str]] = {}
    for stream in rows.streams:
        processes.setdefault(stream.device, set()).add(stream.pid)
    return {
        stream: stream.device if len(processes[stream.device]) == 1 else f"{stream.device} of {stream.pid}"
        for stream in rows.streams
    }


def describe(rows: Rows, ids: dict[Stream, str], properties: bytes | None) -> tuple[DeviceInfo, ...]:
    """Every device on which something ran, in order of id. Call before clipping: totals are raw."""
    events: dict[str, list[Row]] = {}
    numbers: dict[str, str] = {}
    for stream, device in rows.streams.items():
        events.setdefault(ids[stream], []).extend(device)
        numbers[ids[stream]] = stream.device
    known = _properties(properties)
    found = []
    for id_ in sorted(events, key=lambda name: (len(name), name)):
        ran = events[id_]
        if not ran:
            continue
        said = _of_device(known, numbers[id_])
        major, minor = said.get("computeMajor"), said.get("computeMinor")
        found.append(
            DeviceInfo(
                id=id_,
                name=printable(said["name"]) if isinstance(said.get("name"), str) else "",
                memory=_whole(said, "totalGlobalMem"),
                sms=_whole(said, "numSms", "multiProcessorCount"),
                warp=_whole(said, "warpSize"),
                compute=f"{major}.{minor}" if type(major) is int and type(minor) is int else "",
                shared_per_sm=_whole(
                    said, "sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor", "sharedMemPerMultiProcessor"
                ),
                registers_per_sm=_whole(said, "regsPerMultiprocessor", "regsPerMultiProcessor"),
                threads_per_sm=_whole(said, "maxThreadsPerMultiprocessor", "maxThreadsPerMultiProcessor"),
                events=len(ran),
                busy_ns=union((row.start, row.end) for row in ran),
                window_ns=max(row.end for row in ran) - min(row.start for row in ran),
            )
        )
    return tuple(found)


def _properties(text: bytes | None) -> list[dict[str, Any]]:
    try:
        found = msgspec.json.decode(text or b"[]")
    except (msgspec.DecodeError, RecursionError):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _of_device(known: list[dict[str, Any]], number: str) -> dict[str, Any]:
    """The properties of the device of that number. ROCm numbers devices otherwise in events than here: then any
    will do if all are alike."""
    for one in known:
        if str(one.get("id")) == number:
            return one
    alike = {tuple(sorted((k, str(v)) for k, v in one.items() if k != "id")) for one in known}
    return known[0] if len(alike) == 1 else {}


def _whole(said: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = said.get(name)
        if type(value) is int and value > 0:
            return value
    return None

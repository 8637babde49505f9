"""Traces written by hand, as torch.profiler would write them. Times in microseconds, as text where they matter."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from ridgepole.timeline.model import Span, Timeline

HOPPER = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132}

Json = dict[str, Any]


def event(cat: str, name: str, start: float | str, length: float | str, **fields: Any) -> Json:
    """One complete event. pid and tid may be given; every other field is one of its args."""
    place = {"pid": fields.pop("pid", 1), "tid": fields.pop("tid", 1)}
    return {"ph": "X", "cat": cat, "name": name, **place, "ts": start, "dur": length, "args": fields}


def op(name: str, start: float, length: float, **fields: Any) -> Json:
    return event("cpu_op", name, start, length, **fields)


def launch(correlation: object, start: float, length: float = 4, name: str = "cudaLaunchKernel", **fields: Any) -> Json:
    return event("cuda_runtime", name, start, length, correlation=correlation, **fields)


def kernel(correlation: object, start: float, length: float, name: str = "gemm", **fields: Any) -> Json:
    stream = fields.pop("stream", 7)
    device = fields.pop("device", 0)
    fields = {"pid": device, "tid": stream, "cat": "kernel", **fields}
    cat = fields.pop("cat")
    return event(cat, name, start, length, device=device, stream=stream, correlation=correlation, **fields)


def text(*events: Json, **around: Any) -> bytes:
    """A whole trace of these events, with `around` as further keys."""
    return json.dumps({"schemaVersion": 1, **around, "traceEvents": list(events)}).encode()


def put(folder: Path, content: bytes, name: str = "trace.json") -> Path:
    """A file of this content; compressed if its name ends in .gz."""
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def device_spans(timeline: Timeline) -> list[Span]:
    return [span for span in timeline.spans if timeline.lanes[span.lane].kind == "gpu"]


def named(timeline: Timeline, name: str) -> Span:
    """The one span of that name."""
    (span,) = [span for span in timeline.spans if span.name == name]
    return span

"""Runs a script as `ridgepole why` does and writes what was delivered to $RECORDED as JSON, one line a delivery."""

from __future__ import annotations

import json
import os
import sys

from ridgepole.timeline.record import record_script
from ridgepole.timeline.recording.plan import Plan, Recording


def deliver(recording: Recording) -> None:
    timeline = recording.timeline
    told = {
        "exit_code": recording.exit_code,
        "error": None if recording.error is None else str(recording.error),
        "notes": recording.notes,
        "spans": 0 if timeline is None else len(timeline.spans),
        "ops": [] if timeline is None else sorted({span.name for span in timeline.spans if span.kind == "op"}),
        "window_ns": None if timeline is None else timeline.window.ns,
        "rule": None if timeline is None else timeline.window.rule,
        "steps": 0 if timeline is None else len(timeline.steps),
        "inflation": None if timeline is None else timeline.inflation,
        "scaled_ns": None if timeline is None else timeline.scaled_ns,
        "bare_ns": recording.bare_ns,
        "pid": os.getpid(),
    }
    with open(os.environ["RECORDED"], "a", encoding="utf-8") as out:
        print(json.dumps(told), file=out)


if __name__ == "__main__":
    plan = Plan(*json.loads(os.environ.get("PLAN", "[3, 5, 2, 3]")))
    sys.exit(record_script(sys.argv[1], sys.argv[2:], plan=plan, deliver=deliver).exit_code)

"""The stretch of time to explain: the profiler steps asked for, else from the first event to the last."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ridgepole.errors import BadInput
from ridgepole.timeline.model import Window
from ridgepole.timeline.reading.rows import Row, Rows

_STEP = re.compile(r"ProfilerStep\s*#\s*(\d{1,18})")
_RANGE = re.compile(r"#?(\d{1,18})(?:\s*(?:-|\.\.|–)\s*#?(\d{1,18}))?")


def profiler_steps(rows: Rows) -> dict[int, tuple[int, int]]:
    """Number to (start, end) of each profiler step, in order of time; of ranks merged into one file, the widest."""
    found: dict[int, tuple[int, int]] = {}
    for thread in rows.threads.values():
        for row in thread:
            match = _STEP.match(row.name) if row.kind in ("annotation", "op") else None
            if match is None or row.end <= row.start:
                continue
            number = int(match[1])
            start, end = found.get(number, (row.start, row.end))
            found[number] = (min(start, row.start), max(end, row.end))
    return dict(sorted(found.items(), key=lambda item: item[1]))


def choose(rows: Rows, steps: dict[int, tuple[int, int]], asked: str | None, path: str) -> Window:
    """The window and the rule that gave it. `asked`: "2", "1-3" or "all" of the file's profiler steps, or None.

    Raises BadInput for steps that the file does not have.
    """
    chosen = _asked(steps, asked, path)
    if not chosen:
        return _whole(rows)
    start = min(steps[n][0] for n in chosen)
    end = max(steps[n][1] for n in chosen)
    if asked is None and not any(row.start < end and row.end > start for row in _device_rows(rows)):
        whole = _whole(rows)
        return Window(whole.start, whole.end, f"{whole.rule}: nothing ran on the device in the profiler steps")
    names = f"#{chosen[0]}" if len(chosen) == 1 else f"#{chosen[0]} to #{chosen[-1]}"
    noun = "1 profiler step" if len(chosen) == 1 else f"{len(chosen)} profiler steps"
    return Window(start, end, f"{noun}, {names}")


def _asked(steps: dict[int, tuple[int, int]], asked: str | None, path: str) -> list[int]:
    if asked is None or asked.strip().lower() == "all":
        return list(steps)
    match = _RANGE.fullmatch(asked.strip())
    if match is None:
        raise BadInput(f'{asked!r} names no profiler steps: write "2", "1-3" or "all"')
    first = int(match[1])
    last = int(match[2] or match[1])
    if not steps:
        raise BadInput(f"{path}: has no profiler steps to choose from: leave the steps out to explain all of it")
    chosen = [n for n in steps if first <= n <= last]
    if first not in steps or last not in steps:
        numbers = list(steps)
        has = f"#{numbers[0]}" if len(numbers) == 1 else f"#{numbers[0]} to #{numbers[-1]}"
        raise BadInput(f"{path}: has no profiler step {asked.strip()}: it has {has}")
    return chosen


def _device_rows(rows: Rows) -> Iterable[Row]:
    for stream in rows.streams.values():
        yield from stream


def _whole(rows: Rows) -> Window:
    """First to last event of the device and of the launches, with the ops around them, that drive it."""
    start: int | None = None
    end: int | None = None
    for row in _device_rows(rows):
        at: Row | None = row
        driver = row.launch if row.launch is not None else row.op
        start = row.start if start is None else min(start, row.start)
        end = row.end if end is None else max(end, row.end)
        at = driver
        while at is not None:
            start, end = min(start, at.start), max(end, at.end)
            at = at.parent
    return Window(start or 0, end or 0, "first to last event of the device and of what drives it")

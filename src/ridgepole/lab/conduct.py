"""Runs an experiment and keeps what it measured, whatever happens to it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from ridgepole.errors import BadInput, RidgepoleError, bug
from ridgepole.kernels.device import open_device
from ridgepole.lab.bench import Bench
from ridgepole.lab.conditions import conditions
from ridgepole.lab.experiment import Experiment, Result, Row, Value, experiments

INTERRUPTED, TERMINATED = "interrupted", "ended by SIGTERM"
NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "mem_object_allocation_failure")
"""In the errors of torch on CUDA, on Linux's and Windows's CPUs, and of OpenCL."""
LOST = ("CUDA error", "CUDA driver error", "MPS backend", "cuBLAS", "CUBLAS")
"""In the errors of a device that does no more work; torch has no class of its own for all of them."""


class Stopped(KeyboardInterrupt):
    """SIGTERM came: as an interruption from the keyboard, but with a name."""


def find(name: str) -> Experiment:
    """The experiment called `name`. Raises BadInput with the names there are."""
    found = experiments.find(name)
    if found is None:
        raise BadInput(f"no experiment is called {name!r}: there are {', '.join(experiments.all())}")
    return found


def conduct(
    name: str,
    *,
    device: str | None = None,
    quick: bool = False,
    note: Callable[[str], None] = lambda line: None,
    keep: Callable[[Row], None] = lambda row: None,
) -> Result:
    """Run one experiment on `device` (see `open_device`). Each row goes to `keep` as soon as it is measured.

    What stops it midway (an interruption, memory that ran out, a lost device, a bug) ends the rows and is said in
    `Result.stopped`; raises only where there is no row to keep.
    """
    experiment = find(name)
    bench = Bench(open_device(device), quick, note)
    return conduct_at(bench, experiment, keep)


def conduct_at(bench: Bench, experiment: Experiment, keep: Callable[[Row], None] = lambda row: None) -> Result:
    """As `conduct`, at a bench that is set up."""
    refused = experiment.refuse(bench)
    if refused:
        return _result(bench, experiment, (), refused)
    rows: list[Row] = []
    stopped = ""
    with terminable():
        try:
            _measure(bench, experiment, rows, keep)
        except KeyboardInterrupt as error:
            stopped = reason(error)
        except Exception as error:
            stopped = _said(error)
            if not rows or (stopped == bug(error) and os.environ.get("RIDGEPOLE_TRACEBACK")):
                raise _raised(error, stopped) from None
        if not rows:
            return _result(bench, experiment, (), "nothing was measured", stopped or "no row")
        try:
            meaning = experiment.meaning(rows, bench)
        except KeyboardInterrupt as error:
            stopped = stopped or reason(error)
            meaning = "What this means was not worked out: it was interrupted."
        return _result(bench, experiment, rows, meaning, stopped)


def _measure(bench: Bench, experiment: Experiment, rows: list[Row], keep: Callable[[Row], None]) -> None:
    """Add each row to `rows` as it comes. What the experiment holds is let go of, however it ends."""
    # Asked first: on a CPU it takes seconds, which must not come between an interruption and its report.
    bench.note(f"figures of {bench.machine.name}" if bench.machine is not None else "no figures of this machine")
    measured = experiment.rows(bench)
    try:
        for row in measured:
            rows.append(row)
            keep(row)
    finally:
        close = getattr(measured, "close", None)
        if close is not None:
            close()


def reason(error: KeyboardInterrupt) -> str:
    """What an interruption was, for `Result.stopped`."""
    return TERMINATED if isinstance(error, Stopped) else INTERRUPTED


def _said(error: Exception) -> str:
    """One line for what ended the rows."""
    if isinstance(error, RidgepoleError):
        return str(error)
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    if isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in NO_MEMORY):
        return f"memory ran out ({first})" if first else "memory ran out"
    return first if any(sign in str(error) for sign in LOST) else bug(error)


def _raised(error: Exception, said: str) -> Exception:
    """What to raise where there are no rows: what is no fault of ours as one line for the user."""
    known = isinstance(error, RidgepoleError) or said == bug(error)
    return error if known else BadInput(said)


def _result(bench: Bench, experiment: Experiment, rows: Sequence[Row], meaning: str, stopped: str = "") -> Result:
    return Result(
        experiment=experiment.name,
        question=experiment.question,
        machine=_machine(bench),
        columns=experiment.columns,
        rows=tuple(rows),
        meaning=meaning,
        conditions=conditions(bench.device),
        picture=experiment.picture(rows, bench) if rows else None,
        stopped=stopped,
        # They explain the table's columns: without one there is nothing to explain.
        notes=experiment.notes if rows else (),
    )


def _machine(bench: Bench) -> dict[str, Value]:
    limits = bench.device.limits
    return {
        "name": bench.device.name,
        "backend": bench.device.backend,
        "sms": limits.sms,
        "warp": limits.warp,
        "threads_per_block": limits.threads_per_block,
        "shared_per_block": limits.shared_per_block,
        "memory": limits.memory,
        "l2": limits.l2,
        "clock": limits.clock,
    }


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM within is as Ctrl-C, so that rows are kept; the first of several ends it, later ones change nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    told = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

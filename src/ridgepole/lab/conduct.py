"""Runs an experiment and keeps what it measured, whatever happens to it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from ridgepole.errors import BadInput, RidgepoleError
from ridgepole.kernels.device import open_device
from ridgepole.lab.bench import Bench
from ridgepole.lab.conditions import conditions
from ridgepole.lab.experiment import Experiment, Result, Row, Value, experiments


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

    What stops it midway (an interruption, memory that ran out, a lost device) ends the rows and is said in
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
    try:
        with _terminable():
            for row in experiment.rows(bench):
                rows.append(row)
                keep(row)
    except KeyboardInterrupt as error:
        stopped = "ended by SIGTERM" if isinstance(error, Stopped) else "interrupted"
    except (RidgepoleError, MemoryError) as error:
        if not rows:
            raise
        stopped = str(error) or "memory ran out"
    if not rows:
        return _result(bench, experiment, (), "nothing was measured", stopped or "no row")
    return _result(bench, experiment, rows, experiment.meaning(rows, bench), stopped)


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
        notes=experiment.notes,
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
def _terminable() -> Iterator[None]:
    """SIGTERM within ends the experiment like Ctrl-C, so that its rows are kept."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

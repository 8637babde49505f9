"""What the command line and Python users call: each function composes the rooms and returns plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, overload

from ridgepole.errors import BadInput, Missing
from ridgepole.machine import catalog
from ridgepole.machine.model import Machine
from ridgepole.session import PriceRun, Run

F = TypeVar("F", bound=Callable[..., Any])

TargetKind = Literal["trace", "script", "function"]


class Explained:
    """A run with what people do to it: print it, write it, put it in a table or a notebook.

    It is empty until the block it explains has ended.
    """

    def __init__(self, run: Run | None = None) -> None:
        self._run = run

    @property
    def run(self) -> Run:
        """The run's data. Raises BadInput while there is none."""
        if self._run is None:
            raise BadInput("nothing is explained yet: leave the `with rp.why()` block (or call the function) first")
        return self._run

    def records(self) -> list[dict[str, Any]]:
        """One plain record an operator, as in the JSON's `ops`."""
        from ridgepole.report import jsondoc

        return cast("list[dict[str, Any]]", jsondoc.document(self.run)["ops"])

    def to_pandas(self) -> Any:
        """The records as a pandas DataFrame. Raises Missing without pandas."""
        return _frame(self.records())

    def save(self) -> int:
        """Keep the run; returns its number for `ridgepole show`."""
        from ridgepole import session

        return session.save(self.run)

    def write(self, path: str | Path) -> None:
        """Write a report; the format is the ending: .html .json .csv .md .trace.json .txt."""
        from ridgepole.report import render

        render.write(self.run, Path(path))

    def __str__(self) -> str:
        from ridgepole.report import text

        return text.render(self.run) if self._run is not None else "nothing is explained yet"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from ridgepole.report import notebook

        return notebook.mimebundle(self.run) if self._run is not None else {"text/plain": str(self)}


class Price:
    """Prices with what people do to them."""

    def __init__(self, run: PriceRun) -> None:
        self.run = run

    @property
    def seconds(self) -> float:
        """Predicted wall of the first machine and mode, in seconds."""
        return self.run.prices[0].seconds

    def records(self) -> list[dict[str, Any]]:
        """One plain record a machine and mode, as in the JSON's `prices`."""
        from ridgepole.report import jsondoc

        return cast("list[dict[str, Any]]", jsondoc.price_document(self.run)["prices"])

    def to_pandas(self) -> Any:
        """The records as a pandas DataFrame. Raises Missing without pandas."""
        return _frame(self.records())

    def __str__(self) -> str:
        from ridgepole.report import price_text

        return price_text.render(self.run)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self)}


def _frame(records: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        raise Missing("a DataFrame needs pandas: pip install 'ridgepole[pandas]'") from None
    return pandas.DataFrame.from_records(records)


def machine(name: str) -> Machine:
    """The machine called `name` (loosely); "local" is this one. Raises BadInput with near names."""
    if name == "local":
        from ridgepole.machine import detect

        return detect.local()
    return catalog.find(name)


def target_kind(target: str) -> TargetKind:
    """What TARGET names. Raises BadInput where it is nothing we can explain."""
    path = Path(target)
    if path.is_dir():
        raise BadInput(f"{target} is a directory: name a trace in it, or a script")
    if path.is_file():
        return "script" if path.suffix == ".py" else "trace"
    before, colon, name = target.rpartition(":")
    if colon and before and name.isidentifier():
        return "function"
    if target.endswith((".json", ".gz", ".py")) or "/" in target:
        raise BadInput(f"there is no file {target}")
    raise BadInput(f"{target} is no file and not module:function: name a trace, a script, or module:function")


def read(
    path: str | Path, *, machine: str | None = None, steps: str | None = None, beside: str | None = None
) -> Explained:
    """Explain a PyTorch profiler trace (.json or .json.gz). See `ridgepole why --help` for the arguments."""
    return Explained(explain_trace(str(path), machine=machine, steps=steps, beside=beside))


def explain_trace(path: str, *, machine: str | None = None, steps: str | None = None, beside: str | None = None) -> Run:
    """Read, attribute and explain a trace. Raises BadInput for a file that is none."""
    from ridgepole.timeline import reader

    with _quiet_collector():
        timeline = reader.read(Path(path), steps=steps)
        other = reader.read(Path(beside)) if beside is not None else None
        return _explain(timeline, machine, other)


@contextmanager
def _quiet_collector() -> Iterator[None]:
    # A trace is a few hundred thousand small objects that all live to the end: scanning them again and again for
    # cycles that are not there took a third of the time.
    import gc

    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _explain(timeline: Any, machine_name: str | None, beside: Any = None) -> Run:
    from ridgepole.attribute.attribute import attribute
    from ridgepole.explain.findings import find
    from ridgepole.session import run_from

    known, notes = _machine_of(timeline, machine_name)
    ledger = attribute(timeline, known, beside=beside)
    run = run_from(ledger, timeline, find(ledger, timeline, known), known)
    return _with_notes(run, notes)


def _with_notes(run: Run, notes: Sequence[str]) -> Run:
    from dataclasses import replace

    return replace(run, notes=(*run.notes, *notes)) if notes else run


def _machine_of(timeline: Any, name: str | None) -> tuple[Machine | None, list[str]]:
    """The machine whose figures to use: the one named, else the one the trace describes."""
    from ridgepole.machine.match import match

    if name is not None:
        return machine(name), [f"figures of {name}, as asked with --on"]
    if not timeline.devices:
        return None, []
    found = match(timeline.devices[0])
    return found.machine, [found.note] if found.note else []


def explain_script(
    target: str,
    args: Sequence[str],
    *,
    machine: str | None = None,
    steps: str | None = None,
    warmup: int | None = None,
) -> tuple[Run | None, int]:
    """Run a script as python would, recorded; returns the run (None where nothing was recorded) and its exit code."""
    raise NotImplementedError


def explain_function(
    spec: str, *, machine: str | None = None, steps: str | None = None, warmup: int | None = None
) -> Run:
    """Call `module:function` or `file.py:function` repeatedly, recorded, and explain it."""
    raise NotImplementedError


def price_target(
    target: str,
    inputs: Sequence[str],
    machines: Sequence[str],
    modes: Sequence[str],
    *,
    step: str | None = None,
    batch: int = 1,
    context: int = 128,
    tf32: bool = False,
    cost_per_hour: float | None = None,
) -> PriceRun:
    """Capture a target once and price it on every machine in every mode. Raises BadInput, Missing."""
    from ridgepole.work import target as targets

    known = [machine(name) for name in machines]
    program = targets.load(target, inputs, step=step, batch=batch, context=context).capture()
    return _price_program(program, known, modes, tf32=tf32, cost_per_hour=cost_per_hour)


def _price_program(
    program: Any, machines: Sequence[Machine], modes: Sequence[str], *, tf32: bool, cost_per_hour: float | None = None
) -> PriceRun:
    from ridgepole import session
    from ridgepole.attribute.attribute import attribute
    from ridgepole.explain.findings import find
    from ridgepole.price.price import Price as Predicted
    from ridgepole.price.price import price as predict

    prices, runs = [], []
    for each in machines:
        for mode in modes:
            predicted: Predicted = predict(program, each, cast("Any", mode), tf32=tf32)
            timeline = predicted.timeline
            ledger = attribute(timeline, each)
            run = session.run_from(ledger, timeline, find(ledger, timeline, each), each)
            prices.append(session.priced(predicted, run, cost_per_hour))
            runs.append(run)
    return session.price_run(program.name, prices, runs)


@overload
def why(fn: F) -> F: ...
@overload
def why(fn: None = None, *, machine: str | None = None) -> Any: ...
def why(fn: Any = None, *, machine: str | None = None) -> Any:
    """`with rp.why() as w: step()`, or `@rp.why` over a function whose every call is then explained to stderr."""
    raise NotImplementedError


def price(
    fn: Callable[..., Any], *args: Any, on: str | Sequence[str] = "h100", mode: str = "eager", **kwargs: Any
) -> Price:
    """Price `fn(*args, **kwargs)` on machines you need not have. Tensors among the arguments lend only their shapes."""
    raise NotImplementedError

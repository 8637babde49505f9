"""What the command line and Python users call: each function composes the rooms and returns plain data."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from ridgepole import collecting
from ridgepole.errors import BadInput, RidgepoleError, bug
from ridgepole.machine import catalog
from ridgepole.machine.model import Machine
from ridgepole.results import Explained, Price
from ridgepole.session import PriceRun, Run

if TYPE_CHECKING:
    from ridgepole.lab.experiment import Result
    from ridgepole.timeline.model import Timeline
    from ridgepole.timeline.recording.plan import Plan, Recording
    from ridgepole.work.op import Program

F = TypeVar("F", bound=Callable[..., Any])

TargetKind = Literal["trace", "script", "function"]


def machine(name: str) -> Machine:
    """The machine called `name` (loosely); "local" is this one, "cpu" its CPU. Raises BadInput with near names."""
    if name in ("local", "cpu"):
        from ridgepole.machine import detect

        return detect.local("cpu" if name == "cpu" else None)
    return catalog.find(name)


def lab(
    name: str, *, device: str | None = None, quick: bool = False, note: Callable[[str], None] = lambda line: None
) -> Result:
    """Run the experiment called `name` (`ridgepole lab` lists them) on `device`: "cuda", "metal", "opencl", "cpu".

    Its rows are written down as they are measured, beside the saved runs. Raises BadInput for a name that is none,
    Missing where no backend can run kernels here.
    """
    from ridgepole.lab.conduct import conduct
    from ridgepole.lab.journal import Journal

    journal = Journal(journals(), name)
    result = conduct(name, device=device, quick=quick, note=note, keep=journal.keep)
    if not (result.stopped and result.rows and journal.path):
        return result
    return replace(result, notes=(*result.notes, f"the rows are kept in {journal.path}"))


def journals() -> Path:
    """The folder in which rows are written down as they are measured, a file of JSON lines for each experiment run."""
    from ridgepole import session

    return session.home().parent / "lab"


def measure_machine(
    *, device: str | None = None, full: bool = False, note: Callable[[str], None] = lambda line: None
) -> Machine:
    """Measure the machine at hand: see `ridgepole.lab.measure`. Nothing is written.

    Raises Missing where no backend can run kernels here, BadInput for a GPU that no table has.
    """
    from ridgepole.kernels.device import open_device
    from ridgepole.lab.bench import Bench
    from ridgepole.lab.measure import measure

    return measure(Bench(open_device(device), quick=not full, note=note), full=full)


def keep_machine(machine: Machine, path: Path | None = None) -> Path:
    """Write `machine` as a machine file, by default into the user's own folder under its name; where it was written."""
    from ridgepole.machine import writing

    name = "-".join(re.findall(r"[a-z0-9]+", machine.name.lower()))
    where = path or catalog.user_folder() / f"{name}.toml"
    writing.write(machine, where)
    catalog.forget()
    return where


def target_kind(target: str) -> TargetKind:
    """What TARGET names. Raises BadInput where it is nothing we can explain."""
    path = Path(target)
    if path.is_dir():
        raise BadInput(f"{target} is a directory: name a trace in it, or a script")
    if path.is_file():
        return "script" if path.suffix == ".py" else "trace"
    if path.exists():
        raise BadInput(f"{target} is not a regular file: save the trace to one first")
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

    with collecting.held():
        timeline = reader.read(Path(path), steps=steps)
        other = reader.read(Path(beside)) if beside is not None else None
        known, notes = _machine_of(timeline, machine)
        return _explain(timeline, known, notes, other)


def _explain(
    timeline: Timeline, known: Machine | None, notes: Sequence[str] = (), beside: Timeline | None = None
) -> Run:
    from ridgepole.attribute.attribute import attribute
    from ridgepole.explain.findings import find
    from ridgepole.session import run_from

    ledger = attribute(timeline, known, beside=beside)
    run = run_from(ledger, timeline, find(ledger, timeline, known), known)
    return replace(run, notes=(*run.notes, *notes)) if notes else run


def _machine_of(timeline: Timeline, name: str | None) -> tuple[Machine | None, list[str]]:
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
    deliver: Callable[[Run], None],
    complain: Callable[[str], None],
    *,
    machine: str | None = None,
    steps: str | None = None,
    warmup: int | None = None,
) -> int:
    """Run a script as python would, recorded, and return its exit code, which is all that decides ours.

    `deliver` is given the run once, also where the script is about to end the process itself (`os._exit`);
    `complain` one line where nothing could be recorded or explained. Raises BadInput where there is no such script.
    """
    from ridgepole.timeline.record import record_script

    def explain(recording: Recording) -> None:
        try:
            deliver(_explain_live(recording, machine))
        except RidgepoleError as error:
            complain(str(error))
        except Exception as error:  # the script's exit code stands, whatever becomes of the report
            if os.environ.get("RIDGEPOLE_TRACEBACK"):
                raise
            complain(bug(error))

    return record_script(target, list(args), plan=_plan(steps, warmup), deliver=explain).exit_code


def explain_function(
    spec: str, *, machine: str | None = None, steps: str | None = None, warmup: int | None = None
) -> Run:
    """Call `module:function` or `file.py:function` repeatedly, recorded, and explain it."""
    from ridgepole.timeline.record import record_function
    from ridgepole.timeline.recording.program import load_function
    from ridgepole.work.capture import guarded, users_errors

    plan = _plan(steps, warmup)
    with users_errors():
        fn = load_function(spec)
    recording = record_function(guarded(fn), plan=plan, target=spec)
    return _explain_live(recording, machine)


def _plan(steps: str | None, warmup: int | None) -> Plan:
    from ridgepole.timeline.recording.plan import Plan

    plan = Plan()
    if steps is not None:
        if not steps.isdecimal() or int(steps) < 1:
            raise BadInput(f"--steps {steps}: for a program it is how many steps to record, a number from 1 up")
        plan = replace(plan, steps=int(steps))
    return plan if warmup is None else replace(plan, warmup=warmup)


def _explain_live(recording: Recording, machine_name: str | None) -> Run:
    """Explain what was recorded here; where the CPU is the machine, its ceilings are measured (once, then cached)."""
    from ridgepole.machine import detect

    timeline = recording.timeline
    if timeline is None:
        raise recording.error or BadInput("nothing was recorded")
    on_cpu = bool(timeline.devices) and timeline.devices[0].id == "cpu"
    if machine_name is None and on_cpu:
        return _explain(timeline, machine("cpu"), detect.crowded())
    known, notes = _machine_of(timeline, machine_name)
    return _explain(timeline, known, notes)


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
    program: Program,
    machines: Sequence[Machine],
    modes: Sequence[str],
    *,
    tf32: bool,
    cost_per_hour: float | None = None,
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
            compiled = predict(program, each, "compiled", tf32=tf32) if mode == "eager" else None
            prices.append(session.priced(predicted, run, cost_per_hour, compiled))
            runs.append(run)
    return session.price_run(program.name, prices, runs)


@overload
def why(fn: F) -> F: ...
@overload
def why(fn: None = None, *, machine: str | None = None, plan: Plan | None = None) -> Explaining: ...
def why(fn: Any = None, *, machine: str | None = None, plan: Plan | None = None) -> Any:
    """Explain a block, or a function's own calls.

    `with rp.why() as w: step()` records the block once; print(w), w.run, w.write("report.html") afterwards.
    `@rp.why` (or `@rp.why(machine="h100")`) leaves the function's results and number of calls unchanged, takes its
    first calls as the plan's steps, and prints the report to stderr once they are complete, or at exit.
    """
    explaining = Explaining(machine, plan)
    return explaining if fn is None else explaining(fn)


class Explaining(Explained):
    """What `why()` returns: a context manager over a block, a decorator over a function, then the result itself."""

    def __init__(self, machine: str | None = None, plan: Plan | None = None) -> None:
        super().__init__()
        self._machine = machine
        self._plan = plan
        self._block: Any = None

    def __enter__(self) -> Explaining:
        from ridgepole.timeline.record import Block

        self._block = Block(self._plan)
        self._block.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        block, self._block = self._block, None
        block.__exit__(*error)
        # An exception of the block's own passes untouched; nothing recorded is then no second error.
        if block.recording is not None and (error[0] is None or block.recording.timeline is not None):
            self._run = _explain_live(block.recording, self._machine)

    def __call__(self, fn: F) -> F:
        from ridgepole.timeline.record import record_calls

        return cast("F", record_calls(fn, self._deliver, plan=self._plan))

    def _deliver(self, recording: Recording) -> None:
        try:
            self._run = _explain_live(recording, self._machine)
            print(self, file=sys.stderr)
        except RidgepoleError as error:
            print(f"ridgepole: {error}", file=sys.stderr)


def price(
    fn: Callable[..., Any],
    *args: Any,
    on: str | Sequence[str] = "h100",
    mode: str | Sequence[str] = "eager",
    tf32: bool = False,
    **kwargs: Any,
) -> Price:
    """Price `fn(*args, **kwargs)` on machines you need not have. Tensors among the arguments lend only their shapes.

    >>> rp.price(lambda x: x * 2 + 1, torch.empty(4096, 4096, dtype=torch.bfloat16), on=["h100", "h200"])
    """
    from ridgepole.work.capture import capture

    machines = [machine(name) for name in ([on] if isinstance(on, str) else on)]
    modes = [mode] if isinstance(mode, str) else list(mode)
    program = capture(fn, args, kwargs, name=getattr(fn, "__name__", "function"))
    return Price(_price_program(program, machines, modes, tf32=tf32))

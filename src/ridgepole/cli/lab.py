"""`ridgepole lab NAME`: one command a question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ridgepole.cli import completing, output
from ridgepole.errors import BadInput, RidgepoleError

if TYPE_CHECKING:
    from ridgepole.lab.experiment import Result

EXITS = {"interrupted": 130, "ended by SIGTERM": 143}
"""Exit codes of what stopped an experiment: 128 and the signal's number."""


@click.command()
@click.argument("name", required=False, shell_complete=completing.experiments)
@click.option("--device", help="cuda, metal, opencl, cpu, or one of several, as opencl:1. Default: the first there is.")
@click.option("--quick", is_flag=True, help="Fewer samples and smaller sizes; rougher figures.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "outputs", multiple=True, help="Write a picture (.svg .png .pdf), or the table (.json .md .txt).")
def command(name: str | None, device: str | None, quick: bool, as_json: bool, outputs: Sequence[str]) -> int:
    """Measure what a machine can do: one experiment a question. Without NAME: the list of them.

    "numbers" are the figures every reader should know, computed and not measured.
    """
    if outputs and name in (None, "numbers"):
        raise BadInput(f"-o {outputs[0]}: it writes what an experiment measured, and none is named; use --json")
    if name is None:
        return _list(as_json)
    if name == "numbers":
        return _numbers(as_json)
    from ridgepole.lab.conduct import reason, terminable

    try:
        with terminable():
            return _experiment(name, device, quick, as_json, outputs)
    except KeyboardInterrupt as error:
        output.complain(
            f"{reason(error)} before there was a report; rows measured until then, if any, are in {_kept()}"
        )
        return EXITS[reason(error)]


def _kept() -> Path:
    from ridgepole import api

    return api.journals()


def _experiment(name: str, device: str | None, quick: bool, as_json: bool, outputs: Sequence[str]) -> int:
    from ridgepole import api
    from ridgepole.report import lab_text, lab_write

    for path in outputs:
        lab_write.check(Path(path))
    result = api.lab(
        name, device=device, quick=quick, note=output.note if output.terminal(err=True) else lambda line: None
    )
    failed = []
    for path in outputs:
        try:
            lab_write.write(result, Path(path))
            output.note(f"wrote {path}")
        except RidgepoleError as error:
            failed.append(str(error))
    if as_json:
        output.say(json.dumps(lab_text.document(result), indent=1, allow_nan=False) + "\n")
    else:
        tty = output.terminal()
        output.say(lab_text.render(result, width=output.width(tty), color=output.colored(tty)))
    if failed:
        raise BadInput("; ".join(failed))
    return _code(result)


def _code(result: Result) -> int:
    """As a signal's for an experiment that was interrupted, 1 for one that something else ended early, else 0."""
    return EXITS.get(result.stopped, 1) if result.stopped else 0


def _list(as_json: bool) -> int:
    from ridgepole.lab.experiment import experiments
    from ridgepole.report import lab_text

    known = list(experiments.all().values())
    if as_json:
        rows = [{"name": e.name, "question": e.question} for e in known]
        output.say(json.dumps({"schema": 1, "experiments": rows}, indent=1) + "\n")
        return 0
    tty = output.terminal()
    output.say(lab_text.render_list(known, width=output.width(tty), color=output.colored(tty)))
    return 0


def _numbers(as_json: bool) -> int:
    from ridgepole.lab.numbers import table

    rows = table()
    if as_json:
        named = [{"name": r.name, "text": r.text} for r in rows]
        output.say(json.dumps({"schema": 1, "experiment": "numbers", "rows": named}) + "\n")
        return 0
    wide = max(len(row.name) for row in rows)
    output.say("".join(f"{row.name:<{wide}}  {row.text}\n" for row in rows))
    return 0

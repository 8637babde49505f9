"""`ridgepole why TARGET`."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ridgepole.cli import completing, output
from ridgepole.errors import BadInput

if TYPE_CHECKING:
    from ridgepole.session import Run


@click.command(
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.argument("target", shell_complete=completing.files)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, shell_complete=completing.files)
@click.option(
    "--on",
    "machine",
    metavar="MACHINE",
    shell_complete=completing.machines,
    help="Use this machine's figures instead of the trace's own.",
)
@click.option("--steps", metavar="N | A-B | all", help="Trace: which profiler steps. Program: how many to record.")
@click.option("--warmup", type=click.IntRange(min=0), help="Program: steps (or calls) left out at the start.")
@click.option(
    "--beside",
    metavar="TRACE",
    shell_complete=completing.files,
    help="Trace: an eager or capture trace of the same program, for its shapes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the report.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    shell_complete=completing.files,
    help="Also write .html .json .csv .md .trace.json .txt.",
)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Operators to list.")
@click.option("--open", "open_page", is_flag=True, help="Open the HTML report in the browser.")
@click.option("--no-save", is_flag=True, help="Do not keep this run.")
def command(
    target: str,
    args: tuple[str, ...],
    machine: str | None,
    steps: str | None,
    warmup: int | None,
    beside: str | None,
    as_json: bool,
    outputs: tuple[str, ...],
    top: int,
    open_page: bool,
    no_save: bool,
) -> int:
    """Explain TARGET: a profiler trace, a script with its ARGS, or module:function.

    Options come before TARGET; everything after it belongs to the script. A script keeps its own output and exit
    code: the report then goes to stderr (use -o for files, or --json -o).
    """
    from ridgepole import api

    output.check_outputs(outputs)
    outputs = tuple(os.path.abspath(path) for path in outputs)  # a program may change its folder
    kind = api.target_kind(target)
    if kind == "script":
        if as_json and not outputs:
            raise BadInput("--json would mix with the script's own output: write it with -o FILE.json")
        if beside is not None:
            raise BadInput("--beside is for traces")

        def deliver(run: Run) -> None:
            output.deliver(run, as_json=False, outputs=outputs, top=top, save=not no_save, err=True)
            if open_page:
                _open(run)

        return api.explain_script(target, args, deliver, output.complain, machine=machine, steps=steps, warmup=warmup)
    if args:
        raise BadInput(f"{args[0]!r} comes after the target: only a script takes arguments, options go before it")
    if kind == "function":
        if beside is not None:
            raise BadInput("--beside is for traces")
        found = api.explain_function(target, machine=machine, steps=steps, warmup=warmup)
    else:
        if warmup is not None:
            raise BadInput("--warmup is for programs; choose a trace's steps with --steps")
        found = api.explain_trace(target, machine=machine, steps=steps, beside=beside)
    output.deliver(found, as_json=as_json, outputs=outputs, top=top, save=not no_save)
    if open_page:
        _open(found)
    return 0


def _open(found: Run) -> None:
    import tempfile

    from ridgepole.report import html

    page = Path(tempfile.mkstemp(prefix="ridgepole-", suffix=".html")[1])
    page.write_text(html.render(found), encoding="utf-8")
    print(f"opened {page}", file=sys.stderr)
    webbrowser.open(page.as_uri())

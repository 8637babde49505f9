"""How every verb prints, saves and writes what it found."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ridgepole.session import PriceRun, Run

WIDTH_PIPED = 100


def deliver(
    run: Run | PriceRun, *, as_json: bool, outputs: Sequence[str], top: int = 10, save: bool = True, err: bool = False
) -> None:
    """Save `run`, write each of `outputs`, and print it (to stderr if `err`)."""
    from ridgepole.report import jsondoc, price_text, render, text
    from ridgepole.session import PriceRun

    number = keep(run) if save else None
    for output in outputs:
        render.write(run, Path(output))
        click.echo(f"wrote {output}", err=True)
    if as_json:
        click.echo(jsondoc.render_price(run) if isinstance(run, PriceRun) else jsondoc.render(run), nl=False)
        return
    stream = sys.stderr if err else sys.stdout
    size, color = width(stream.isatty()), colored(stream.isatty())
    if isinstance(run, PriceRun):
        click.echo(
            price_text.render(run, width=size, top=top, number=number, color=color), nl=False, err=err, color=color
        )
    else:
        click.echo(text.render(run, width=size, top=top, number=number, color=color), nl=False, err=err, color=color)


def complain(line: str) -> None:
    """Say on stderr, in one line, what went wrong."""
    click.echo("ridgepole: " + " ".join(line.split()), err=True)


def check_outputs(outputs: Sequence[str], prices: int = 1) -> None:
    """Raises BadInput before any long work if an output could not be written after it."""
    from ridgepole.report import render

    for output in outputs:
        render.check(Path(output), prices)


def keep(run: Run | PriceRun) -> int | None:
    """Save `run`; where that cannot be done say so and go on, since the report itself is not lost."""
    from ridgepole import session

    try:
        return session.save(run)
    except OSError as error:
        click.echo(f"note: the run was not saved in {session.home()} ({error.strerror})", err=True)
        return None


def width(tty: bool) -> int:
    """Columns to draw in: COLUMNS, else the terminal's, else 100."""
    if own := os.environ.get("COLUMNS", ""):
        return max(40, int(own)) if own.isdecimal() else WIDTH_PIPED
    return max(40, shutil.get_terminal_size((WIDTH_PIPED, 24)).columns) if tty else WIDTH_PIPED


def colored(tty: bool) -> bool:
    """Whether to colour: on a terminal, unless NO_COLOR is set (no-color.org); FORCE_COLOR wins where it is not."""
    if os.environ.get("NO_COLOR"):
        return False
    return tty or bool(os.environ.get("FORCE_COLOR"))

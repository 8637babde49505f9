"""How every verb prints, saves and writes what it found."""

from __future__ import annotations

import codecs
import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from ridgepole.errors import BadInput
from ridgepole.printable import printable

if TYPE_CHECKING:
    from ridgepole.session import PriceRun, Run

WIDTH_PIPED = 100
LONGEST = 2000
"""Characters of a complaint that are shown."""


def deliver(
    run: Run | PriceRun, *, as_json: bool, outputs: Sequence[str], top: int = 10, save: bool = True, err: bool = False
) -> None:
    """Save `run`, write each of `outputs`, and print it (to stderr if `err`)."""
    from ridgepole.report import jsondoc, price_text, render, text
    from ridgepole.session import PriceRun

    number = keep(run) if save else None
    failed = []
    for output in outputs:
        try:
            render.write(run, Path(output))
            note(f"wrote {output}")
        except BadInput as error:
            failed.append(str(error))
    if as_json:
        say(jsondoc.render_price(run) if isinstance(run, PriceRun) else jsondoc.render(run))
    else:
        tty = terminal(err)
        size, color = width(tty), colored(tty)
        if isinstance(run, PriceRun):
            say(price_text.render(run, width=size, top=top, number=number, color=color), err=err, color=color)
        else:
            say(text.render(run, width=size, top=top, number=number, color=color), err=err, color=color)
    if failed:
        # Last: what can't be written to a file is no reason to lose the report as well.
        raise BadInput("; ".join(failed))


def say(text: str, *, err: bool = False, color: bool | None = None) -> None:
    """Print `text` as it stands; what the stream's encoding lacks becomes "?". Raises BadInput where it cannot."""
    stream = sys.stderr if err else sys.stdout
    encoding = codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name
    if encoding != "ascii":  # there click writes UTF-8
        text = text.encode(encoding, "replace").decode(encoding)
    try:
        click.echo(text, nl=False, err=err, color=color)
    except BrokenPipeError:
        raise
    except OSError as error:
        give_up(stream)
        raise BadInput(f"the report cannot be printed: {error.strerror}") from None


def give_up(stream: TextIO | None) -> None:
    """Let what `stream` still holds go nowhere, since Python would try to write it once more at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def note(line: str) -> None:
    """Say `line` on stderr, where there is one."""
    try:
        click.echo(printable(line), err=True)
    except (OSError, ValueError):
        give_up(sys.stderr)


def complain(line: str) -> None:
    """Say on stderr, in one line, what went wrong."""
    line = " ".join(line.split())
    note("ridgepole: " + (line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"))


def terminal(err: bool = False) -> bool:
    """Whether stdout (stderr if `err`) is a terminal; one that was closed is none."""
    stream = sys.stderr if err else sys.stdout
    return stream is not None and stream.isatty()


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
        note(f"note: the run was not saved in {session.home()} ({error.strerror})")
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

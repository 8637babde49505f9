"""`ridgepole lab NAME`."""

from __future__ import annotations

import json

import click

from ridgepole.cli import output


@click.group()
def command() -> None:
    """Experiments, and the numbers they rest on."""


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def numbers(as_json: bool) -> int:
    """The numbers every reader should know, each computed by the code that prices and explains."""
    from ridgepole.lab.numbers import table

    rows = table()
    if as_json:
        named = [{"name": r.name, "text": r.text} for r in rows]
        output.say(json.dumps({"schema": 1, "experiment": "numbers", "rows": named}) + "\n")
        return 0
    wide = max(len(row.name) for row in rows)
    output.say("".join(f"{row.name:<{wide}}  {row.text}\n" for row in rows))
    return 0

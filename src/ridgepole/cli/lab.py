"""`ridgepole lab NAME`."""

from __future__ import annotations

import json

import click


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
        click.echo(
            json.dumps({"schema": 1, "experiment": "numbers", "rows": [{"name": r.name, "text": r.text} for r in rows]})
        )
        return 0
    wide = max(len(row.name) for row in rows)
    for row in rows:
        click.echo(f"{row.name:<{wide}}  {row.text}")
    return 0

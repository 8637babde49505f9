"""`ridgepole show RUN`."""

from __future__ import annotations

import click

from ridgepole.cli import completing, output


@click.command()
@click.argument("run", default="last")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    shell_complete=completing.files,
    help=".html .json .csv .md .trace.json .txt",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the report.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Operators to list.")
def command(run: str, outputs: tuple[str, ...], as_json: bool, top: int) -> int:
    """Render RUN again: its number, a saved file, or "last"."""
    from pathlib import Path

    from ridgepole import session
    from ridgepole.report import render

    found = session.load(run)
    if outputs and not as_json:
        for path in outputs:
            render.write(found, Path(path))
            output.note(f"wrote {path}")
        return 0
    output.deliver(found, as_json=as_json, outputs=outputs, top=top, save=False)
    return 0

"""`ridgepole completion SHELL`."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion script: eval "$(ridgepole completion bash)"."""
    from click.shell_completion import get_completion_class

    from ridgepole.cli.main import command as root
    from ridgepole.errors import BadInput

    kind = get_completion_class(shell)
    if kind is None:
        raise BadInput(f"click has no completion for {shell}")
    try:
        click.echo(kind(root, {}, "ridgepole", "_RIDGEPOLE_COMPLETE").source())
    except RuntimeError as error:
        raise BadInput(f"completion for {shell} cannot be made here: {error}") from None
    return 0

"""What the shell is offered while a command is typed."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, as the shell itself lists them."""
    return [CompletionItem(incomplete, type="file")]


def machines(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Machines of the catalog by their shortest name without a blank: h100, mi300x, a100."""
    from ridgepole.machine import catalog

    found = []
    for machine in {id(m): m for m in catalog.load().values()}.values():
        names = [n.lower() for n in (machine.name, *machine.aliases) if " " not in n]
        if names and (short := min(names, key=len)).startswith(incomplete.lower()):
            found.append(CompletionItem(short, help=machine.name))
    return sorted(found, key=lambda item: str(item.value))


def experiments(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Experiments of the laboratory, and its numbers."""
    from ridgepole.lab.experiment import experiments as known

    offered = {"numbers": "figures every reader should know", **{e.name: e.question for e in known.all().values()}}
    return [CompletionItem(name, help=text) for name, text in offered.items() if name.startswith(incomplete)]

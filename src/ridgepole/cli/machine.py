"""`ridgepole machine list | show NAME | doctor`."""

from __future__ import annotations

import json

import click

from ridgepole.cli import completing, output


@click.group()
def command() -> None:
    """What a device can do, each figure with its source."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_machines(as_json: bool) -> int:
    """Every machine of the catalog, and your own."""
    from ridgepole.machine import catalog
    from ridgepole.report import machine_text

    machines = list(catalog.load().values())
    if as_json:
        documents = [machine_text.machine_document(m) for m in machines]
        output.say(json.dumps({"schema": 1, "machines": documents}, indent=1) + "\n")
        return 0
    tty = output.terminal()
    output.say(machine_text.render_list(machines, width=output.width(tty), color=output.colored(tty)))
    return 0


@command.command()
@click.argument("name", shell_complete=completing.machines)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, as_json: bool) -> int:
    """One machine: figures with sources, memory ladder, ridge points. NAME "local" is this one."""
    from ridgepole import api
    from ridgepole.report import machine_text

    machine = api.machine(name)
    if as_json:
        output.say(json.dumps(machine_text.machine_document(machine), indent=1) + "\n")
        return 0
    tty = output.terminal()
    output.say(machine_text.render_machine(machine, width=output.width(tty), color=output.colored(tty)))
    return 0


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> int:
    """What works on this machine, by trying it, and why not."""
    from ridgepole.kernels import doctor as kernels_doctor
    from ridgepole.machine import doctor as machine_doctor
    from ridgepole.report import machine_text

    checks = (*machine_doctor.checkup(), *kernels_doctor.checkup())
    if as_json:
        rows = [{"name": c.name, "ok": c.ok, "detail": c.detail, "fix": c.fix} for c in checks]
        output.say(json.dumps({"schema": 1, "checks": rows}, indent=1) + "\n")
    else:
        tty = output.terminal()
        output.say(machine_text.render_doctor(checks, width=output.width(tty), color=output.colored(tty)))
    return 0

"""`ridgepole machine list | show NAME | measure | compare A B | doctor`."""

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


@command.command()
@click.option("--full", is_flag=True, help="Latencies and caches of a GPU too, and more samples.")
@click.option("--device", help="cuda, metal, opencl, cpu. Default: the first there is.")
@click.option("-o", "output_file", help="Write the machine file here (.toml), not into your own folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def measure(full: bool, device: str | None, output_file: str | None, as_json: bool) -> int:
    """Measure this machine and keep it as a machine file, which why, price and the plots use from then on."""
    from pathlib import Path

    from ridgepole import api
    from ridgepole.errors import BadInput
    from ridgepole.report import machine_text

    path = Path(output_file) if output_file is not None else None
    if path is not None and (path.suffix != ".toml" or not path.absolute().parent.is_dir()):
        raise BadInput(f"{output_file}: a machine file ends in .toml and lies in a folder that exists")
    if path is not None and path.is_dir():
        raise BadInput(f"{output_file} cannot be written: it is a folder")
    found = api.measure_machine(device=device, full=full, note=output.note)
    written = api.keep_machine(found, path)
    if as_json:
        output.say(json.dumps(machine_text.machine_document(found), indent=1) + "\n")
    else:
        tty = output.terminal()
        output.say(machine_text.render_machine(found, width=output.width(tty), color=output.colored(tty)))
    output.note(
        f"wrote {written}: why and price use it for this machine from now on" if path is None else f"wrote {path}"
    )
    return 0


@command.command()
@click.argument("first", shell_complete=completing.machines)
@click.argument("second", shell_complete=completing.machines)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(first: str, second: str, as_json: bool) -> int:
    """Two machines side by side, from datasheets or measured; "local" is this one, a .toml file one of your own."""
    from ridgepole import api
    from ridgepole.report import compare_text

    one = api.machine(first)
    other = one if second == first else api.machine(second)  # a CPU measured twice is not twice the same
    if as_json:
        output.say(json.dumps(compare_text.document(one, other), indent=1) + "\n")
        return 0
    tty = output.terminal()
    output.say(compare_text.render(one, other, width=output.width(tty), color=output.colored(tty)))
    return 0

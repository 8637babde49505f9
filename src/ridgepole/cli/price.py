"""`ridgepole price TARGET`."""

from __future__ import annotations

import click

from ridgepole.cli import completing, output

MODES = ("eager", "graph", "compiled")


@click.command()
@click.argument("target", shell_complete=completing.files)
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar="NAME=DIMS:DTYPE", help="x=4096x4096:bf16, i=8192:i64:high=50257"
)
@click.option(
    "--on",
    "machines",
    multiple=True,
    metavar="MACHINE",
    shell_complete=completing.machines,
    help="A machine of the catalog, or a machine file. Repeatable.",
)
@click.option(
    "--mode", "modes", multiple=True, type=click.Choice(MODES), help="How it would run (default eager). Repeatable."
)
@click.option("--step", type=click.Choice(["decode", "prefill", "train"]), help="For a Hugging Face config.json.")
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="For a config.json: sequences.")
@click.option(
    "--context", type=click.IntRange(min=1), default=128, show_default=True, help="For a config.json: tokens."
)
@click.option("--tf32", is_flag=True, help="fp32 products on the tensor cores as TF32.")
@click.option(
    "--cost-per-hour", type=click.FloatRange(min=0), metavar="MONEY", help="Price of the machine, for money a step."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the report.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    shell_complete=completing.files,
    help="Also write .json .csv .md .txt .html .trace.json.",
)
@click.option("--top", type=click.IntRange(min=1), default=8, show_default=True, help="Operators to list.")
@click.option("--no-save", is_flag=True, help="Do not keep this run.")
def command(
    target: str,
    inputs: tuple[str, ...],
    machines: tuple[str, ...],
    modes: tuple[str, ...],
    step: str | None,
    batch: int,
    context: int,
    tf32: bool,
    cost_per_hour: float | None,
    as_json: bool,
    outputs: tuple[str, ...],
    top: int,
    no_save: bool,
) -> int:
    """Price TARGET on machines you need not have: an expression, file.py:function, or a config.json.

    \b
    ridgepole price 'x * 2 + 1' -i x=4096x4096:bf16 --on h100 --on h200
    ridgepole price model.py:step --on b200 --mode eager --mode graph
    ridgepole price config.json --step decode --batch 1 --context 128 --on h100
    """
    from ridgepole import api

    machines, modes = machines or ("h100",), modes or ("eager",)
    output.check_outputs(outputs, len(machines) * len(modes))
    run = api.price_target(
        target,
        inputs,
        machines,
        modes,
        step=step,
        batch=batch,
        context=context,
        tf32=tf32,
        cost_per_hour=cost_per_hour,
    )
    output.deliver(run, as_json=as_json, outputs=outputs, top=top, save=not no_save)
    return 0

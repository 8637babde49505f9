"""The command `ridgepole`: verbs that load when called, and the one place that turns errors into exit codes."""

from __future__ import annotations

import difflib
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

VERBS = {
    "why": "Explain a trace, a script or a function: where its time goes and what wins it back.",
    "price": "Price a program on a GPU you don't have.",
    "machine": "What a device can do: list, show, measure, compare, doctor.",
    "show": "Render a saved run again: text, HTML, JSON, CSV, markdown, Perfetto.",
    "lab": "Measure what a machine can do: one experiment a question.",
    "completion": "Print the shell completion script.",
}


class _Verbs(click.Group):
    """Loads a verb's module only when it is called, so that --help stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            near = difflib.get_close_matches(cmd_name, VERBS, n=1)
            hint = f", did you mean {near[0]}?" if near else f"; there are {', '.join(VERBS)}"
            raise click.UsageError(f"no verb {cmd_name!r}{hint}")
        module = importlib.import_module(f"ridgepole.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"ridgepole {version('ridgepole')}")
        ctx.exit()


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Print the version."
)
def command() -> None:
    """Where every microsecond of a PyTorch program goes on a GPU: compute, memory or overhead.

    Start with: ridgepole why TRACE.json.gz, ridgepole why train.py, or ridgepole price 'x * 2' -i x=4096x4096:bf16
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code: 0 fine, 1 gate or bug, 2 bad input, 3 missing, 130 interrupted."""
    from ridgepole.cli import output
    from ridgepole.errors import RidgepoleError, bug

    try:
        code = command.main(args=argv, prog_name="ridgepole", standalone_mode=False)
        with suppress(ValueError, AttributeError):  # a script may have closed it, or put something else there
            sys.stdout.flush()
    except click.exceptions.Abort:
        raise SystemExit(130) from None
    except click.ClickException as error:
        error.show()
        raise SystemExit(2) from None
    except RidgepoleError as error:
        output.complain(str(error))
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        # The reader left: nothing more to say, and nothing left to flush at exit.
        output.give_up(sys.stdout)
        raise SystemExit(141) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            output.give_up(sys.stdout)
            output.complain(f"{error.strerror}: make room and try again")
            raise SystemExit(2) from None
        if os.environ.get("RIDGEPOLE_TRACEBACK"):
            raise
        output.complain(bug(error))
        raise SystemExit(1) from None
    raise SystemExit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()

"""The command `licorne`.

Each command loads what it needs when it runs (inside of its function), and modules of commands load only
their options: a user who asks for help, or checks a file, does not wait for the scheduler to load.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ... import __version__
from ..base.terminal.standard_output import checked_output, write_line
from .commands.door import door
from .commands.explain import dry_run, explain
from .commands.fuzz import fuzz
from .commands.kubernetes import kubernetes
from .commands.serve import serve
from .commands.simulate import compare, simulate_command
from .commands.top import top
from .commands.transcripts import replay, save, verify
from .commands.validate import validate

application = typer.Typer(
    name="licorne",
    help="A scheduler core: hierarchical queues, quotas, gangs and preemption.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


application.command("replay")(replay)


@application.command(
    "lockcheck",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def lockcheck(context: typer.Context) -> None:
    """Check whether the locks of a program can deadlock (`licorne lockcheck --help`)."""
    from ...lockcheck.commands.command import main as run

    if sys.__stdout__ is not None:
        sys.stdout = sys.__stdout__  # The program that it runs uses its own standard output.
    raise typer.Exit(run(context.args, "licorne lockcheck"))


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        from ..base.process import build_name

        write_line(f"licorne {__version__} ({build_name()})")
        raise typer.Exit


@application.callback()
def _licorne(
    *,
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Say what the commands have in common."""


application.command("simulate")(simulate_command())
application.command("compare")(compare)
application.command("serve")(serve)
application.command("door")(door)
application.command("validate")(validate)
application.command("verify")(verify)
application.command("explain")(explain)
application.command("dry-run")(dry_run)
application.command("save")(save)
application.command("top")(top)
application.command("fuzz")(fuzz)
application.add_typer(kubernetes)


def main() -> None:
    """Run the command line."""
    if sys.stdout is not None and not sys.stdout.isatty():
        application.rich_markup_mode = None  # Frames around help are for people alone.
    with checked_output("licorne"):
        application()


if __name__ == "__main__":
    main()

"""The command `licorne`.

Each command loads what it needs when it runs (inside of its function), and modules of commands load only what
says their options: nobody waits for the scheduler who asks for help, or checks a file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..model.errors import LicorneError
from .bad_input import ends_on
from .bench.command import bench
from .engine_names import engine_named
from .explanation.command import explain
from .explanation.dry_run_command import dry_run
from .options import EngineOption, ThreadsOption, UsersOption
from .simulation.command import simulate_command
from .validate_command import validate

__all__ = ["main"]

application = typer.Typer(
    name="licorne",
    help="A scheduler core: hierarchical queues, quotas, gangs and preemption.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@application.command()
def replay(
    transcript: Annotated[Path, typer.Argument(help="The transcript (.jsonl), `-` for standard input.")],
    *,
    engine: EngineOption = "direct",
    threads: ThreadsOption = None,
    users: UsersOption = None,
) -> None:
    """Replay what a resource manager said, and write what the scheduler does, as JSON lines."""
    from .replay import replay as run_replay
    from .user_file import read_users

    with ends_on((LicorneError, OSError, UnicodeError), "licorne replay"):
        text = sys.stdin.read() if str(transcript) == "-" else transcript.read_text(encoding="utf-8")
        resolver = None if users is None else read_users(users)
        run_replay(text, str(transcript), engine_named(engine), _write_line, resolver, threads=threads)


def _write_line(line: str) -> None:
    sys.stdout.write(line + "\n")


@application.command(
    "lockcheck",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def lockcheck(context: typer.Context) -> None:
    """Tell whether the locks of a program can deadlock (`licorne lockcheck --help`)."""
    from ..lockcheck.command import main as run

    raise typer.Exit(run(context.args, "licorne lockcheck"))


@application.callback()
def _licorne() -> None:
    """Say what the commands have in common: nothing yet."""


application.command("simulate")(simulate_command())
application.command("bench")(bench)
application.command("validate")(validate)
application.command("explain")(explain)
application.command("dry-run")(dry_run)


def main() -> None:
    """Run the command line."""
    application()


if __name__ == "__main__":
    main()

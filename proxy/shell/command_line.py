"""The command `licorne`.

A command is loaded when it is used, and loads what it needs when it runs (inside of its function): a user who
asks for help, or checks a file, does not wait for the scheduler to load.
"""

from __future__ import annotations

import sys
from collections import UserDict
from importlib import import_module
from typing import Annotated, Any, Final, final

import typer
from typer.main import get_group

from ... import __version__
from ..base.terminal.standard_output import checked_output, write_line
from .commands.options import CommandGroup

_RUN, _ASK = "Run a scheduler", "Ask a running or a recorded scheduler"
_PLAN, _TEST = "Plan, and check inputs", "Test programs"
_PLACES: Final = {
    "serve": ("serve", _RUN),
    "door": ("door", _RUN),
    "kubernetes": ("kubernetes", _RUN),
    "top": ("top", _ASK),
    "explain": ("explain", _ASK),
    "dry-run": ("explain", _ASK),
    "save": ("transcripts", _ASK),
    "usage": ("usage", _ASK),
    "simulate": ("simulate", _PLAN),
    "compare": ("simulate", _PLAN),
    "validate": ("validate", _PLAN),
    "replay": ("transcripts", _PLAN),
    "verify": ("transcripts", _PLAN),
    "fuzz": ("fuzz", _TEST),
}
"""The module of each command, which has a function of its name, and its group in the help."""


@final
class _Commands(UserDict[str, Any]):
    """The commands by name; each is loaded when it is used."""

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _loaded(name)
        return self.data[name]


def _loaded(name: str) -> Any:
    module, panel = _PLACES[name]
    found = getattr(import_module(f".commands.{module}", __package__), name.replace("-", "_"))
    group = typer.Typer(rich_markup_mode=application.rich_markup_mode)
    if isinstance(found, typer.Typer):
        group.add_typer(found, rich_help_panel=panel)
    else:
        group.command(name, rich_help_panel=panel)(found)
    return get_group(group).commands[name]


@final
class _RootGroup(CommandGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands({**dict.fromkeys(_PLACES), **self.commands})


application = typer.Typer(
    name="licorne",
    cls=_RootGroup,
    help="A scheduler core: hierarchical queues, quotas, gangs and preemption.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@application.command(
    "lockcheck",
    rich_help_panel=_TEST,
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


def main() -> None:
    """Run the command line."""
    if sys.stdout is not None and not sys.stdout.isatty():
        application.rich_markup_mode = None  # Frames around help are for people alone.
    with checked_output("licorne"):
        application(directed(sys.argv[1:]))


def directed(arguments: list[str]) -> list[str]:
    """Return the arguments of the command that is meant: `explain pod NAMESPACE/NAME` is about a cluster."""
    if arguments[:2] == ["explain", "pod"] and "/" in "".join(arguments[2:3]):
        return ["kubernetes", "explain", *arguments[2:]]
    return arguments


if __name__ == "__main__":
    main()

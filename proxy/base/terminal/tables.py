"""Tables for people at a terminal, and the same tables in a pipe: one line a row, names whole, no frames."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_ANY_WIDTH: Final = 100_000


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 node`, `2 nodes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def is_for_people() -> bool:
    """Return whether standard output is a terminal.

    The output itself is asked: variables such as `FORCE_COLOR` are meant for colours.
    """
    return sys.stdout.isatty()


def output_console() -> Console:
    """Return the console of standard output, which escapes texts; in a pipe no line is too long for it."""
    from .escaping_console import EscapingConsole  # noqa: PLC0415 - a server draws no table

    return EscapingConsole() if is_for_people() else EscapingConsole(width=_ANY_WIDTH)


def print_table(table: Table, console: Console, *, plain: bool) -> None:
    """Print a table.

    Args:
        table: What is printed; it may be changed.
        console: Where.
        plain: For programs: the columns are separated by blanks, and each row is one line.
    """
    if plain:
        table.box = None
        table.pad_edge = False
        table.padding = (0, 2, 0, 0)
        if table.title is not None:
            console.print(table.title, soft_wrap=True, highlight=False)
            table.title = None
        for column in table.columns:
            column.header = " ".join(str(column.header).split())
            column.no_wrap = True
    console.print(table)

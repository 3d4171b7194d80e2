"""The end of a command that fails, mostly because of bad input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer

from ....model.identifiers import UNPRINTABLE

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
"""The status of a program that was ended by Ctrl-C."""


def escaped(text: str) -> str:
    """Return a text with JSON escapes for what would change the terminal; a document stays what it is.

    Lines and tabs stay. Names and reasons come from files and from other programs.
    """
    if text.isprintable():
        return text
    return UNPRINTABLE.sub(lambda found: found[0] if found[0] in "\n\t" else f"\\u{ord(found[0]):04x}", text)


@contextmanager
def ends_on(
    kinds: type[Exception] | tuple[type[Exception], ...], who: str, status: int = BAD_INPUT
) -> Iterator[None]:
    """End the process with a line on standard error if the body raises an error of some kinds.

    A body that is interrupted ends the process with the status `INTERRUPTED`.

    Args:
        kinds: The kinds of errors.
        who: The beginning of the line: the command, and what it was doing.
        status: The exit status.
    """
    try:
        yield
    except kinds as error:
        write_error(f"{who}: {error}")
        raise typer.Exit(status) from error
    except KeyboardInterrupt as interrupt:
        write_error(f"{who}: interrupted")
        raise typer.Exit(INTERRUPTED) from interrupt


def write_error(text: str) -> None:
    """Write a line to standard error, escaped; if that fails, only the exit status reports the error."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{escaped(text)}\n")
        sys.stderr.flush()
    except OSError:
        # What is left in its buffer would fail once more at exit, and change the status.
        sys.stderr = None

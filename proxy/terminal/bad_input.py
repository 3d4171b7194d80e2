"""The end of a command that fails, mostly because of bad input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer

__all__ = ["BAD_INPUT", "INTERRUPTED", "ends_on", "write_error"]

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
"""The status of a program that was ended by Ctrl-C."""


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
    """Write a line to standard error; if that fails, the exit status is all that reports the error."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        # What is left in its buffer would fail once more at exit, and change the status.
        sys.stderr = None

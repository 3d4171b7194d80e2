"""How a command ends that cannot do what it was asked to, mostly because of what it was given."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ends_on"]

_BAD_INPUT: Final = 2


@contextmanager
def ends_on(
    kinds: type[Exception] | tuple[type[Exception], ...], who: str, status: int = _BAD_INPUT
) -> Iterator[None]:
    """End the process with a line on standard error where the body raises one of some kinds of errors.

    Args:
        kinds: These errors.
        who: What the line begins with: the command, and what it was at.
        status: The exit status.
    """
    try:
        yield
    except kinds as error:
        typer.echo(f"{who}: {error}", err=True)
        raise typer.Exit(status) from error

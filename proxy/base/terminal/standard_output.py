"""Standard output of the command line: lines, tables, and the end of a command that fails.

A table for people at a terminal has frames. In a pipe it has one line a row, with names in full.
"""

from __future__ import annotations

import codecs
import errno
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO, TypeGuard, final

import typer

from ....model.identifiers import UNPRINTABLE

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console
    from rich.table import Table

_ESCAPES: Final = "licorne-escapes"
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
"""The status of a program that was ended by Ctrl-C."""
CLOSED_PIPE: Final = 141
"""The status of a program that was ended by a write to a closed pipe."""


class OutputError(Exception):
    """Standard output cannot be written to.

    `is_closed` tells whether its reader has closed it, such as `head` when it has enough.

    It is not an `OSError`: libraries end the process with a status of their own when a pipe is closed.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error.strerror))
        self.is_closed = error.errno == errno.EPIPE


@final
class _Output(io.FileIO):
    """Standard output that raises a clear error if it cannot be written to.

    With `is_given_up` set, what is still in the buffers is discarded.
    """

    is_given_up = False

    def write(self, content: ReadableBuffer, /) -> int:
        if self.is_given_up:
            return memoryview(content).nbytes
        try:
            return super().write(content)
        except OSError as error:
            raise OutputError(error) from error


@contextmanager
def checked_output(who: str) -> Iterator[None]:
    """End the process with a line on standard error if standard output cannot be written to.

    If its reader has closed it, the process ends without a line, with the status `CLOSED_PIPE`.

    Characters that the encoding does not have are written as JSON escapes, so that a document stays valid.

    Args:
        who: The beginning of the line.

    Raises:
        SystemExit: Standard output is closed, or something could not be written; or the body ends with it.
    """
    plain = sys.stdout
    if plain is None:
        write_error(f"{who}: standard output is closed")
        raise SystemExit(BAD_INPUT)
    if not _is_file(plain):
        yield
        return
    codecs.register_error(_ESCAPES, _escaped)
    plain.flush()
    output = _Output(plain.fileno(), "w", closefd=False)
    checked = io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=plain.encoding,
        errors=_ESCAPES,
        line_buffering=plain.line_buffering or plain.write_through,
    )
    sys.stdout = checked
    try:
        try:
            yield
        finally:
            checked.flush()
    except OutputError as error:
        if error.is_closed:
            raise SystemExit(CLOSED_PIPE) from error
        write_error(f"{who}: standard output cannot be written to: {error}")
        raise SystemExit(BAD_INPUT) from error
    finally:
        output.is_given_up = True
        sys.stdout = plain


def write_line(text: str, *, flush: bool = False) -> None:
    """Write a line to standard output, escaped; unlike `typer.echo`, it uses the escapes of that output."""
    sys.stdout.write(f"{escaped(text)}\n")
    if flush:
        sys.stdout.flush()


def _is_file(output: TextIO) -> TypeGuard[io.TextIOWrapper]:
    """Return whether an output writes to a descriptor, unlike a console of Windows or one under test."""
    if not isinstance(output, io.TextIOWrapper):
        return False
    return type(getattr(output.buffer, "raw", output.buffer)) is io.FileIO


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that an encoding does not have."""
    assert isinstance(error, UnicodeEncodeError), "only writing escapes: please report"
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    codes = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    return "".join(f"\\u{code}" for code in codes), error.end


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
        # The rest of its buffer would fail once more at exit, and change the status.
        sys.stderr = None


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
        table: The table to print; it may be changed.
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

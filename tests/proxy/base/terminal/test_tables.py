"""Tables at a terminal and in a pipe."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

from licorne.proxy.base.terminal.standard_output import output_console, print_table


def printed(*, plain: bool, width: int) -> list[str]:
    """Print a table with a title, a heading of two lines and a long name; return the lines."""
    table = Table(title="What there is, in words that are longer than the table")
    table.add_column("name\nof it")
    table.add_column("count", justify="right")
    table.add_row("root.a-name-that-is-rather-long", "7")
    table.add_row("root.b", "12")
    stream = io.StringIO()
    print_table(table, Console(file=stream, width=width), plain=plain)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_in_a_pipe_a_row_is_one_line_without_frames() -> None:
    """Also the title and the headings."""
    assert [
        "What there is, in words that are longer than the table",
        "name of it                       count",
        "root.a-name-that-is-rather-long      7",
        "root.b                              12",
    ] == printed(plain=True, width=100)


def test_at_a_terminal_a_table_is_as_wide_as_that() -> None:
    """And has frames."""
    lines = printed(plain=False, width=30)

    assert all(len(line) <= 30 for line in lines)
    assert any("━" in line or "─" in line for line in lines)


def test_where_there_is_no_terminal_no_line_is_too_long() -> None:
    """Whatever the variables say that are meant for terminals."""
    assert output_console().width > 10_000

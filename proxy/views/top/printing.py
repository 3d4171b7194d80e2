"""A reading as text or as JSON, for pipes."""

from __future__ import annotations

import json

from rich.table import Table
from rich.text import Text

from ...base.terminal.standard_output import write_line
from ...base.terminal.tables import output_console, print_table
from .heading import heading_lines
from .reading import ServerReading
from .tables import Cell, ViewTable, printable


def print_as_text(reading: ServerReading, table: ViewTable, resource: str, address: str) -> None:
    """Print what a server is like and a table, without bars, each row in a line."""
    console = output_console()
    for line in heading_lines(reading, resource, address):
        console.print(Text(line), soft_wrap=True)
    if table.note:
        console.print(Text(table.note), soft_wrap=True)
        return
    places = [place for place, column in enumerate(table.columns) if not column.is_bar]
    shown = Table()
    for place in places:
        column = table.columns[place]
        shown.add_column(column.heading, justify="right" if column.is_number else "left")
    for row in table.rows:
        shown.add_row(*(Text(plain_text(row.cells[place])) for place in places))
    print_table(shown, console, plain=True)


def plain_text(cell: Cell) -> str:
    """Return the text of a cell without indentation: of a queue the whole path."""
    return printable(cell.value) if isinstance(cell.value, str) else cell.text


def print_as_json(reading: ServerReading, table: ViewTable, resource: str, address: str, view: str) -> None:
    """Print a JSON document; quantities are raw numbers of one type of resource, and ages in nanoseconds."""
    partition = reading.partition
    rows = [
        {
            column.key: cell.value
            for column, cell in zip(table.columns, row.cells, strict=True)
            if not column.is_bar
        }
        for row in table.rows
    ]
    document = {
        "address": address,
        "view": view,
        "partition": partition["name"] if partition else None,
        "state": partition.get("state", "") if partition else None,
        "nodes": partition.get("totalNodes", 0) if partition else 0,
        "allocations": partition.get("totalContainers", 0) if partition else 0,
        "healthy": reading.health["Healthy"] if reading.health else None,
        "resource": resource or None,
        "note": table.note or None,
        "rows": rows,
    }
    write_line(json.dumps(document, indent=2, ensure_ascii=False))

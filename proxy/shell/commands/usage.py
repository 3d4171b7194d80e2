"""`licorne usage`: questions to the file of a history."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....model.errors import LicorneError
from ...base.terminal.standard_output import ends_on, is_for_people, write_line
from ...views.history.subjects import Grouping, HistorySubject
from .options import seconds_of, value_option

if TYPE_CHECKING:
    from ...views.history.questions import Cell, HistoryTable

_TIME = "_ns"
_LONG = "text"
"""The column with whole configurations: in JSON alone."""


def _back(text: str) -> float:
    """Return the seconds of a duration before now."""
    return seconds_of("--since or --until", text)


def usage(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The history, as `licorne serve --history FILE` writes it.")
    ],
    show: Annotated[
        HistorySubject,
        value_option(
            "--show", "SUBJECT", f"What is shown: {', '.join(each.value for each in HistorySubject)}."
        ),
    ] = HistorySubject.USAGE,
    by: Annotated[
        Grouping,
        value_option(
            "--by", "GROUPING", f"Whose use is added up: {', '.join(each.value for each in Grouping)}."
        ),
    ] = Grouping.QUEUE,
    since: Annotated[
        float, value_option("--since", "DURATION", "From so long ago on, such as 30d.", parser=_back)
    ] = "1d",  # type: ignore[assignment]  # typer gives it to the parser
    until: Annotated[float, value_option("--until", "DURATION", "Until so long ago.", parser=_back)] = "0s",  # type: ignore[assignment]  # likewise
    partition: Annotated[
        str, value_option("--partition", "NAME", "One partition, as NAME or [RM]NAME.")
    ] = "",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what was used, waited for, ended, preempted or configured, from the file of a history."""
    with ends_on(LicorneError, "licorne usage"):
        from ...views.history.questions import HistoryFile, Period

        now_ns = time.time_ns()
        period = Period(now_ns - int(since * 1e9), now_ns - int(until * 1e9), partition)
        answer = HistoryFile(file).ask(show, period, by)
        if as_json:
            _print_json(answer)
        elif as_csv:
            _print_csv(answer)
        else:
            _print_table(answer)


def _print_json(answer: HistoryTable) -> None:
    import json

    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    write_line(json.dumps(rows, indent=1, ensure_ascii=False))


def _print_csv(answer: HistoryTable) -> None:
    text = io.StringIO()
    columns, rows = _shown(answer)
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    write_line(text.getvalue().rstrip("\n"))


def _print_table(answer: HistoryTable) -> None:
    from rich.table import Table

    from ...base.terminal.standard_output import output_console, print_table

    columns, rows = _shown(answer)
    table = Table(*columns)
    for row in rows:
        table.add_row(*map(str, row))
    print_table(table, output_console(), plain=not is_for_people())


def _shown(answer: HistoryTable) -> tuple[list[str], list[list[Cell]]]:
    """Return the columns and rows for people: times as texts, and without whole configurations."""
    from ...core.documents.declarations import time_text

    places = [place for place, name in enumerate(answer.columns) if name != _LONG]
    times = {place for place in places if answer.columns[place].endswith(_TIME)}
    columns = [answer.columns[place].removesuffix(_TIME) for place in places]
    rows = [
        [time_text(int(row[place])) if place in times else row[place] for place in places]
        for row in answer.rows
    ]
    return columns, rows

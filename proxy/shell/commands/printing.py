"""Print answers, as lines for people or as one document for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.text import Text

from ....model.configuration.durations import short_duration_text
from ...base.terminal.standard_output import write_line
from ...base.terminal.tables import output_console

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...core.explanation.text import TextLine
    from ...play.simulation.played_input import PlayedInput


def print_lines(played_input: PlayedInput, lines: Iterable[TextLine]) -> None:
    """Print the moment, and below it the lines about it."""
    console = output_console()
    played = f", after line {played_input.line}" if played_input.line is not None else ""
    console.print(
        Text(f"at {short_duration_text(played_input.elapsed_ns)}{played}", style="dim"), soft_wrap=True
    )
    print_text_lines(lines)


def print_text_lines(lines: Iterable[TextLine]) -> None:
    """Print lines, as far indented as they say."""
    console = output_console()
    for line in lines:
        console.print(Text("  " * line.depth + line.text, style=line.style), soft_wrap=True)


def print_document(document: Mapping[str, object]) -> None:
    """Print one JSON document."""
    write_line(json.dumps(document, indent=2, ensure_ascii=False))


def moment_document(played_input: PlayedInput) -> dict[str, object]:
    """Return the moment as a document."""
    return {"elapsed": played_input.elapsed_ns, "line": played_input.line}

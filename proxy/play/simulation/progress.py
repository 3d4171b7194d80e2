"""A progress bar on a terminal, and none anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from ....model.configuration.durations import short_duration_text
from .driver import NoProgress
from .driver import Progress as ProgressListener


@contextmanager
def progress_on(stream: TextIO, description: str) -> Iterator[ProgressListener]:
    """Show progress on a stream while the context is open, if the stream is a terminal.

    Whether it is one is asked of the stream alone: variables such as `FORCE_COLOR`, which are meant for
    colours, must not put a moving bar into a file.
    """
    if not stream.isatty():
        yield NoProgress()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[moment]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        yield TerminalProgress(bar, description)


@final
class TerminalProgress:
    """Moves a bar when the difference is visible."""

    def __init__(self, bar: Progress, description: str) -> None:
        self._bar = bar
        self._task = bar.add_task(description, total=1000, moment="")
        self._shown_permille = -1

    def advanced(self, done: int, total: int, now_ns: int) -> None:
        """Show how far it is, in steps of a thousandth."""
        permille = done * 1000 // total if total else 0
        if permille != self._shown_permille:
            self._shown_permille = permille
            self._bar.update(self._task, completed=permille, moment=short_duration_text(now_ns))

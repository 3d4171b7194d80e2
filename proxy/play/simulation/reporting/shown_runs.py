"""The simulations of one page: one, or two side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .figures import QueueFigures, RunFigures


class ShownRun(NamedTuple):
    """One simulation: how it is called in the page, the end of its keys, and its figures."""

    label: str
    suffix: str
    figures: RunFigures

    def subtitle(self, text: str) -> str:
        """Return a subtitle that says which run it is, where there are two."""
        return f"{text}, {self.label}" if self.label else text


def longest_ns(runs: Sequence[ShownRun]) -> int:
    """Return when the run that takes longest ends."""
    return max(run.figures.end_ns for run in runs)


def named_queue(run: ShownRun, name: str) -> QueueFigures | None:
    """Return the queue of that name, `None` if the run has none."""
    return next((queue for queue in run.figures.queues if queue.queue == name), None)


def side_by_side(charts: Sequence[str]) -> str:
    """Return charts that belong together: one as it is, several in a row."""
    return charts[0] if len(charts) == 1 else f'<div class="pair">{"".join(charts)}</div>'

"""A figure with its target, and the tables of such figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from rich.table import Table
from rich.text import Text


@final
@dataclass(frozen=True, slots=True)
class Figure:
    """One figure."""

    subject: str
    value: float
    unit: str
    wanted_max: float | None = None
    wanted_min: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the value is as wanted; always where nothing is wanted."""
        return (self.wanted_max is None or self.value <= self.wanted_max) and (
            self.wanted_min is None or self.value >= self.wanted_min
        )

    @property
    def wanted(self) -> str:
        """What is wanted, in words."""
        if self.wanted_max is not None:
            return f"≤ {self.wanted_max:,g}"
        return f"≥ {self.wanted_min:,g}" if self.wanted_min is not None else ""


def figures_table(title: str, figures: Iterable[Figure]) -> Table:
    """Return figures as a table: green if the target is met, red if not."""
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_column("unit")
    table.add_column("wanted", justify="right")
    for figure in figures:
        digits = 0 if float(figure.value).is_integer() else 2
        value = verdict(figure.value, figure.is_met, digits=digits)
        table.add_row(figure.subject, value if figure.wanted else str(value), figure.unit, figure.wanted)
    return table


def verdict(value: float, as_wanted: bool, *, digits: int = 0) -> Text:  # noqa: FBT001 - the one thing it is about
    """Return a number in the colour that says whether it is as wanted."""
    return Text(f"{value:,.{digits}f}", style="green" if as_wanted else "red")

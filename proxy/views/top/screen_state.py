"""What a user has chosen: the view, the order, the filter, the type of resource, what is folded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from .reading import ServerReading
from .tables import ViewTable
from .tables_of_views import table_of
from .views import View


@final
@dataclass(frozen=True, slots=True)
class SortOrder:
    """A column to sort by, and the direction."""

    key: str
    descending: bool

    def reversed(self) -> SortOrder:
        """Return the other direction."""
        return SortOrder(self.key, not self.descending)


@final
@dataclass(slots=True)
class ScreenState:
    """The choices of a user; each view has an order and a filter of its own."""

    view: View = View.QUEUES
    partition: str | None = None
    resource: str | None = None
    orders: dict[View, SortOrder] = field(default_factory=dict)
    filters: dict[View, str] = field(default_factory=dict)
    folded: set[str] = field(default_factory=set)

    @property
    def filter(self) -> str:
        """The filter of the view, empty for none."""
        return self.filters.get(self.view, "")

    def table(self, reading: ServerReading, now_ns: int) -> ViewTable:
        """Return the table of a reading as the user wants it."""
        folded = () if self.filter else self.folded  # a filter searches everything
        table = table_of(self.view, reading, self.type_of(reading), now_ns, folded)
        order = self.orders.get(self.view)
        if order is not None:
            table = table.ordered(order.key, descending=order.descending)
        return table.filtered(self.filter)

    def type_of(self, reading: ServerReading) -> str:
        """Return the type of resource that is shown: the chosen one, or that which is used most."""
        types = reading.types()
        return self.resource if self.resource in types else next(iter(types), "")

    def next_type(self, reading: ServerReading) -> None:
        """Choose the type of resource that follows by name."""
        types = sorted(reading.types())
        if types:
            self.resource = types[(types.index(self.type_of(reading)) + 1) % len(types)]

    def next_order(self, table: ViewTable) -> None:
        """Sort by the column that follows, after the last one as the view itself does.

        Numbers come largest first, texts in the order of letters.
        """
        columns = [column for column in table.columns if not column.is_bar]
        order = self.orders.get(self.view)
        place = next((i for i, column in enumerate(columns) if order and column.key == order.key), -1) + 1
        if place < len(columns):
            self.orders[self.view] = SortOrder(columns[place].key, columns[place].is_number)
        else:
            self.orders.pop(self.view, None)

    def reverse_order(self, table: ViewTable) -> None:
        """Turn the order round; without one, sort by the first column the other way."""
        order = self.orders.get(self.view)
        if order is not None:
            self.orders[self.view] = order.reversed()
        elif table.columns:
            self.orders[self.view] = SortOrder(table.columns[0].key, descending=True)

    def fold(self, path: str) -> None:
        """Hide what is below a queue, or show it again."""
        self.folded ^= {path}

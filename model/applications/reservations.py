"""The nodes that are reserved for asks of one application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, final

from ..marks import Marks
from ..resources.resource import EMPTY, Resource
from .pending_asks import AskRecord

if TYPE_CHECKING:
    from .core import ApplicationCore
    from .effects import Answer


class Reservation(NamedTuple):
    """A node that waits for an ask."""

    allocation_key: str
    node_id: str
    created_at_ns: int
    required: bool
    """Whether the ask can run on no other node."""
    resource: Resource = EMPTY
    """What the ask wanted when the reservation was made."""


@final
class Reservations:
    """One reservation an ask at most, in the order they were made. Owned by the application."""

    def __init__(self) -> None:
        self.by_key: dict[str, Reservation] = {}
        """The reservations by the keys of their asks, the oldest first."""

    def __len__(self) -> int:
        return len(self.by_key)

    def all(self) -> tuple[Reservation, ...]:
        """Return the reservations, the oldest first."""
        return tuple(self.by_key.values())

    def node_of(self, allocation_key: str) -> str:
        """Return the node reserved for an ask, the empty text if there is none."""
        reservation = self.by_key.get(allocation_key)
        return reservation.node_id if reservation is not None else ""

    def add(self, reservation: Reservation) -> None:
        """Note a reservation."""
        assert reservation.allocation_key not in self.by_key, (
            f"{reservation.allocation_key} has a reservation: please report"
        )
        self.by_key[reservation.allocation_key] = reservation

    def remove(self, allocation_key: str) -> Reservation | None:
        """Forget a reservation; return it if there was one."""
        return self.by_key.pop(allocation_key, None)


@final
class ApplicationReservations:
    """The reservations of one application, as its partition changes them."""

    __slots__ = ("_core",)

    MARKS: Final = Marks(reads=("with_asks",), writes=("try_add", "remove"))

    def __init__(self, core: ApplicationCore) -> None:
        self._core = core

    def try_add(self, allocation_key: str, node_id: str, now_ns: int, *, required: bool) -> Answer | None:
        """Note a node as reserved for a waiting ask; `None` if the ask is gone, placed or has a node."""
        core = self._core
        record = core.asks.get(allocation_key)
        if record is None or record.placed or core.reservations.node_of(allocation_key):
            return None
        core.reservations.add(Reservation(allocation_key, node_id, now_ns, required, record.ask.resource))
        core.asks.set_apart(record)
        return core.answer()

    def remove(self, allocation_key: str) -> Answer | None:
        """Forget the reservation of an ask; `None` if there is none."""
        reservation = self._core.reservations.remove(allocation_key)
        return None if reservation is None else self._core.answer(reservations=(reservation,))

    def with_asks(self) -> tuple[tuple[Reservation, AskRecord | None], ...]:
        """Return the reservations with their asks, `None` for an ask that no longer waits."""
        rows = []
        for reservation in self._core.reservations.all():
            record = self._core.asks.get(reservation.allocation_key)
            rows.append((reservation, None if record is None or record.placed else record))
        return tuple(rows)

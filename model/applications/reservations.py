"""The nodes that are reserved for asks of one application."""

from __future__ import annotations

from typing import NamedTuple, final

__all__ = ["Reservation", "Reservations"]


class Reservation(NamedTuple):
    """A node that waits for an ask."""

    allocation_key: str
    node_id: str
    created_at_ns: int
    required: bool
    """Whether the ask can run on no other node."""


@final
class Reservations:
    """One reservation an ask at most, in the order they were made. Owned by the application."""

    def __init__(self) -> None:
        self._by_key: dict[str, Reservation] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def all(self) -> tuple[Reservation, ...]:
        """Return the reservations, the oldest first."""
        return tuple(self._by_key.values())

    def node_of(self, allocation_key: str) -> str:
        """Return the node reserved for an ask, the empty text if there is none."""
        reservation = self._by_key.get(allocation_key)
        return reservation.node_id if reservation is not None else ""

    def add(self, reservation: Reservation) -> None:
        """Note a reservation."""
        assert reservation.allocation_key not in self._by_key, (
            f"{reservation.allocation_key} has a reservation: please report"
        )
        self._by_key[reservation.allocation_key] = reservation

    def remove(self, allocation_key: str) -> Reservation | None:
        """Forget a reservation; return it if there was one."""
        return self._by_key.pop(allocation_key, None)

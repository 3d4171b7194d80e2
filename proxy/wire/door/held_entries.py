"""One ask or allocation as the record of a partition keeps it, and what another worker gets of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from ...si import si_pb2 as si

UNANSWERED: Final = -1
_SIZE_TAG: Final = si.Allocation.DESCRIPTOR.fields_by_name["resourcePerAlloc"].number << 3 | 2
"""The byte that begins a size in the bytes of an ask; that of its length follows."""


@final
class HeldEntry:
    """An ask, or an allocation. Plain, because there are very many."""

    __slots__ = ("ask", "node", "session")

    def __init__(self, ask: bytes, node: str, session: int) -> None:
        self.ask = ask
        self.node = node
        """Where it is; empty while it waits."""
        self.session = session
        """The session that asked the RM to end it, 0 if none did; `UNANSWERED` if the RM has placed it
        itself, and the worker has not said that it is there."""


@final
@dataclass(frozen=True, slots=True)
class HeldAllocations:
    """What another worker gets, and what the RM is to hear before that."""

    allocations: tuple[bytes, ...]
    """What runs, and what others run: messages `Allocation`."""
    asks: tuple[bytes, ...]
    """Likewise."""
    late: tuple[si.AllocationRequest, ...]
    """What is sent afterwards, in order: the RM waits for an answer to it."""
    released: tuple[si.AllocationRelease, ...]
    """What has ended with the worker."""


def without_node(data: bytes) -> bytes:
    """Return what the RM had placed itself as an ask."""
    ask = si.Allocation.FromString(data)
    ask.ClearField("nodeID")
    return ask.SerializeToString()


def placed_again(entry: HeldEntry) -> bytes:
    """Return an ask or allocation where it is now: the RM may have sent it elsewhere, or as placed.

    Of a field that stands twice in the bytes of a message the last one counts.
    """
    return entry.ask + si.Allocation(nodeID=entry.node).SerializeToString()


def has_size(entry: HeldEntry, size: si.Resource) -> bool:
    """Return whether a worker names the size of an entry; types with the quantity zero count for nothing."""
    data = size.SerializeToString()
    if len(data) < 128 and b"%c%c%b" % (_SIZE_TAG, len(data), data) in entry.ask:
        return True  # Mostly: it has one type, or few in the same order.
    return _quantities(si.Allocation.FromString(entry.ask).resourcePerAlloc) == _quantities(size)


def _quantities(size: si.Resource) -> dict[str, int]:
    return {name: quantity.value for name, quantity in size.resources.items() if quantity.value}

"""The decisions of the scheduler in a simulation, in their order: what was placed where, preempted, rejected.

They are written as the resource manager hears of them. Placeholders are asks too. Times are whole nanoseconds
of virtual time.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, final

if TYPE_CHECKING:
    from .record import AskEntry


class DecisionKind(Enum):
    """What was decided about an ask or an allocation."""

    PLACED = "placed"
    PREEMPTED = "preempted"
    REJECTED = "rejected"


class Decision(NamedTuple):
    """One decision.

    `node_id` is the node of what is placed or preempted, `reason` why an ask is rejected; each is empty
    otherwise. `queue` and `user` are those of the application at that moment.
    """

    at_ns: int
    kind: DecisionKind
    ask: str
    node_id: str
    reason: str
    application: str
    queue: str
    user: str

    def is_same(self, other: Decision) -> bool:
        """Return whether another run decides the same: at one moment, about one ask, with one result."""
        return self[:5] == other[:5]


@final
class Decisions:
    """All decisions of one simulation."""

    def __init__(self) -> None:
        self._all: list[Decision] = []

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def placed(self, key: str, entry: AskEntry, at_ns: int) -> None:
        """Write that an ask got its node."""
        self._add(at_ns, DecisionKind.PLACED, key, entry)

    def preempted(self, key: str, entry: AskEntry, at_ns: int) -> None:
        """Write that an allocation was taken off its node for another."""
        self._add(at_ns, DecisionKind.PREEMPTED, key, entry)

    def rejected(self, key: str, entry: AskEntry, at_ns: int, reason: str) -> None:
        """Write that an ask is refused."""
        self._add(at_ns, DecisionKind.REJECTED, key, entry, reason)

    def _add(self, at_ns: int, kind: DecisionKind, key: str, entry: AskEntry, reason: str = "") -> None:
        owner = entry.account.owner
        self._all.append(
            Decision(at_ns, kind, key, entry.node_id, reason, entry.application_id, owner.queue, owner.user)
        )

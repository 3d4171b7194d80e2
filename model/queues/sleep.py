"""Why something that was tried without result need not be tried again, and what ends that.

It is a leaf, the asks with a reservation, or all that is below a queue with backfilling. The counts of
changes that may give something are the *stamp*: while it stands still, only time and what is placed matter.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias, final

from ..resources.resource import Resource

if TYPE_CHECKING:
    from .waiting import PreemptingAsk

Stamp: TypeAlias = tuple[int, int, int]
"""How often something ended or grew, a node could be reserved, and a node gained room."""


class Wake(IntEnum):
    """After what another try is worthwhile; each contains those before it."""

    BY_ROOM = 0
    """A size that waits has room, in the queues or on a node."""
    BY_ANY_CHANGE = 1
    """The stamp has moved: something was refused for another reason than a lack of room."""
    IN_EACH_CYCLE = 2
    """The RM's predicates refused an ask: they may allow it at any moment, without notice."""


@final
class Sleep:
    """What a try without result leaves behind.

    Args:
        stamp: The counts of changes, as they are after it.
        until_ns: When time alone may change the answer, `None` if it cannot.
        wakes: After what another try is worthwhile.
        placed: The partition's count of placements, where what is placed matters too: it may be a victim, or
            use the room that an ask has in its queues. `None` where it does not.
        barred: The sizes that a queue on the path had no room for.
        failed_attempts: The attempts to preempt that failed, or whose earlier failure still held.
    """

    __slots__ = ("barred", "failed_attempts", "placed", "stamp", "until_ns", "wakes")

    def __init__(
        self,
        stamp: Stamp,
        until_ns: int | None,
        wakes: Wake,
        *,
        placed: int | None = None,
        barred: Collection[Resource] = (),
        failed_attempts: tuple[PreemptingAsk, ...] = (),
    ) -> None:
        self.stamp = stamp
        self.until_ns = until_ns
        self.wakes = wakes
        self.placed = placed
        self.barred = barred
        self.failed_attempts = failed_attempts

    def ends(self, now_ns: int) -> bool:
        """Return whether it is over, whether or not anything has changed."""
        return self.wakes is Wake.IN_EACH_CYCLE or (self.until_ns is not None and self.until_ns <= now_ns)

    def holds(self, stamp: Stamp, now_ns: int) -> bool:
        """Return whether nothing has changed and no time has come; what was placed the caller compares."""
        return self.stamp == stamp and not self.ends(now_ns)

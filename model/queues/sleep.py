"""Leaves that sleep: what wakes them, and which leaves below a queue are awake.

It is a leaf, the asks with a reservation, or all that is below a queue with backfilling. The counts of
changes that may give something are the *stamp*: while it stands still, only time and what is placed matter.

A leaf whose applications were all tried without result sleeps until one of these comes:

* A change that may give room, let an application start, or let one preempt, as the stamp counts them.
  When it has moved, all leaves are awake, and each is looked at once; but where it is known what bars each
  application (`licorne.model.queues.bars`), what ends wakes only those leaves that it may help.
* Its time: an ask is old enough for a reservation, an attempt to preempt is due, a back-off ends.
* A change of the leaf itself: an ask, or an application in another state.

So a cycle costs nothing for leaves that sleep, however many do. It decides the same: a leaf that sleeps would
be skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias, final

from ..resources.resource import Resource, is_any_positive

if TYPE_CHECKING:
    from .queue import Queue
    from .waiting import PreemptingAsk

Stamp: TypeAlias = tuple[int, int, int, int]
"""How often something changed that may give anything room, a node could be reserved, something ended, and a
node gained room."""


class Wake(IntEnum):
    """After what another try is worthwhile; each contains those before it."""

    BY_BAR = -1
    """What bars one of the applications, each of which rests, has room for it, or may have."""
    BY_ROOM = 0
    """A size that waits has room, in the queues or on a node."""
    BY_ANY_CHANGE = 1
    """The stamp has moved: something was refused for another reason than a lack of room."""
    IN_EACH_CYCLE = 2
    """The RM's predicates refused an ask: they may allow it at any moment, without notice."""


@final
class Sleep:
    """The result of a try that placed nothing.

    Args:
        stamp: The counts of changes after it.
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


@final
class AwakeLeaves:
    """The leaves of one queue tree that are awake, and those that sleep. Other queues are passed over."""

    __slots__ = ("_by_stamp", "_due", "_stamp", "asleep", "leaves")

    def __init__(self) -> None:
        self.leaves: dict[Queue, None] = {}
        """Those that are awake, in no order; some may no longer have anything waiting."""
        self.asleep: dict[Queue, int | None] = {}
        """Those that sleep, with when time alone may give them something; `None`: it may not."""
        self._by_stamp: dict[Queue, None] = {}
        """Those of them that wake when anything has ended, with others that are awake since."""
        self._due: list[tuple[int, str, Queue]] = []
        """A heap of such times, with others of leaves that are awake since."""
        self._stamp: Stamp = (0, 0, 0, 0)
        """The one at the last look."""

    def sleeps_on(self, leaf: Queue, stamp: Stamp, now_ns: int) -> bool:
        """Return whether a leaf would sleep on after a look; it changes nothing, and threads may share it."""
        if stamp != self._stamp or leaf not in self.asleep:
            return False
        until_ns = self.asleep[leaf]
        return until_ns is None or until_ns > now_ns

    @property
    def are_few(self) -> bool:
        """Whether so few are awake that to sort them costs less than to walk past the others."""
        return 4 * len(self.leaves) <= len(self.asleep)

    def look(self, stamp: Stamp, now_ns: int) -> None:
        """Wake those that the stamp wakes, if it has moved since the last look, and whose time has come."""
        if stamp != self._stamp:
            self._follow(stamp)
        while (due_ns := self.next_due_ns()) is not None and due_ns <= now_ns:
            self.wake(heappop(self._due)[2])

    def _follow(self, stamp: Stamp) -> None:
        """Wake those that any end wakes, or all if something has changed that may give anything room."""
        asleep = self.asleep
        candidates = asleep if stamp[:2] != self._stamp[:2] else self._by_stamp
        woken = [leaf for leaf in candidates if leaf in asleep]
        self._stamp = stamp
        self._by_stamp.clear()
        for leaf in woken:
            self.wake(leaf)
        if len(self._due) > 2 * len(asleep):
            self._due = [(due_ns, leaf.path, leaf) for leaf, due_ns in asleep.items() if due_ns is not None]
            heapify(self._due)

    def next_due_ns(self) -> int | None:
        """Return when time alone may first give something to one that sleeps, `None` if it may not."""
        due = self._due
        while due and (self.asleep.get(due[0][2]) != due[0][0] or not is_any_positive(due[0][2].pending)):
            heappop(due)  # It is awake since, or waits for nothing: then what it asks for next wakes it.
        return due[0][0] if due else None

    def sleep(self, leaves: Sequence[Queue], stamp: Stamp) -> None:
        """Let leaves sleep that may be skipped, while the stamp is the one that they were looked at with."""
        if stamp != self._stamp:
            self._follow(stamp)
        asleep, awake = self.asleep, self.leaves
        for leaf in leaves:
            sleep = leaf.entries.sleep
            if sleep is None or sleep.placed is not None:
                continue  # A placement anywhere may give it room, and wakes no leaf.
            awake.pop(leaf, None)
            if sleep.wakes is not Wake.BY_BAR:
                self._by_stamp[leaf] = None
            asleep[leaf] = due_ns = sleep.until_ns
            if due_ns is not None:
                heappush(self._due, (due_ns, leaf.path, leaf))

    def wake(self, leaf: Queue) -> None:
        """Let the next cycle look at a leaf."""
        self.asleep.pop(leaf, None)
        if leaf.is_leaf:
            self.leaves[leaf] = None

    def forget(self, leaf: Queue) -> None:
        """Forget a leaf that is removed."""
        self.asleep.pop(leaf, None)
        self._by_stamp.pop(leaf, None)
        self.leaves.pop(leaf, None)

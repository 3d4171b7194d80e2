"""Which leaves a cycle looks at: all but those that sleep.

A leaf whose applications were all tried without result sleeps until one of these comes:

* A change that may give room, let an application start, or let one preempt, as the stamp counts them
  (`licorne.model.queues.sleep`). When it has moved, all leaves are awake, and each is looked at once.
* Its time: an ask is old enough for a reservation, an attempt to preempt is due, a back-off ends.
* A change of the leaf itself: an ask, or an application in another state.

So a cycle costs nothing for leaves that sleep, however many do. It decides the same: a leaf that sleeps would
be skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, final

from ..resources.resource import is_any_positive
from .sleep import Stamp

if TYPE_CHECKING:
    from .queue import Queue


@final
class AwakeLeaves:
    """The leaves of one queue tree that are awake, and those that sleep. Other queues are passed over."""

    __slots__ = ("_due", "_stamp", "asleep", "leaves")

    def __init__(self) -> None:
        self.leaves: dict[Queue, None] = {}
        """Those that are awake, in no order; some may have nothing waiting any more."""
        self.asleep: dict[Queue, int | None] = {}
        """Those that sleep, with when time alone may give them something; `None`: it may not."""
        self._due: list[tuple[int, str, Queue]] = []
        """A heap of such times, with others of leaves that are awake since."""
        self._stamp: Stamp = (0, 0, 0)

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
        """Wake all if the stamp has moved since they fell asleep, otherwise those whose time has come."""
        if stamp != self._stamp:
            self._wake_all()
        while (due_ns := self.next_due_ns()) is not None and due_ns <= now_ns:
            self.wake(heappop(self._due)[2])

    def _wake_all(self) -> None:
        self.leaves.update(dict.fromkeys(self.asleep))
        self.asleep.clear()
        self._due.clear()

    def next_due_ns(self) -> int | None:
        """Return when time alone may first give something to one that sleeps, `None` if it may not."""
        due = self._due
        while due and (self.asleep.get(due[0][2]) != due[0][0] or not is_any_positive(due[0][2].pending)):
            heappop(due)  # It is awake since, or waits for nothing: then what it asks for next wakes it.
        return due[0][0] if due else None

    def sleep(self, leaves: Sequence[Queue], stamp: Stamp) -> None:
        """Let leaves sleep that may be skipped, while the stamp is the one that they were looked at with."""
        if stamp != self._stamp:
            self._wake_all()
            self._stamp = stamp
        asleep, awake = self.asleep, self.leaves
        for leaf in leaves:
            sleep = leaf.entries.sleep
            if sleep is None or sleep.placed is not None:
                continue  # What is placed anywhere may give it something, and wakes no leaf.
            awake.pop(leaf, None)
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
        self.leaves.pop(leaf, None)

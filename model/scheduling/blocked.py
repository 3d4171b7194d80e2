"""What stops a walk from placing anything, and what may change that: of one application, then of its leaf."""

from __future__ import annotations

from typing import final

from ..queues.sleep import Wake
from ..values.refusals import Refusal, RefusalReason
from .resting import LACKS_ROOM, PreemptionRefused


@final
class Blocked:
    """What stopped an application, or all that were tried in a leaf.

    Args:
        notes_before: How many notes of refusals are kept if the visit is repeated.
    """

    __slots__ = (
        "is_own",
        "is_pending",
        "may_reserve",
        "notes_before",
        "preemption",
        "until_ns",
        "wakes",
    )

    def __init__(self, notes_before: int) -> None:
        self.wakes = Wake.BY_ROOM
        self.until_ns: int | None = None
        """When time alone may change the answer."""
        self.is_pending = False
        """The RM is being asked about an ask: the result is not known yet, and the visit is repeated."""
        self.notes_before = notes_before
        self.may_reserve = False
        """A node to reserve was sought for the application."""
        self.is_own = False
        """What stops the application may not stop others: the RM judged it, or it has preempted before."""
        self.preemption: list[PreemptionRefused] = []
        """To which asks of the application preemption was refused."""

    def wake(self, wakes: Wake) -> None:
        """Note what is worth another walk."""
        self.wakes = max(self.wakes, wakes)

    def wake_at(self, time_ns: int | None) -> None:
        """Note when time alone may change the answer; `None`: it does not."""
        if time_ns is not None and (self.until_ns is None or time_ns < self.until_ns):
            self.until_ns = time_ns

    def note(self, refusal: Refusal) -> None:
        """Note what may end a refusal."""
        if refusal.reason is RefusalReason.PREDICATES and refusal.until_ns is not None:
            self.wake(Wake.IN_EACH_CYCLE)  # Otherwise the RM says when it may be allowed.
        elif refusal.reason not in LACKS_ROOM:
            self.wake(Wake.BY_ANY_CHANGE)
        self.wake_at(refusal.until_ns)

    def join(self, tried: Blocked) -> None:
        """Add what stopped one application to what stopped those before it."""
        self.wake(tried.wakes)
        self.wake_at(tried.until_ns)
        self.is_pending = self.is_pending or tried.is_pending
        self.notes_before = tried.notes_before

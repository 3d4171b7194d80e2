"""What one visit of a leaf may spend on attempts to preempt, and what it knows from those it has made."""

from __future__ import annotations

from typing import Final, final

from ...queues.waiting import PreemptingAsk
from ..victims import Victim

__all__ = ["ATTEMPTS_MAX", "AttemptBudget"]

ATTEMPTS_MAX: Final = 10
"""Attempts during one visit of a leaf; the next visit has as many again."""


@final
class AttemptBudget:
    """How many attempts one visit of a leaf may still make, and when a retry is worthwhile."""

    __slots__ = ("failed", "is_due", "left", "pending", "refused_to_ns", "retry_ns", "victims")

    def __init__(self) -> None:
        self.left = ATTEMPTS_MAX
        self.refused_to_ns: int | None = None
        """Every ask of the shape that is created up to then is refused like the last one, unless it has an
        answer of its own; `None` if the refusal is of the last one alone."""
        self.retry_ns: int | None = None
        """When time alone may let the ask that was last refused preempt; `None` if only a change can."""
        self.is_due = False
        """The last one was refused for want of attempts, or by a failed attempt for another of its shape."""
        self.failed: dict[PreemptingAsk, None] = {}
        """Those whose attempt failed, now or earlier with a failure that holds still."""
        self.pending = False
        """The last attempt was broken off without a trace, since the RM has not answered yet."""
        self.victims: dict[str, tuple[Victim, ...]] = {}
        """By the path of a leaf: what may end there, as the first attempt found it. The next ones find the
        same: a visit ends with the first attempt that changes something."""

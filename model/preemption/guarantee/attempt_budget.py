"""What one visit of a leaf may spend on attempts to preempt, and what a refused attempt says."""

from __future__ import annotations

from typing import Final, NamedTuple, final

from ...applications.ask_walk import Candidate
from ...queues.waiting import PreemptingAsk
from ..victims import Victim

ATTEMPTS_MAX: Final = 10
"""Attempts during one visit of a leaf; the next visit has as many again."""


@final
class AttemptBudget:
    """How many attempts one visit of a leaf may still make, and what it knows from those it has made."""

    __slots__ = ("failed", "left", "victims")

    def __init__(self) -> None:
        self.left = ATTEMPTS_MAX
        self.failed: dict[PreemptingAsk, None] = {}
        """Those whose attempt failed, now or earlier with a failure that holds still."""
        self.victims: dict[str, tuple[Victim, ...]] = {}
        """By the path of a leaf: what may end there, as the first attempt found it. The next ones find the
        same: a visit ends with the first attempt that changes something."""


class RefusedAttempt(NamedTuple):
    """Why nothing was preempted for an ask, and what may change that."""

    text: str
    """Why."""
    retry_ns: int | None = None
    """When time alone may let the ask preempt; `None` if only a change can."""
    refused_to_ns: int | None = None
    """Every ask of the shape that is created up to then is refused likewise, unless it has an answer of its
    own; `None` if the refusal is of this one alone."""
    is_due: bool = False
    """It was refused for want of attempts, or by a failed attempt for another of its shape."""
    is_made: bool = False
    """An attempt was made, and failed."""
    is_pending: bool = False
    """The attempt was broken off without a trace, since the RM has not answered yet."""


def preempting_ask(candidate: Candidate, holder: tuple[str, str | None] | None) -> PreemptingAsk:
    """Return what decides an attempt to preempt for a candidate, besides its leaf.

    Args:
        candidate: The ask.
        holder: Its user and group, if their limits have no room for it.
    """
    return PreemptingAsk(candidate.ask.resource, candidate.ask.priority, candidate.reserved_node, holder)

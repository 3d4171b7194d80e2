"""What one visit of a leaf may spend on attempts to preempt, and what a refused attempt says."""

from __future__ import annotations

from enum import Enum
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


class NoPreemption(Enum):
    """Why nothing is preempted for an ask; it is tried again 15 seconds later.

    The second part of a value says whether every ask of the shape would fail likewise.
    """

    GUARANTEE = ("Preemption queue guarantees check failed", True)
    NO_NODE = ("Preemption does not help", True)
    NO_LOWER = ("Preemption does not help: no work of lower priority may end in the queue", True)
    NO_LOWER_OF_HOLDER = (
        "Preemption does not help: no work of lower priority may end of the user or group at its limit",
        True,
    )
    REFUSED = ("Preemption does not help: the RM refused every node", False)
    SHORT = ("Preemption helped but short of resources", False)
    ABOVE_GUARANTEE = ("Preemption would leave the queue above its guarantee", False)
    PROTECTED = ("Preemption waits: what could end is protected for now", True)
    TOO_MANY = ("Preemption would end more at a time than a queue may lose", True)
    REPEATS = ("Preemption waits: it would repeat one that had no effect", True)
    WOULD_DELAY = ("Preemption would delay a promised start", False)
    """One with another walltime may not."""
    TOO_LATE = ("Victims picked earlier were released at the final stage", False)
    PENDING = ("The RM has not answered yet", False)
    """The attempt is repeated when it has; nothing is noted."""

    @property
    def text(self) -> str:
        """What is noted on the ask."""
        return self.value[0]

    @property
    def holds_for_shape(self) -> bool:
        """Whether every ask of equal size and priority in the leaf would fail likewise."""
        return self.value[1]


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

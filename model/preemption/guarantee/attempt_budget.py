"""The budget of one visit of a leaf for attempts to preempt, and the answer of a refused attempt."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, final

from ...applications.ask_walk import Candidate
from ...queues.waiting import PreemptingAsk
from ..victims import Victim

ATTEMPTS_MAX: Final = 10
"""The number of attempts during one visit of a leaf; each visit starts with the full number."""


@final
class AttemptBudget:
    """The number of attempts that one visit of a leaf may still make, and the results of the earlier ones."""

    __slots__ = ("failed", "left", "victims")

    def __init__(self) -> None:
        self.left = ATTEMPTS_MAX
        self.failed: dict[PreemptingAsk, None] = {}
        """The asks whose attempt failed, now or earlier with a failure that is still valid."""
        self.victims: dict[str, tuple[Victim, ...]] = {}
        """The possible victims by the path of their leaf, as the first attempt found them. The next attempts
        find the same: a visit ends with the first attempt that changes something."""


class NoPreemption(Enum):
    """The reason why nothing is preempted for an ask; the next attempt is 15 seconds later.

    The second part of a value is whether every ask of the shape would fail in the same way.
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
    """An ask with another walltime may not delay it."""
    TOO_LATE = ("Victims picked earlier were released at the final stage", False)
    PENDING = ("The RM has not answered yet", False)
    """The attempt is repeated after the answer; nothing is noted."""

    @property
    def text(self) -> str:
        """The text that is noted on the ask."""
        return self.value[0]

    @property
    def holds_for_shape(self) -> bool:
        """Whether every ask of equal size and priority in the leaf would fail in the same way."""
        return self.value[1]


class RefusedAttempt(NamedTuple):
    """The reason why nothing was preempted for an ask, and the changes that may allow it."""

    text: str
    """The reason."""
    retry_ns: int | None = None
    """When time alone may let the ask preempt; `None` if only a change can."""
    refused_to_ns: int | None = None
    """Every ask of the shape that was created up to then is refused in the same way, unless it has its own
    answer; `None` if the refusal covers only this ask."""
    is_due: bool = False
    """It was refused because no attempts were left, or by a failed attempt for another ask of its shape."""
    is_made: bool = False
    """An attempt was made, and failed."""
    is_pending: bool = False
    """The attempt was abandoned without a trace, because the RM has not answered yet."""


def preempting_ask(candidate: Candidate, holder: tuple[str, str | None] | None) -> PreemptingAsk:
    """Return the facts of a candidate that decide an attempt to preempt for it, besides its leaf.

    Args:
        candidate: The ask.
        holder: Its user and group, if their limits have no room for it.
    """
    return PreemptingAsk(candidate.ask.resource, candidate.ask.priority, candidate.reserved_node, holder)

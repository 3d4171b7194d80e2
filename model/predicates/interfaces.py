"""The two ways in which a partition asks the predicates of a resource manager (RM): at once, and later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from ..values.predicate_questions import NumberedQuestion, PredicateAnswer

QUESTIONS_MAX: Final = 128
"""How many questions of a partition are open at most."""


class Predicates(Protocol):
    """The RM's decision whether an ask may run on a node."""

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return why the node is refused, `None` if it is not. `allocate` is false for a reservation."""

    def preemption_index(
        self,
        allocation_key: str,
        node_id: str,
        victim_keys: tuple[str, ...],
        start_index: int,
    ) -> int | None:
        """Return the index of the last victim that must end for the ask to run there, or `None`."""


class QuestionChannel(Protocol):
    """The way to predicates that are answered later: neither method waits.

    It is all that a partition learns of the RM's answers. What `take` returns decides what a cycle does, so a
    record of it is enough to repeat the cycle.
    """

    def ask(self, questions: Sequence[NumberedQuestion]) -> None:
        """Send questions to the RM, in order; called at the end of a cycle."""

    def take(self) -> Sequence[PredicateAnswer]:
        """Return the answers that have come since the last call; called at the start of each cycle.

        After an answer has come, the partition must get a `RetryAsks`, unless its caller steps it.
        """


def many_questions() -> int:
    """Return how many questions may be open where an ask may be placed while earlier ones are pending."""
    return QUESTIONS_MAX


def one_question() -> int:
    """Return how many questions may be open where asks are placed in their order."""
    return 1

"""The counts of the answers and failures of policies, the time they took, and the threads that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias, final

from ..errors import error_text

FAILURE_MAX: Final = 200
"""The maximum length of the text of an error that is kept, in characters."""


AnswerNote: TypeAlias = "Callable[[str, str, object], None]"
"""Called with each answer: the policy, its method, and the checked answer or the reason why it is missing."""


class AskedThread(Protocol):
    """The state of a thread that calls policies."""

    questions: int
    """How many questions it is answering."""


class AnyThread:
    """The state of threads on which nothing is refused."""

    def __init__(self) -> None:
        self.questions = 0


class PolicyFailure(NamedTuple):
    """A question that a policy failed to answer."""

    method: str
    subject: str
    """The id of the node, application or ask of the question."""
    error: str
    at_ns: int
    """Nanoseconds since 1970."""


class PointFailures(NamedTuple):
    """The failures of one policy in one method, in all partitions."""

    times: int
    first: PolicyFailure


class PolicyFigures(NamedTuple):
    """The counts of one policy up to one moment, in all partitions."""

    answers: int
    """The number of questions."""
    failures: int
    total_ns: int
    """The sum of the times of all answers."""
    longest_ns: int
    last_failure: PolicyFailure | None = None
    without_class: int = 0
    """How often an ask was placed by the order of the partition, as too many classes had an order."""


@final
class PolicyCounts:
    """Counts the answers of one policy in all partitions.

    Any thread counts and reads. If two threads count at once, one answer may be missed: no decision depends
    on these counts.
    """

    __slots__ = (
        "_failed",
        "_failures",
        "_last_failure",
        "answers",
        "longest_ns",
        "total_ns",
        "without_class",
    )

    def __init__(self) -> None:
        self.answers = self.total_ns = self.longest_ns = 0
        """Of all questions, including failed ones."""
        self.without_class = 0
        self._failures = 0
        self._failed: dict[str, PointFailures] = {}
        self._last_failure: PolicyFailure | None = None

    def count_failure(self, method: str, subject: str, error: Exception, now_ns: int) -> None:
        """Count a question without an answer."""
        failure = PolicyFailure(method, subject, error_text(error)[:FAILURE_MAX], now_ns)
        before = self._failed.get(method, PointFailures(0, failure))
        self._failures += 1
        self._failed[method] = PointFailures(before.times + 1, before.first)
        self._last_failure = failure

    def failures(self) -> dict[str, PointFailures]:
        """Return the failures so far by method, in the order of the first ones."""
        return dict(self._failed)

    def figures(self) -> PolicyFigures:
        """Return the current counts."""
        return PolicyFigures(
            *(self.answers, self._failures, self.total_ns, self.longest_ns),
            *(self._last_failure, self.without_class),
        )

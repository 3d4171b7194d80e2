"""The counts of the answers and failures of policies, and the time they took, for monitoring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias, final

from ..errors import error_text

FAILURE_MAX: Final = 200
"""The maximum length of the text of an error that is kept, in characters."""


AnswerNote: TypeAlias = "Callable[[str, str, object], None]"
"""Called with each answer: the policy, its method, and the checked answer or the reason why it is missing."""


class PolicyFailure(NamedTuple):
    """A question that a policy failed to answer."""

    method: str
    subject: str
    """The id of the node, application or ask of the question."""
    error: str
    at_ns: int
    """Nanoseconds since 1970."""


class PolicyFigures(NamedTuple):
    """The counts of one policy up to one moment, in all partitions."""

    answers: int
    """The number of questions."""
    failures: int
    total_ns: int
    """The sum of the times of all answers."""
    longest_ns: int
    last_failure: PolicyFailure | None = None


@final
class PolicyCounts:
    """Counts the answers of one policy in all partitions.

    Any thread counts and reads. If two threads count at once, one answer may be missed: no decision depends
    on these counts.
    """

    __slots__ = ("_failures", "_last_failure", "answers", "longest_ns", "total_ns")

    def __init__(self) -> None:
        self.answers = self.total_ns = self.longest_ns = 0
        """Of all questions, including failed ones."""
        self._failures = 0
        self._last_failure: PolicyFailure | None = None

    def count_failure(self, method: str, subject: str, error: Exception, now_ns: int) -> None:
        """Count a question without an answer."""
        self._failures += 1
        self._last_failure = PolicyFailure(method, subject, error_text(error)[:FAILURE_MAX], now_ns)

    def figures(self) -> PolicyFigures:
        """Return the current counts."""
        return PolicyFigures(self.answers, self._failures, self.total_ns, self.longest_ns, self._last_failure)

"""What a policy has answered, how often it has failed, and how long it took: for those who watch it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias, final

from ..errors import error_text

FAILURE_MAX: Final = 200
"""How many characters of an error's text are kept."""


AnswerNote: TypeAlias = "Callable[[str, str, object], None]"
"""Called with each answer: the policy, its method, and the answer as it was checked, or why there is none."""


class PolicyFailure(NamedTuple):
    """A question that a policy could not answer."""

    method: str
    subject: str
    """The id of the node, application or ask that it was asked about."""
    error: str
    at_ns: int
    """Nanoseconds since 1970."""


class PolicyFigures(NamedTuple):
    """What a policy has answered until one moment, in all partitions."""

    answers: int
    """How often it was asked."""
    failures: int
    total_ns: int
    """How long it took together."""
    longest_ns: int
    last_failure: PolicyFailure | None = None


@final
class PolicyCounts:
    """Counts the answers of one policy in all partitions.

    Any thread counts and reads. If two threads count at once, one answer may not be counted: nothing is
    decided by it.
    """

    __slots__ = ("_failures", "_last_failure", "answers", "longest_ns", "total_ns")

    def __init__(self) -> None:
        self.answers = self.total_ns = self.longest_ns = 0
        """Of all that was asked, also what failed."""
        self._failures = 0
        self._last_failure: PolicyFailure | None = None

    def count_failure(self, method: str, subject: str, error: Exception, now_ns: int) -> None:
        """Count that there was no answer."""
        self._failures += 1
        self._last_failure = PolicyFailure(method, subject, error_text(error)[:FAILURE_MAX], now_ns)

    def figures(self) -> PolicyFigures:
        """Return what was counted."""
        return PolicyFigures(self.answers, self._failures, self.total_ns, self.longest_ns, self._last_failure)

"""A cache for resolvers: a question that was answered is not asked again for a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from ....lockcheck import Lock
from .resolver import ResolverUnavailableError, UserResolutionError, UserResolver

POSITIVE_SECONDS: Final = 300
NEGATIVE_SECONDS: Final = 30
CLEANING_SECONDS: Final = 60
OUTAGE_SECONDS: Final = 5
USERS_MAX: Final = 10_000
_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer, or the text of a failure, and the time for which it holds."""

    content: tuple[str, ...] | str
    from_ns: int
    until_ns: int

    def holds_at(self, now_ns: int) -> bool:
        """Return whether the answer holds; one from the future does not, since a clock has been set back."""
        return self.from_ns <= now_ns < self.until_ns


@final
class CachedResolver:
    """A cache for another resolver: groups are kept for five minutes, failures for half a minute.

    An expired answer is looked up again at once. The look-ups themselves remove expired answers, once a
    minute; beyond `capacity` users the oldest answer is dropped.

    When the resolver could not be asked at all, users that are not in the cache are refused for five seconds
    without another try: a request with a thousand of them waits for a directory that is down only once.

    The groups that an RM gives for one application are not cached: they are no answer of the resolver.

    Args:
        resolver: The resolver to ask. It is never asked while the cache is locked.
        now_ns: The time, in nanoseconds.
        capacity: How many users are kept.
    """

    __slots__ = ("_answers", "_capacity", "_cleaned_ns", "_guard", "_now_ns", "_outage", "_resolver")

    def __init__(
        self, resolver: UserResolver, now_ns: Callable[[], int], *, capacity: int = USERS_MAX
    ) -> None:
        if capacity < 1:
            raise ValueError(f"a cache of {capacity} users keeps nothing")
        self._resolver = resolver
        self._now_ns = now_ns
        self._capacity = capacity
        self._guard = Lock("answers")
        self._answers: dict[str, _Answer] = {}
        """By user, the oldest first."""
        self._outage: _Answer | None = None
        self._cleaned_ns = now_ns()

    def __len__(self) -> int:
        return len(self._answers)

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups of a user, from the cache if the answer is fresh.

        Raises:
            UserResolutionError: The resolver does not know the user, now or a short while ago.
        """
        known = self._recall(user)
        if known is not None:
            return known
        try:
            groups = self._resolver.groups_of(user)
        except UserResolutionError as error:
            self._keep(user, str(error), is_outage=isinstance(error, ResolverUnavailableError))
            raise
        self._keep(user, groups)
        return groups

    def _recall(self, user: str) -> tuple[str, ...] | None:
        """Return a fresh answer, `None` if there is none; raise a fresh failure."""
        now_ns = self._now_ns()
        with self._guard:
            self._clean(now_ns)
            answer, outage = self._answers.get(user), self._outage
        if answer is not None and answer.holds_at(now_ns):
            if isinstance(answer.content, str):
                raise UserResolutionError(f"user resolution failed, cached data returned: {answer.content}")
            return answer.content
        if outage is not None and outage.holds_at(now_ns):
            raise ResolverUnavailableError(
                f"user {user!r} was not looked up after a failure: {outage.content}"
            )
        return None

    def _keep(self, user: str, content: tuple[str, ...] | str, *, is_outage: bool = False) -> None:
        """Keep an answer as the youngest."""
        now_ns = self._now_ns()
        seconds = NEGATIVE_SECONDS if isinstance(content, str) else POSITIVE_SECONDS
        with self._guard:
            self._answers.pop(user, None)
            if len(self._answers) >= self._capacity:
                del self._answers[next(iter(self._answers))]
            self._answers[user] = _Answer(content, now_ns, now_ns + seconds * _SECOND_NS)
            until_ns = now_ns + OUTAGE_SECONDS * _SECOND_NS
            self._outage = _Answer(content, now_ns, until_ns) if is_outage else None

    def _clean(self, now_ns: int) -> None:
        """Remove expired answers, if that was not done for a minute or the clock was set back."""
        if 0 <= now_ns - self._cleaned_ns < CLEANING_SECONDS * _SECOND_NS:
            return
        self._cleaned_ns = now_ns
        self._answers = {user: answer for user, answer in self._answers.items() if answer.holds_at(now_ns)}

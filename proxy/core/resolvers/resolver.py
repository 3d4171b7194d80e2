"""The interface of a resolver, its cache, its look-ups, and a file with the groups of users.

It happens on the thread of the RM that made the request, while nothing is locked: a look-up that takes
long delays this request, and no scheduling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, final

from ....actors.services.log import Log
from ....lockcheck import Lock
from ....model.configuration.problems import RuleFinding
from ....model.errors import LicorneError
from ....model.values.messages import ApplicationSubmission, LookedUp, LookUpFailure
from ...base.files.input_files import LocatedYaml, YamlValue, read_located_yaml

POSITIVE_SECONDS: Final = 300
NEGATIVE_SECONDS: Final = 30
CLEANING_SECONDS: Final = 60
OUTAGE_SECONDS: Final = 5
USERS_MAX: Final = 10_000
_SECOND_NS: Final = 1_000_000_000


class ResolverSettingsError(LicorneError):
    """A resolver cannot be made here with these settings; the text has one line for each problem."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        assert problems, "settings are refused for a reason"
        super().__init__(problems)
        self.problems: Final = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


class UserResolutionError(LicorneError):
    """The groups of a user cannot be found; the text names the user and the reason."""


class ResolverUnavailableError(UserResolutionError):
    """Nothing is known about the user, because the source of groups cannot be asked at present."""


class UserResolver(Protocol):
    """A source of the groups of users; several threads may ask it at once."""

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups of a user, the primary group first.

        Raises:
            UserResolutionError: The user is not known, or the source of groups cannot be asked.
        """
        ...


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

    Groups that an RM sends for one application are not cached: they do not come from the resolver.

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
        """Return a fresh answer, `None` without one; raise a fresh failure."""
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


def with_groups(
    submissions: Sequence[ApplicationSubmission],
    resolver: UserResolver | None,
    blocking: Callable[[], AbstractContextManager[None]],
    log: Log | None = None,
) -> tuple[ApplicationSubmission, ...]:
    """Return applications with the groups of their users, if the RM named a user and no groups.

    Each user is looked up once. A failure is added to its application, which is refused for it.

    Args:
        submissions: The applications of one request, for one partition.
        resolver: The resolver to ask, if any.
        blocking: Marks for the engine that the thread waits.
        log: Gets the failures of an embedder's resolver.
    """
    users = dict.fromkeys(entry.user for entry in submissions if entry.user and not entry.groups)
    if resolver is None or not users:
        return tuple(submissions)
    with blocking():
        found = {user: _look_up(user, resolver, log or Log()) for user in users}
    return tuple(
        entry if entry.groups else replace(entry, looked_up=found.get(entry.user)) for entry in submissions
    )


def _look_up(user: str, resolver: UserResolver, log: Log) -> LookedUp:
    try:
        groups: object = resolver.groups_of(user)
        if isinstance(groups, Iterable) and not isinstance(groups, str):
            found = tuple(groups)
            if all(isinstance(group, str) for group in found):
                return found
        return LookUpFailure(f"user {user!r}: groups_of returned {groups!r:.100}, not a list of texts")
    except UserResolutionError as error:
        return LookUpFailure(str(error))
    except Exception as error:
        log.exception("the resolver failed for user {!r}", user)  # noqa: PLE1205 - loguru's braces
        return LookUpFailure(f"user {user!r}: the resolver failed: {error!r}")


def read_users(path: Path) -> StaticResolver:
    """Read a mapping from the name of each user to a list of groups, as YAML or JSON.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: It is not such a mapping; the error has all problems, with their places.
    """
    located = read_located_yaml(path)
    groups: dict[str, list[str]] = {}
    findings: list[RuleFinding] = []
    if not isinstance(located.value, dict):
        raise located.error([located.finding([], "expected users with lists of groups")])
    for user, value in located.value.items():
        if not isinstance(value, list):
            findings.append(located.finding([user], f"expected a list of groups, not {value!r}"))
            continue
        findings += _no_names(located, user, value)
        groups[user] = [name for name in value if isinstance(name, str)]
    if findings:
        raise located.error(findings)
    return StaticResolver(groups)


def _no_names(located: LocatedYaml, user: str, groups: list[YamlValue]) -> Iterator[RuleFinding]:
    """Yield the groups that are not valid names."""
    for index, name in enumerate(groups):
        if not isinstance(name, str) or not name:
            text = f"expected the name of a group, in quotes if need be, not {name!r}"
            yield located.finding([user, index], text)


@final
class StaticResolver:
    """A resolver with a fixed list.

    Args:
        groups: The groups of each user that is known; copied.
    """

    __slots__ = ("_groups",)

    def __init__(self, groups: Mapping[str, Sequence[str]]) -> None:
        self._groups = {user: tuple(names) for user, names in groups.items()}

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups of the list.

        Raises:
            UserResolutionError: The user is not in the list.
        """
        try:
            return self._groups[user]
        except KeyError:
            raise UserResolutionError(f"user {user!r} is not in the list of users") from None

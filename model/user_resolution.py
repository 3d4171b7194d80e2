"""From the user that a resource manager submits to the user the scheduler works with.

An RM may name the groups of a user, or leave them to a *resolver*. Resolvers that need the operating
system or a directory server live at the doors of the scheduler; here is what they promise, the two that
need nothing, and a cache that any of them can be put behind. A resolver belongs to one partition: the
recorded core made one for the whole process, of the kind that the first partition happened to ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, final

from .configuration.names import is_user_name
from .errors import LicorneError
from .users import User

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "CachedResolver",
    "NoResolver",
    "StaticResolver",
    "UserResolutionError",
    "UserResolver",
    "resolve",
]

_NOBODY: Final = "nobody"
_NO_GROUP: Final = "nogroup"


class UserResolutionError(LicorneError):
    """The groups of a user cannot be found; the text names the user and says why."""


class UserResolver(Protocol):
    """What knows the groups of a user."""

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups of a user, the primary group first.

        Raises:
            UserResolutionError: The user is not known, or whoever knows cannot be asked.
        """


def resolve(
    submitted_user: str,
    submitted_groups: Sequence[str],
    *,
    forced: bool,
    resolver: UserResolver,
) -> User | str:
    """Make the user of an application out of what was submitted.

    Groups that were submitted are taken as they are, and the name must then look like one. Without groups
    the resolver decides, and whom it knows may have any name. A forced application is never refused for
    want of a user or of groups: it gets `nobody` or `nogroup`.

    Args:
        submitted_user: The name of the user; empty if the RM sent none.
        submitted_groups: The groups of the user; empty if the RM leaves them to the resolver.
        forced: The application must be accepted (tag `application.create.force`).
        resolver: Whom to ask for the groups.

    Returns:
        The user, or the words to refuse the application with.
    """
    user, groups = submitted_user, tuple(submitted_groups)
    if not user:
        if not forced:
            return "empty user cannot resolve"
        user, groups = _NOBODY, (_NO_GROUP,)
    if not groups:
        try:
            groups = resolver.groups_of(user)
        except UserResolutionError as error:
            if not forced:
                return str(error)
            groups = (_NO_GROUP,)
        if not forced:
            return User(user, groups)
    if not is_user_name(user):
        return "invalid username, it contains invalid characters"
    return User(user, groups)


@final
class NoResolver:
    """The resolver for want of another: each user is in one group, which is called like the user."""

    __slots__ = ()

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the group that is called like the user."""
        return (user,)


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


_SECOND_NS: Final = 1_000_000_000


@final
class CachedResolver:
    """Another resolver with a memory: answers are kept for a while, failures for a shorter while.

    An answer past its time is asked for again at once; the recorded core went on with an old failure until
    a cleaner had come by. What an RM says about the groups of one application is not kept: it is no answer
    of the resolver. Beyond `capacity` users the oldest answer is forgotten.

    Args:
        resolver: Whom to ask.
        now_ns: A clock that never goes back, in nanoseconds.
        positive_seconds: How long groups are kept.
        negative_seconds: How long a failure is kept.
        capacity: How many users are kept.
    """

    __slots__ = ("_answers", "_capacity", "_negative_ns", "_now_ns", "_positive_ns", "_resolver")

    def __init__(
        self,
        resolver: UserResolver,
        now_ns: Callable[[], int],
        *,
        positive_seconds: int = 300,
        negative_seconds: int = 30,
        capacity: int = 10_000,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"a cache of {capacity} users keeps nothing")
        self._resolver = resolver
        self._now_ns = now_ns
        self._positive_ns = positive_seconds * _SECOND_NS
        self._negative_ns = negative_seconds * _SECOND_NS
        self._capacity = capacity
        self._answers: dict[str, tuple[int, tuple[str, ...] | str]] = {}
        """User -> until when the answer holds, and the groups or the words of the failure; oldest first."""

    def __len__(self) -> int:
        return len(self._answers)

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups of a user, from memory if the answer is fresh.

        Raises:
            UserResolutionError: The resolver does not know the user, now or a short while ago.
        """
        until_ns, answer = self._answers.get(user, (0, ""))
        if self._now_ns() < until_ns:
            if isinstance(answer, str):
                raise UserResolutionError(f"user resolution failed, cached data returned: {answer}")
            return answer
        try:
            groups = self._resolver.groups_of(user)
        except UserResolutionError as error:
            self._keep(user, str(error), self._negative_ns)
            raise
        self._keep(user, groups, self._positive_ns)
        return groups

    def forget_stale(self) -> None:
        """Forget the answers that are past their time; the owner calls this now and then."""
        now_ns = self._now_ns()
        self._answers = {user: kept for user, kept in self._answers.items() if now_ns < kept[0]}

    def _keep(self, user: str, answer: tuple[str, ...] | str, lifetime_ns: int) -> None:
        """Remember an answer as the youngest."""
        self._answers.pop(user, None)
        if len(self._answers) >= self._capacity:
            del self._answers[next(iter(self._answers))]
        self._answers[user] = (self._now_ns() + lifetime_ns, answer)

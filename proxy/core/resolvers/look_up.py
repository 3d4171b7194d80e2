"""Looking up the groups of users, before a request is sent to a partition.

It happens on the thread of the RM that made the request, while nothing is locked: a look-up that takes
long delays this request, and no scheduling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from ....actors.services.log import Log
from ....model.values.messages import ApplicationSubmission, LookedUp, LookUpFailure
from .resolver import UserResolutionError, UserResolver


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
        resolver: The resolver to ask; `None` for none.
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

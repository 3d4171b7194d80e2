"""From the user that a resource manager submits to the user the scheduler works with.

An RM may name the groups of a user, or leave them to be looked up: in the operating system, in a directory
server, in a list. A look-up can be slow, so it is made before the request reaches the partition
(`licorne.proxy.resolvers`). This module only decides what follows from the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..configuration.names import is_user_name
from ..values.users import LookedUp, LookUpFailure, User

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["resolve"]

_NOBODY: Final = "nobody"
_NO_GROUP: Final = "nogroup"


def resolve(
    submitted_user: str,
    submitted_groups: Sequence[str],
    *,
    forced: bool,
    looked_up: LookedUp,
) -> User | str:
    """Make the user of an application of what was submitted and what was looked up.

    Groups that were submitted are taken as they are, and the name must then be a valid one. Without groups
    those count that were looked up, and a name that the look-up has found may have any form. Without a
    look-up a user is in one group, which has the name of the user. A forced application is never refused
    because it has no user or no groups: it gets `nobody` or `nogroup`.

    Args:
        submitted_user: The name of the user; empty if the RM sent none.
        submitted_groups: The groups of the user; empty if the RM leaves them to be looked up.
        forced: The application must be accepted (tag `application.create.force`).
        looked_up: The result of the look-up.

    Returns:
        The user, or the reason to refuse the application.
    """
    user, groups = submitted_user, tuple(submitted_groups)
    if not user:
        if not forced:
            return "empty user cannot resolve"
        user, groups = _NOBODY, (_NO_GROUP,)
    if not groups:
        if isinstance(looked_up, LookUpFailure):
            if not forced:
                return looked_up.reason
            groups = (_NO_GROUP,)
        else:
            groups = (user,) if looked_up is None else looked_up
        if not forced:
            return User(user, groups)
    if not is_user_name(user):
        return "invalid username, it contains invalid characters"
    return User(user, groups)

"""The resolver with a fixed list."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from .resolver import UserResolutionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["StaticResolver"]


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

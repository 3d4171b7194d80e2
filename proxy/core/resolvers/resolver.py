"""The interface of a resolver, and its errors."""

from __future__ import annotations

from typing import Final, Protocol

from ....model.errors import LicorneError


class ResolverSettingsError(LicorneError):
    """A resolver cannot be made here with these settings; the text has one line for each problem."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        assert problems, "settings are refused for a reason"
        super().__init__(problems)
        self.problems: Final = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


class UserResolutionError(LicorneError):
    """The groups of a user cannot be found; the text names the user and says why."""


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

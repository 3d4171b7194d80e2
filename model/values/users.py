"""The user an application runs for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["User"]


@dataclass(frozen=True, slots=True)
class User:
    """A user and the groups that the user is in, in the order the resolver or the RM gave."""

    name: str
    groups: tuple[str, ...] = ()

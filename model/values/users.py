"""The user an application runs for, and what a look-up of groups returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class User:
    """A user and the groups that the user is in, in the order the resolver or the RM gave."""

    name: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LookUpFailure:
    """A failed look-up of groups; the application is refused with the reason."""

    reason: str


LookedUp: TypeAlias = tuple[str, ...] | LookUpFailure | None
"""Groups with the primary one first, or why there are none; `None`: there was no look-up."""

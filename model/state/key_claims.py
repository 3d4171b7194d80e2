"""Whose allocation key it is: a key of one application is none of another's while it is in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["KeyClaims"]

_BOUND_MIN: Final = 4096
"""At how many keys unused ones are searched for; then again at twice as many as are used."""


@final
class KeyClaims:
    """The allocation keys of a partition, each with the application that uses it, or has used it.

    Args:
        used_among: Given an application and some keys, returns those of the keys that it uses now.
    """

    def __init__(self, used_among: Callable[[str, Sequence[str]], Sequence[str]]) -> None:
        self._used_among = used_among
        self._claimants: dict[str, str] = {}
        self._bound = _BOUND_MIN

    def claim(self, allocation_key: str, application_id: str) -> None:
        """Note whose key it is; at times, forget the keys that no application uses any more."""
        self._claimants[allocation_key] = application_id
        if len(self._claimants) > self._bound:
            self._forget_unused()
            self._bound = max(_BOUND_MIN, 2 * len(self._claimants))

    def claimant_of(self, allocation_key: str) -> str:
        """Return the application that has last claimed a key, whether or not it uses it still."""
        return self._claimants.get(allocation_key, "")

    def owner_of(self, allocation_key: str) -> str:
        """Return the application that uses a key now, the empty text if none does."""
        name = self._claimants.get(allocation_key, "")
        return name if name and self._used_among(name, (allocation_key,)) else ""

    def _forget_unused(self) -> None:
        keys: dict[str, list[str]] = {}
        for key, name in self._claimants.items():
            keys.setdefault(name, []).append(key)
        # One question an application instead of one a key.
        self._claimants = {
            key: name for name, candidates in keys.items() for key in self._used_among(name, candidates)
        }

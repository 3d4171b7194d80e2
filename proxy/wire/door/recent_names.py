"""What the record of a partition has lately forgotten, of which its worker may still say something."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final, final

_KEPT_SECONDS: Final = 60.0
"""How long a name is kept at least: an answer that is under way for longer is of a worker that is lost."""
_FEW: Final = 4_096
"""How many names are kept however old they are."""
_NAMES_MAX: Final = 262_144
"""How many are kept in that time; of more than these nothing is known, and nothing is doubted."""


@final
class RecentNames:
    """Names of asks, applications or nodes that are gone; its owner guards it.

    There are two generations. When the younger one has many names and is old enough, the older one is
    dropped.

    Args:
        now_seconds: Returns a time that never goes back.
    """

    def __init__(self, now_seconds: Callable[[], float] = time.monotonic) -> None:
        self._now_seconds = now_seconds
        self._young: set[Hashable] = set()
        self._old: set[Hashable] = set()
        self._since = now_seconds()
        self._is_beyond = False
        """Whether more names came in this generation than are kept."""
        self._was_beyond = False

    def add(self, name: Hashable) -> None:
        """Keep a name."""
        if len(self._young) >= _FEW and self._now_seconds() - self._since >= _KEPT_SECONDS:
            self._old, self._young = self._young, set()
            self._was_beyond, self._is_beyond = self._is_beyond, False
            self._since = self._now_seconds()
        if len(self._young) < _NAMES_MAX:
            self._young.add(name)
        else:
            self._is_beyond = True

    def may_have(self, name: Hashable) -> bool:
        """Return whether a name is kept, or may have been forgotten because there were too many."""
        return name in self._young or name in self._old or self._is_beyond or self._was_beyond

    def clear(self) -> None:
        """Forget all."""
        self._young.clear()
        self._old.clear()
        self._is_beyond = self._was_beyond = False

"""Asks that the RM refused on every node, while they wait to be asked about again.

Of thousands of such asks only a few can be asked about at a time. If a cycle stopped at those whose turn has
not come, the asks behind them would never be tried; so until its turn comes the refusal of an ask holds.
Those that were asked about first are asked about again first, among the asks that cycles come to.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Final, NamedTuple, final

from .node_checks import NodeSearch

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["AGAIN_MAX", "KeptRefusals"]

AGAIN_MAX: Final = 32
"""How many questions are open at most when one is asked again: the others are for asks that are new."""


class _Refusal(NamedTuple):
    """How an ask was refused everywhere."""

    search: NodeSearch
    since_ns: int
    gains: int
    """Those of the node order at that time: with more of them another node may have room."""
    idle_count: int
    """How often the partition had been idle at that time."""


@final
class KeptRefusals:
    """The refusals of one partition."""

    def __init__(self) -> None:
        self._by_key: dict[str, _Refusal] = {}
        self._idle_count = 0
        self._old_ns = 0
        """Refusals up to then are too old."""
        self._missed: dict[str, int] = {}
        """The asks that this cycle came to and did not ask about, with the times of their refusals."""
        self._chosen: Collection[str] | None = None
        """Those whose turn it is in this cycle, `None` if it is any that comes first."""

    def begin(self, old_ns: int) -> None:
        """Begin a cycle, in which refusals up to `old_ns` are too old: choose whom to ask about again."""
        self._old_ns = old_ns
        missed, self._missed = self._missed, {}
        self._chosen = frozenset(nsmallest(AGAIN_MAX, missed, key=missed.__getitem__)) if missed else None

    def note_idle(self) -> None:
        """Note that the partition is idle: all are to be asked about again."""
        self._idle_count += 1

    def keep(self, key: str, search: NodeSearch, since_ns: int, gains: int) -> None:
        """Keep how an ask was refused."""
        self._by_key[key] = _Refusal(search, since_ns, gains, self._idle_count)

    def drop(self, key: str) -> None:
        """Forget an ask: the RM has answered about it, or it has changed."""
        self._by_key.pop(key, None)

    def find(self, key: str, gains: int | None, open_count: int) -> NodeSearch | None:
        """Return how an ask is refused for now, `None` if the RM is to be asked.

        Args:
            key: The key of the ask.
            gains: Those of the node order now; `None` if one node alone is meant.
            open_count: How many questions are open.
        """
        refusal = self._by_key.get(key)
        if refusal is None:
            return None
        is_old = refusal.since_ns <= self._old_ns or refusal.idle_count != self._idle_count
        if not is_old and gains in (None, refusal.gains):
            return refusal.search
        if open_count < AGAIN_MAX and (self._chosen is None or key in self._chosen):
            return None
        self._missed[key] = refusal.since_ns
        return refusal.search

"""Asks that the RM refused on every node, while they wait to be asked about again.

Of thousands of such asks only a few can be asked about at a time. If a cycle stopped at those whose turn has
not come, the asks behind them would never be tried; so until its turn comes the refusal of an ask holds.
Those that were asked about first are asked about again first, among the asks that cycles come to.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Collection

    from .node_checks import NodeSearch

__all__ = ["AGAIN_MAX", "KeptRefusals"]

AGAIN_MAX: Final = 32
"""How many questions are open at most when one is asked again: the others are for asks that are new."""


@final
class _Refusal:
    """How an ask was refused everywhere."""

    __slots__ = ("gains", "is_due", "search", "since_ns")

    def __init__(self, search: NodeSearch, since_ns: int, gains: int, *, is_due: bool) -> None:
        self.search = search
        self.since_ns = since_ns
        self.gains = gains
        """Those of the node order at that time: with more of them another node may have room."""
        self.is_due = is_due
        """It is too old."""


@final
class KeptRefusals:
    """The refusals of one partition."""

    def __init__(self) -> None:
        self._by_key: dict[str, _Refusal] = {}
        self._missed: dict[str, int] = {}
        """The asks that this cycle came to and did not ask about, with the times of their refusals."""
        self._chosen: Collection[str] | None = None
        """Those whose turn it is in this cycle, `None` if it is any that comes first."""

    def begin(self) -> None:
        """Begin a cycle: choose whom to ask about again."""
        missed, self._missed = self._missed, {}
        self._chosen = frozenset(nsmallest(AGAIN_MAX, missed, key=missed.__getitem__)) if missed else None

    def keep(self, key: str, search: NodeSearch, since_ns: int, gains: int, *, is_due: bool) -> None:
        """Keep how an ask was refused."""
        self._by_key[key] = _Refusal(search, since_ns, gains, is_due=is_due)

    def drop(self, key: str) -> None:
        """Forget an ask: the RM has answered about it, or it has changed."""
        self._by_key.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        self._by_key.clear()

    def make_due(self) -> None:
        """Have all asked about again."""
        for refusal in self._by_key.values():
            refusal.is_due = True

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
        if not refusal.is_due and gains in (None, refusal.gains):
            return refusal.search
        if open_count < AGAIN_MAX and (self._chosen is None or key in self._chosen):
            return None
        self._missed[key] = refusal.since_ns
        return refusal.search

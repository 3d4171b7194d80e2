"""The RM's predicates for a cycle that runs under a lock: the lock is let go of while the RM is asked.

A cycle asks only between its steps, each of which is whole, and with no other lock held. Where nobody else
had the lock meanwhile, it goes on as if nothing had happened. Otherwise it may stand in the middle of an
order that has changed: it is broken off (`WorldMovedError`) and begins anew with the answers at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, final

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..model.surroundings import Predicates

__all__ = ["Judgements", "Outside", "WorldMovedError"]

_Refused: TypeAlias = "dict[tuple[str, str, bool], str | None]"
_Indices: TypeAlias = "dict[tuple[str, str, tuple[str, ...], int], int | None]"


@final
class WorldMovedError(BaseException):
    """Something else happened in the partition while the RM was asked.

    No `Exception`, since what deals with errors in between is not to take it for one.
    """


class Outside(Protocol):
    """Who holds the partition's lock."""

    def without_lock(self) -> AbstractContextManager[None]:
        """Let go of the lock meanwhile.

        Raises:
            WorldMovedError: when it is held again, and somebody else has had it.
        """


@final
class Judgements:
    """The predicates as a partition under a lock sees them.

    Args:
        predicates: the RM's own.
    """

    def __init__(self, predicates: Predicates) -> None:
        self._predicates = predicates
        self._outside: Outside | None = None
        self._refused: _Refused = {}
        self._indices: _Indices = {}
        self._known_refused: _Refused = {}
        self._known_indices: _Indices = {}

    def begin(self, outside: Outside, *, anew: bool) -> None:
        """Begin a cycle; one that begins anew does not ask again what was answered before."""
        self._outside = outside
        self._known_refused = self._refused if anew else {}
        self._known_indices = self._indices if anew else {}
        self._refused = dict(self._known_refused)
        self._indices = dict(self._known_indices)

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return why the node is refused, `None` if it is not.

        Raises:
            WorldMovedError: the cycle is to begin anew.
        """
        question = allocation_key, node_id, allocate
        if question in self._known_refused:
            return self._known_refused[question]
        assert self._outside is not None, "a cycle asks: please report"
        with self._outside.without_lock():
            answer = self._predicates.refuse(allocation_key, node_id, allocate=allocate)
            self._refused[question] = answer
        return answer

    def preemption_index(
        self,
        allocation_key: str,
        node_id: str,
        victim_keys: tuple[str, ...],
        start_index: int,
    ) -> int | None:
        """Return the last victim that must go, `None` if none of them helps.

        Raises:
            WorldMovedError: the cycle is to begin anew.
        """
        question = allocation_key, node_id, victim_keys, start_index
        if question in self._known_indices:
            return self._known_indices[question]
        assert self._outside is not None, "a cycle asks: please report"
        with self._outside.without_lock():
            answer = self._predicates.preemption_index(*question)
            self._indices[question] = answer
        return answer

"""How often preemption is tried: bounds that keep a backlog that preemption cannot help from costing much.

An ask is tried again 15 seconds after a failed attempt, or when the time has come that the attempt named,
and a visit of a leaf makes ten attempts at most
(`licorne.model.preemption.guarantee.attempt_budget`). Asks of equal size and priority in one leaf fail for
the same reason, unless that is the RM's predicates: the result of one holds for the others until something
has changed, and for a second even then. A walk over a backlog skips the asks that share a result, except the
few that have an answer of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from ..applications.ask_walk import Candidate
from ..applications.pending_asks import CHECK_INTERVAL_NS
from ..resources.resource import Resource

if TYPE_CHECKING:
    from .partition_state import PartitionState

FAILED_ATTEMPTS_MAX: Final = 256
"""How many failed shapes are remembered; at the bound the oldest is forgotten, and tried again."""


_CHANGED_INTERVAL_NS: Final = 1_000_000_000
"""How long a failed attempt holds for other asks although something has changed since."""

ChangeStamp: TypeAlias = tuple[int, int, int]
"""Counters of the partition: equal ones mean that nothing has changed in between."""


def change_stamp(state: PartitionState) -> ChangeStamp:
    """Return the counters that say whether a failed attempt would fail again."""
    return (state.changes, state.node_changes, state.placed.allocations)


class AttemptShape(NamedTuple):
    """What decides an attempt besides the state of the partition."""

    leaf: str
    resource: Resource
    priority: int
    nodes_tried: bool
    reserved_node: str
    """The result of an ask with a reserved node holds for no other."""
    holder: tuple[str, str | None] | None = None
    """The user and the group, if their limits have no room for the ask; otherwise `None`."""


@final
class FailedAttempts:
    """Which attempts failed, and whether their results still hold for others of their shape."""

    def __init__(self) -> None:
        self._tried: dict[AttemptShape, tuple[int, int, ChangeStamp]] = {}
        """When, until when it holds while nothing changes, and the counters then."""

    def __len__(self) -> int:
        return len(self._tried)

    def note(self, shape: AttemptShape, now_ns: int, stamp: ChangeStamp, until_ns: int | None = None) -> None:
        """Remember a failed attempt, and when time alone may give another result, if that is known."""
        self._tried.pop(shape, None)
        if len(self._tried) >= FAILED_ATTEMPTS_MAX:
            del self._tried[next(iter(self._tried))]
        holds_ns = now_ns + CHECK_INTERVAL_NS if until_ns is None else until_ns
        self._tried[shape] = (now_ns, holds_ns, stamp)

    def until_ns(self, shape: AttemptShape, now_ns: int, stamp: ChangeStamp) -> int | None:
        """Return until when a failed attempt holds for this one, `None` if this one is to be made."""
        tried = self._tried.get(shape)
        if tried is None:
            return None
        tried_ns, until_ns, noted = tried
        if noted != stamp:
            until_ns = min(until_ns, tried_ns + _CHANGED_INTERVAL_NS)
        return until_ns if now_ns < until_ns else None


def due_ns(candidate: Candidate, delay_ns: int) -> int:
    """Return from when on an ask may preempt: it is old enough, and the last attempt is long enough ago."""
    due = candidate.ask.created_at_ns + delay_ns
    checked_ns = candidate.preemption_checked_ns
    return due if checked_ns is None else max(due, checked_ns + CHECK_INTERVAL_NS)

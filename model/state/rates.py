"""How often things are done at most: attempts to preempt, and events about one ask.

An ask is tried again 15 seconds after a failed attempt, or when the time has come that the attempt named,
and a visit of a leaf makes ten attempts at most
(`licorne.model.preemption.guarantee.attempt_budget`). Asks of equal size and priority in one leaf fail for
the same reason, unless that is the RM's predicates: the result of one holds for the others until something
has changed, and for a second even then. A walk over a backlog skips the asks that share a result, except the
few that have a separate answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from ..applications.ask_walk import Candidate
from ..applications.handle import ApplicationHandle
from ..applications.pending_asks import CHECK_INTERVAL_NS
from ..resources.resource import Resource
from ..values.allocation import Ask
from ..values.events import ChangeDetail, ChangeType, EventType
from ..values.facts import UnschedulableFact

if TYPE_CHECKING:
    from .partition_state import PartitionState

FAILED_ATTEMPTS_MAX: Final = 256
"""How many failed shapes are remembered; at the bound the oldest is forgotten, and tried again."""
_CHANGED_INTERVAL_NS: Final = 1_000_000_000
"""How long a failed attempt holds for other asks although something has changed since."""
ChangeStamp: TypeAlias = tuple[int, int, int]
"""Counters of the partition: equal ones mean that nothing has changed in between."""
EVENT_INTERVAL_NS: Final = 15_000_000_000
"""How long an ask that had such an event waits for the next one of its kind."""
_KEPT_MAX: Final = 1024
"""How many asks are remembered before those are dropped whose time is over."""


def change_stamp(state: PartitionState) -> ChangeStamp:
    """Return the counters that tell whether a failed attempt would fail again."""
    return (state.changes + state.local_changes, state.node_changes, state.placed.allocations)


class AttemptShape(NamedTuple):
    """The key of an attempt: it decides the result together with the state of the partition."""

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
    """The failed attempts, and whether their results still hold for others of their shape."""

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


@final
class EventRates:
    """When each ask had an event of its kind last."""

    def __init__(self) -> None:
        self._last_ns: dict[tuple[str, str], int] = {}
        self._kept_max = _KEPT_MAX

    def take(self, kind: str, allocation_key: str, now_ns: int) -> bool:
        """Return whether an event may be given now, and remember it then."""
        last_ns = self._last_ns.get((kind, allocation_key))
        if last_ns is not None and now_ns - last_ns < EVENT_INTERVAL_NS:
            return False
        if len(self._last_ns) >= self._kept_max:
            since_ns = now_ns - EVENT_INTERVAL_NS
            self._last_ns = {key: time_ns for key, time_ns in self._last_ns.items() if time_ns > since_ns}
            self._kept_max = max(_KEPT_MAX, 2 * len(self._last_ns))
        self._last_ns[kind, allocation_key] = now_ns
        return True


def report_refusals(
    state: PartitionState, application: ApplicationHandle, ask: Ask, refusals: Mapping[str, int]
) -> None:
    """Note in an application, and report, why the RM's predicates refused nodes for its ask.

    Args:
        state: The partition.
        application: The application.
        ask: The ask.
        refusals: The reasons, and for how many nodes the RM gave each.
    """
    if not refusals:
        return
    now_ns = state.now_ns()
    for reason, times in refusals.items():
        state.notes.note(application, ask.allocation_key, reason, now_ns, times)
    report = state.events.sink.report
    if report is not None and state.event_rates.take("unschedulable", ask.allocation_key, now_ns):
        report(UnschedulableFact(1, state.rm_id, now_ns, ask, tuple(sorted(refusals.items()))))


def report_no_victim(state: PartitionState, ask: Ask) -> None:
    """Report that nothing can be preempted for an ask on the only node where it may run."""
    message = (
        f"Unschedulable request '{ask.allocation_key}' with required node '{ask.required_node}', "
        "no preemption victim found"
    )
    report_of_ask(state, "no victim", (ask.application_id, ask.allocation_key), ask.resource, message)


def report_of_ask(
    state: PartitionState, kind: str, ask_id: tuple[str, str], resource: Resource, message: str
) -> None:
    """Report something about an ask in words, unless it had an event of that kind a moment ago.

    Args:
        state: The partition.
        kind: The kind of the event; for each kind an ask has a separate rate.
        ask_id: The application and the key of the ask.
        resource: Its request.
        message: The words.
    """
    application_id, key = ask_id
    if state.events.are_kept and state.event_rates.take(kind, key, state.now_ns()):
        state.events.note(
            *(ChangeType.NONE, ChangeDetail.NONE, key),
            of=EventType.REQUEST,
            reference_id=application_id,
            message=message,
            resource=resource,
        )

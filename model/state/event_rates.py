"""Events about one ask that may come often: one in 15 seconds at most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final

from ..applications.handle import ApplicationHandle
from ..resources.resource import Resource
from ..values.allocation import Ask
from ..values.events import ChangeDetail, ChangeType, EventType
from ..values.facts import UnschedulableFact

if TYPE_CHECKING:
    from .partition_state import PartitionState

EVENT_INTERVAL_NS: Final = 15_000_000_000
"""How long an ask that had such an event waits for the next one of its kind."""
_KEPT_MAX: Final = 1024
"""How many asks are remembered before those are dropped whose time is over."""


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
        kind: What the event says; for each kind an ask has a rate of its own.
        ask_id: The application and the key of the ask.
        resource: What it asks for.
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

"""Which allocations would be preempted for what an application waits for, if it were decided now."""

from __future__ import annotations

from dataclasses import dataclass

from ..applications.report import WaitingAsk
from ..preemption.acts import is_still_ending
from ..preemption.guarantee.attempt_budget import NoPreemption
from ..preemption.protection import ProtectedVictims
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.quota import may_preempt
from ..state.partition_state import PartitionState
from ..state.preemption_log import PreemptionRecord
from ..values.allocation import Ask
from ..values.refusals import RefusalReason
from .asks import AskChecker, not_entitled
from .explain import entry_blockers
from .protections import attempting, helped_by_preemption, plan_for, protected_text

ASKS_MAX = 5
"""How many asks of different shapes are decided: a decision looks at all that may be preempted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """What would be preempted for an ask, and from when on; or why nothing would be.

    The resource manager's predicates are not asked, which may refuse a node when it is decided.
    """

    allocation_key: str
    record: PreemptionRecord | None
    why_not: str
    due_ns: int | None
    """When the ask has waited for the delay of its queue; `None` if nothing would be preempted."""


def prospects(state: PartitionState, application_id: str) -> tuple[Prospect, ...]:
    """Return a prospect for the first waiting ask of each shape; nothing is changed."""
    entry = state.entries.get(application_id)
    if entry is None:
        return ()
    report = entry.application.report(first_of_shapes=True)
    blocked = {blocker.reason for blocker in entry_blockers(state, entry)} if report.waiting else set()
    checker = AskChecker(state, entry.queue, application_id, entry.user)
    shapes: dict[object, WaitingAsk] = {}
    for waiting in report.waiting:
        ask = waiting.ask
        shapes.setdefault((ask.resource, ask.priority, ask.required_node), waiting)
    found = []
    if entry.facts.gang_waits:  # One decision for all members.
        shapes = dict(list(shapes.items())[:1])
    for waiting in list(shapes.values())[:ASKS_MAX]:
        ask, members = attempting(entry, waiting.ask)
        key = ask.allocation_key
        reasons = blocked.copy()
        if not members:
            reasons |= {blocker.reason for blocker in checker.check_waiting(waiting, report).blockers}
        if not reasons:
            continue
        why = "" if may_preempt(entry.queue) else "no queue of its path has a guarantee"
        if _is_ending(state, key, application_id):
            why = "it has preempted already, and what it chose is still ending"
        why = why or _why_not(state, entry.queue, reasons, ask)
        if why:
            found.append(Prospect(allocation_key=key, record=None, why_not=why, due_ns=None))
            continue
        found.append(_prospect(state, entry, ask, plan_for(state, entry, waiting, reasons)))
    return tuple(found)


def _prospect(
    state: PartitionState,
    entry: ApplicationEntry,
    ask: Ask,
    planned: PreemptionRecord | NoPreemption | ProtectedVictims,
) -> Prospect:
    key = ask.allocation_key
    if isinstance(planned, PreemptionRecord):
        due_ns = ask.created_at_ns + entry.queue.settings.preemption_delay_ns
        return Prospect(allocation_key=key, record=planned, why_not="", due_ns=due_ns)
    if isinstance(planned, ProtectedVictims):
        why = f"{NoPreemption.PROTECTED.text}: {protected_text(planned)}"
    else:
        why = planned.text
        if planned is NoPreemption.GUARANTEE:
            why += f": {not_entitled(state, entry.queue, ask)}"
    return Prospect(allocation_key=key, record=None, why_not=why, due_ns=None)


def _is_ending(state: PartitionState, allocation_key: str, application_id: str) -> bool:
    """Return whether something ends for the ask already, so that a cycle would not preempt for it again."""
    before = state.preemptions.last_for(allocation_key, application_id)
    return before is not None and is_still_ending(state, before)


def _why_not(state: PartitionState, leaf: Queue, reasons: set[RefusalReason], ask: Ask) -> str:
    """Return why preemption is not tried at all, the empty text if it is."""
    if not state.preemption_enabled:
        return "preemption is disabled in this partition"
    if ask.required_node:
        return "it can run on one node only: victims there are chosen when that node is reserved for it"
    if not ask.allow_preempt_other:
        return "the ask does not allow others to be preempted for it"
    others = sorted(reason.value for reason in reasons - helped_by_preemption(leaf))
    return f"preemption does not change this: {', '.join(others)}" if others else ""

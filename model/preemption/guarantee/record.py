"""The record of a preemption for a guarantee: which guarantee it serves, and why each victim was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...resources.quantity_texts import resource_text
from ...state.preemption_log import PreemptionCause, PreemptionRecord
from ..acts import victim_record
from ..victims import described
from .ledger import ProjectedUsage, QueueFacts

if TYPE_CHECKING:
    from ...queues.application_entry import ApplicationEntry
    from ..victims import Victim
    from .decision import PreemptionPlan, PreemptionView

__all__ = ["record_of"]


def record_of(
    view: PreemptionView, plan: PreemptionPlan, entry: ApplicationEntry, now_ns: int
) -> PreemptionRecord:
    """Return what is remembered of a plan that has been carried out."""
    served = _with_guarantee(view.leaf)
    assert served is not None, f"{view.leaf.path} preempts without a guarantee: please report"
    ask = view.ask
    reason = (
        f"{ask.allocation_key} of {entry.application_id} asks for {resource_text(ask.resource)} "
        f"in {view.leaf.path}: {_usage(served)}, and {_obstacle(view, plan)}"
    )
    node = plan.node_id
    victims = [(victim, f"{node} would not fit the ask without it") for victim in plan.for_node]
    victims += [(victim, f"the RM wants it gone from {node} as well") for victim in plan.demanded]
    victims += [(victim, f"{view.leaf.path} would have no room without it") for victim in plan.for_queue]
    return PreemptionRecord(
        time_ns=now_ns,
        cause=PreemptionCause.GUARANTEE,
        queue_path=served.path,
        ask_queue_path=view.leaf.path,
        allocation_key=ask.allocation_key,
        application_id=entry.application_id,
        node_id=node,
        wanted=ask.resource,
        reason=reason,
        victims=tuple(victim_record(victim, _why(view, victim, need)) for victim, need in victims),
    )


def _with_guarantee(queue: QueueFacts) -> QueueFacts | None:
    """Return the lowest queue from this one up that has a guarantee: the one that is served or protected."""
    level: QueueFacts | None = queue
    while level is not None and level.guaranteed is None:
        level = level.parent
    return level


def _usage(queue: QueueFacts) -> str:
    return (
        f"{queue.path} uses {resource_text(queue.used)} of a guarantee of {resource_text(queue.guaranteed)}"
    )


def _obstacle(view: PreemptionView, plan: PreemptionPlan) -> str:
    if view.lack and plan.for_node:
        return f"neither its queues nor {plan.node_id} have room"
    return "its queues have no room" if view.lack else f"{plan.node_id} has no room"


def _why(view: PreemptionView, victim: Victim, need: str) -> str:
    facts = view.candidates.facts[victim.queue.path]
    guaranteed = ProjectedUsage(view.leaf).remaining(facts) is not None
    protected = _with_guarantee(facts) if guaranteed else None
    excess = f"nothing is guaranteed to {facts.path}" if protected is None else _usage(protected)
    return f"{excess}; {described(victim)}; the willing go first, then the youngest, and {need}"

"""The record of a preemption for an ask, and its texts: the claim, and the reasons for these victims."""

from __future__ import annotations

from ...configuration.queue_properties import PREEMPTION_WITHIN
from ...limits.usage_tree import LimitBlocker
from ...queues.application_entry import ApplicationEntry
from ...queues.queue import Queue
from ...resources.resource import Resource, resource_text, subtract, total_of
from ...state.preemption_log import (
    FramePriorities,
    Justification,
    PreemptionCause,
    PreemptionRecord,
    Preemptor,
    VictimNeed,
    VictimRecord,
    justify,
    priority_among,
)
from ..acts import ending_of, victim_record
from ..losses import first_text
from ..protection import position_of_property
from ..victims import Victim, described
from .decision import PreemptionPlan, PreemptionView
from .ledger import ProjectedUsage, QueueFacts, QueueFactsOf


def record_of(
    view: PreemptionView,
    plan: PreemptionPlan,
    entry: ApplicationEntry,
    now_ns: int,
    facts_of: QueueFactsOf,
) -> PreemptionRecord:
    """Return the record of a plan that is carried out; `facts_of` has the use of the queues."""
    ask = view.ask
    if view.inside is None:
        served = _naming(view.leaf, ask.resource)
        assert served is not None, f"{view.leaf.path} preempts without a guarantee: please report"
        cause, queue_path, claim = PreemptionCause.GUARANTEE, served.path, _usage(served)
    else:
        cause, queue_path, claim = PreemptionCause.PRIORITY, view.leaf.path, _setting(view.inside)
        claim = f"it has priority {ask.priority}, {claim}"
    node = ", ".join(dict.fromkeys(plan.node_ids))
    who = f"{ask.allocation_key} of {entry.application_id} asks"
    whom = "the ask"
    if view.members:
        who = f"the gang of {len(view.members)} of {entry.application_id} asks at once"
        whom = "all of the gang"
    reason = (
        f"{who} for {resource_text(ask.resource)} in {view.leaf.path}: {claim}, "
        f"and {_obstacle(view, plan, node)}"
    )
    full = f"{view.limits[0].kind} {view.limits[0].name}" if view.limits else view.leaf.path
    for_queue = VictimNeed.LIMIT if view.limits else VictimNeed.QUEUE
    needs = [
        (plan.for_node, VictimNeed.NODE, f"{node} would not fit {whom} without it"),
        (plan.demanded, VictimNeed.PREDICATES, f"the RM wants it gone from {node} as well"),
        (plan.for_queue, for_queue, f"{full} would have no room without it"),
    ]
    ledger = ProjectedUsage(view.leaf, ask.resource)

    def remembered(victim: Victim, need: VictimNeed, text: str) -> VictimRecord:
        gives = () if view.inside is not None else ledger.gives(view.candidates.facts[victim.queue.path])
        return victim_record(
            victim,
            _why(view, victim, text, now_ns),
            need,
            _priorities(entry.queue, ask.priority, victim),
            (name for name in gives if victim.resource.get(name) > 0),
        )

    return PreemptionRecord(
        time_ns=now_ns,
        cause=cause,
        queue_path=queue_path,
        ask_queue_path=view.leaf.path,
        allocation_key=ask.allocation_key,
        application_id=entry.application_id,
        node_id=node,
        wanted=ask.resource,
        reason=reason,
        victims=tuple(remembered(victim, need, text) for some, need, text in needs for victim in some),
        justification=_justification(view, plan, entry, facts_of),
    )


def _justification(
    view: PreemptionView, plan: PreemptionPlan, entry: ApplicationEntry, facts_of: QueueFactsOf
) -> Justification:
    leaf = entry.queue
    preemptors = [
        (Preemptor(ask.allocation_key, entry.application_id, leaf.path, node_id, ask.resource), leaf)
        for ask, node_id in zip(view.asks, plan.node_ids, strict=True)
    ]
    left = {
        node.node_id: subtract(node.available, total_of(each.resource for each in node.unclaimed))
        for node in view.candidate_nodes
        if node.node_id in plan.node_ids
    }
    return justify(
        preemptors, ending_of(plan.victims), lambda queue: facts_of(queue).used, left, plan.taken_over
    )


def _priorities(leaf: Queue, priority: int, victim: Victim) -> FramePriorities:
    """Return the priorities of an ask and a victim among the children of the first queue that both are in."""
    frame = next(level for level in victim.queue.above if level in leaf.above)
    own = victim.allocation.ask.priority
    return FramePriorities(
        frame.path, priority_among(leaf, priority, frame), priority_among(victim.queue, own, frame)
    )


def _naming(queue: QueueFacts, asked: Resource) -> QueueFacts | None:
    """Return the nearest queue from this one up with a guarantee for a requested type."""
    types = [name for name, quantity in asked.items() if quantity > 0]
    return next((level for level in queue.path_up if any(map(level.names, types))), None)


def _setting(leaf: Queue) -> str:
    """Return the setting that lets asks preempt inside a leaf, with its place."""
    position = position_of_property(leaf, PREEMPTION_WITHIN)
    where = "" if position is None else f" ({position})"
    return f"preemption.within of {leaf.path} is {leaf.settings.preemption_within.value}{where}"


def _usage(queue: QueueFacts) -> str:
    return (
        f"{queue.path} uses {resource_text(queue.used)} of a guarantee of {resource_text(queue.guaranteed)}"
    )


def _obstacle(view: PreemptionView, plan: PreemptionPlan, node: str) -> str:
    if view.limits:
        limits = " and ".join(_limit_text(limit) for limit in view.limits)
        verb = "has" if len(view.limits) == 1 else "have"
        return f"{limits} {verb} no room" + (f", nor has {node}" if plan.for_node else "")
    if view.lack and plan.for_node:
        return f"neither its queues nor {node} have room"
    verb = "have" if "," in node else "has"
    return "its queues have no room" if view.lack else f"{node} {verb} no room"


def _limit_text(limit: LimitBlocker) -> str:
    """Return a limit with its place in the configuration."""
    return f"the limit of {limit.kind} {limit.name} in {limit.queue_path} ({limit.position})"


def _why(view: PreemptionView, victim: Victim, need: str, now_ns: int) -> str:
    among = ", of those that have run long enough" if view.candidates.protected else ""
    first = f"then {first_text(victim, now_ns)}"
    jobs = "then what cuts no other gang, " if victim.gang_size else ""
    if view.inside is not None:
        whose = "" if not view.limits else f"of {view.limits[0].kind} {view.limits[0].name} "
        order = f"{whose}the willing go first, then the lowest priority, {jobs}{first}{among}"
        return f"{described(victim)}; {order}, and {need}"
    facts = view.candidates.facts[victim.queue.path]
    protected = _naming(facts, view.ask.resource)
    if protected is not None and protected.above_ask:
        protected = None
    excess = f"nothing is guaranteed to {facts.path}" if protected is None else _usage(protected)
    return f"{excess}; {described(victim)}; the willing go first, {jobs}{first}{among}, and {need}"

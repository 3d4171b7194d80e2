"""A preemption as a document: whom it ended for whom, why, and the figures by which it can be checked."""

from __future__ import annotations

from ..resources.resource import Resource
from ..state.justification import Justification, QueueBalance
from ..state.preemption_log import PreemptionRecord, VictimRecord
from ..values.documents import Document, quantities_shown


def preemption_document(record: PreemptionRecord) -> Document:
    """Return the document of a preemption, a `PreemptionDocument` of the REST interface."""
    return {
        "time": record.time_ns,
        "cause": record.cause.name,
        "queueName": record.queue_path,
        "applicationID": record.application_id,
        "allocationKey": record.allocation_key,
        "nodeID": record.node_id,
        "reason": record.reason,
        "victims": [victim_document(victim) for victim in record.victims],
        "justification": _justification(record.justification),
        "loop": record.loop,
    }


def victim_document(victim: VictimRecord) -> Document:
    """Return the document of a victim, a `VictimDocument`."""
    compared = victim.priorities
    return {
        "allocationKey": victim.allocation_key,
        "applicationID": victim.application_id,
        "queueName": victim.queue_path,
        "nodeID": victim.node_id,
        "resource": _quantities(victim.resource),
        "reason": victim.reason,
        "neededFor": victim.need.name,
        "gives": [*victim.gives],
        "priorities": None
        if compared is None
        else {"frame": compared.frame, "ask": compared.ask, "victim": compared.victim},
    }


def _justification(of: Justification) -> Document:
    return {
        "preemptors": [
            {
                "allocationKey": preemptor.allocation_key,
                "applicationID": preemptor.application_id,
                "queueName": preemptor.queue_path,
                "nodeID": preemptor.node_id,
                "resource": _quantities(preemptor.resource),
            }
            for preemptor in of.preemptors
        ],
        "queues": [_balance(queue) for queue in of.queues],
        "nodes": [
            {"nodeID": node.node_id, "before": _quantities(node.before), "after": _quantities(node.after)}
            for node in of.nodes
        ],
        "takenOver": [*of.taken_over],
    }


def _balance(queue: QueueBalance) -> Document:
    guaranteed = queue.guaranteed
    return {
        "queueName": queue.path,
        "guaranteed": None if guaranteed is None else _quantities(guaranteed),
        "owedBefore": _quantities(queue.owed(queue.before)),
        "owedAfter": _quantities(queue.owed(queue.after)),
        "aboveBefore": _quantities(queue.above(queue.before)),
        "aboveAfter": _quantities(queue.above(queue.after)),
    }


def _quantities(resource: Resource) -> Document:
    return {**quantities_shown(resource.as_dict())}

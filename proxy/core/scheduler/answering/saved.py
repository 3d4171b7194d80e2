"""The document of a saved moment: what is there, as the requests of `si.v1` that make it again.

Each request has the time at which what it makes began, in nanoseconds since 1970. A transcript is made of the
document by `licorne.proxy.play.transcripts.saved_moment`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from .....model.nodes.node import NodeFacts
from .....model.partition import Partition
from .....model.resources.comparisons import is_zero, prune
from .....model.resources.resource import subtract, total_of
from .....model.values.allocation import START_TIME_TAG, Allocation, Ask
from .....model.values.documents import Document, Json
from .....model.values.messages import (
    AllocationSubmission,
    ApplicationSubmission,
    NodeAction,
    NodeUpdate,
    short_partition_name,
)
from .....model.views.shown import SavedApplication, SavedPartition, saved_partition
from ...recording.requests import allocation_request, application_request, node_request
from .asking import ask_each

_SECOND_NS = 1_000_000_000


def saved(partitions: Sequence[Partition], configuration_text: Callable[[str], str]) -> Document:
    """Return the document of partitions.

    Args:
        partitions: Each is read in one turn of it.
        configuration_text: Returns the queues of a resource manager.
    """
    found = [
        _partition(answer) for _, answer in ask_each(partitions, lambda each: each.read(saved_partition))
    ]
    names = sorted({partition.rm_id for partition in partitions})
    return {"managers": {name: configuration_text(name) for name in names}, "partitions": [*found]}


def _partition(saved: SavedPartition) -> Document:
    rm_id = saved.rm_id
    foreign = [
        _submission(each.ask, saved.name, each.node_id) for node in saved.nodes for each in node.foreign
    ]
    return {
        "rmID": rm_id,
        "name": short_partition_name(saved.name),
        "time": saved.time_ns,
        "nodes": node_request(rm_id, [_node(facts) for facts in saved.nodes])["nodes"],
        "foreign": allocation_request(rm_id, foreign, (), ()).get("allocations", []),
        "schedulable": node_request(rm_id, [_again(facts) for facts in saved.nodes if facts.schedulable])[
            "nodes"
        ],
        "queues": [*sorted({each.shown.summary.queue_path for each in saved.applications})],
        "requests": [
            request for application in saved.applications for request in _requests(application, saved)
        ],
    }


def _node(facts: NodeFacts) -> NodeUpdate:
    """Return the creation of a node on which nothing is placed yet."""
    others = prune(subtract(facts.occupied, total_of([each.resource for each in facts.foreign])))
    return NodeUpdate(
        node_id=facts.node_id,
        action=NodeAction.CREATE_DRAIN,
        attributes=facts.attributes,
        resource=facts.capacity,
        occupied=None if is_zero(others) else others,
    )


def _again(facts: NodeFacts) -> NodeUpdate:
    """Return the update by which a node is schedulable again."""
    return NodeUpdate(
        node_id=facts.node_id,
        action=NodeAction.DRAIN_TO_SCHEDULABLE,
        attributes=facts.attributes,
        resource=None,
    )


def _requests(application: SavedApplication, saved: SavedPartition) -> Iterator[Json]:
    """Yield what makes an application and all it has: when, which request, and its body."""
    shown, rm_id = application.shown, saved.rm_id
    begun_ns = min(shown.summary.submitted_at_ns, saved.time_ns)
    new = _application(application.submission, shown.summary.queue_path, shown.summary.user.groups)
    yield [begun_ns, "application", application_request(rm_id, [new], ())]
    for allocation, _ in shown.allocations:
        at_ns = min(max(begun_ns, allocation.bound_at_ns), saved.time_ns)
        existing = _submission(_as_it_started(allocation), saved.name, allocation.node_id)
        yield [at_ns, "allocation", allocation_request(rm_id, [existing], (), ())]
    for waiting in sorted((each.ask for each in shown.asks), key=lambda ask: ask.created_at_ns):
        at_ns = min(max(begun_ns, waiting.created_at_ns), saved.time_ns)
        asked = _submission(waiting, saved.name, "")
        yield [at_ns, "allocation", allocation_request(rm_id, [asked], (), ())]


def _application(
    submission: ApplicationSubmission, queue_path: str, groups: tuple[str, ...]
) -> ApplicationSubmission:
    """Return the submission of an application to the queue where it is, with the groups that were found."""
    return replace(submission, queue_name=queue_path, groups=groups, looked_up=None)


def _as_it_started(allocation: Allocation) -> Ask:
    """Return the ask of an allocation without a tag of another start than its own."""
    ask = allocation.ask
    started = ask.tags.get(START_TIME_TAG)
    if started is None or started == str(allocation.bound_at_ns // _SECOND_NS):
        return ask
    copied = ask.resized(ask.resource)
    copied.tags = {name: text for name, text in ask.tags.items() if name != START_TIME_TAG}
    return copied


def _submission(ask: Ask, partition: str, node_id: str) -> AllocationSubmission:
    return AllocationSubmission(
        allocation_key=ask.allocation_key,
        application_id=ask.application_id,
        partition=partition,
        resource=ask.resource,
        priority=ask.priority,
        tags=ask.tags,
        node_id=node_id,
        task_group_name=ask.task_group_name,
        placeholder=ask.placeholder,
        originator=ask.originator,
        allow_preempt_self=ask.allow_preempt_self,
        allow_preempt_other=ask.allow_preempt_other,
    )

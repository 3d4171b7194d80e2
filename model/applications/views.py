"""The documents of an application, and its invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..resources.comparisons import equals
from ..resources.resource import total_of
from ..values.documents import compact, quantities_shown
from .core import application_facts

if TYPE_CHECKING:
    from ..values.allocation import Allocation, Ask
    from ..values.documents import Document, Json
    from .core import ApplicationCore
    from .pending_asks import AskRecord
    from .task_groups import TaskGroup

__all__ = [
    "ShownApplication",
    "application_summary",
    "application_view",
    "foreign_view",
    "placed_view",
    "shown_application",
    "validate_application",
]

_NOT_STARTED_MS: Final = 0
_ALLOCATION_KEEP: Final = frozenset({"allocationKey"})
_APPLICATION_KEEP: Final = frozenset(
    {"applicationID", "partition", "queueName", "resourceHistory", "usedResource"},
)


class ShownAsk(NamedTuple):
    """All that the document of a waiting ask is made of."""

    ask: Ask
    log: tuple[tuple[str, int, int], ...]
    """Text, how often, when last; the oldest first."""
    preemption_triggered: bool
    attempted: bool
    scale_up_triggered: bool


class ShownApplication(NamedTuple):
    """All that the document of an application is made of, as it was at one moment."""

    document: Document
    """The fields that an application has once."""
    asks: tuple[ShownAsk, ...]
    allocations: tuple[tuple[Allocation, bool], ...]
    """With whether each has been chosen as a victim."""


def application_view(shown: ShownApplication) -> Document:
    """Return the ApplicationInfo document."""
    document: Document = {
        **shown.document,
        "requests": [_ask_view(ask) for ask in shown.asks],
        "allocations": [
            placed_view(allocation, preempted=preempted) for allocation, preempted in shown.allocations
        ],
    }
    return compact(document, keep=_APPLICATION_KEEP)


def shown_application(core: ApplicationCore) -> ShownApplication:
    """Copy what the document of an application is made of.

    Asks and allocations are copied as they are. Making documents of them takes longer; the caller does that.
    """
    return ShownApplication(
        _document_of_its_own(core),
        tuple(_shown_ask(record) for record in core.asks.waiting()),
        tuple((placed.allocation, placed.preempted) for placed in core.holdings.placed.values()),
    )


def _document_of_its_own(core: ApplicationCore) -> Document:
    life = core.life
    reservations = core.reservations.all()
    facts = application_facts(core)
    return {
        "applicationID": core.application_id,
        "usedResource": quantities_shown(core.holdings.allocated),
        "maxUsedResource": quantities_shown(core.holdings.most_used),
        "pendingResource": quantities_shown(core.pending),
        "partition": core.partition.partition("]")[2] or core.partition,
        "queueName": core.queue_path,
        "submissionTime": facts.submitted_at_ns,
        "finishedTime": core.finished_at_ns,
        "applicationState": life.state.value,
        "user": core.user.name,
        "groups": list(core.user.groups),
        "rejectedMessage": core.rejection,
        "stateLog": [{"time": time, "applicationState": state.value} for time, state in life.log],
        "placeholderData": [_task_group_view(group) for group in core.task_groups.by_name.values()],
        "hasReserved": bool(reservations),
        "reservations": [reservation.allocation_key for reservation in reservations],
        "maxRequestPriority": facts.max_priority,
        "startTime": _NOT_STARTED_MS if life.started_at_ns is None else life.started_at_ns // 1_000_000,
        "resourceHistory": compact(
            {
                "resourceUsage": _tracked(core.holdings.used.as_dict()),
                "preemptedResource": _tracked(core.holdings.used_preempted.as_dict()),
                "placeholderResource": _tracked(core.holdings.used_placeholder.as_dict()),
            },
        ),
        "backoffDeadline": core.backoff_until_ns,
    }


def application_summary(core: ApplicationCore) -> Document:
    """Return what an application has used, in the words of the recorded core; times are milliseconds."""
    life = core.life
    times_ns = (core.submitted_at_ns, life.started_at_ns, core.finished_at_ns)
    submitted, started, finished = (None if time is None else time // 1_000_000 for time in times_ns)
    return {
        "ApplicationID": core.application_id,
        "SubmissionTime": submitted,
        "StartTime": started,
        "FinishTime": finished,
        "User": core.user.name,
        "Queue": core.queue_path,
        "State": life.state.value,
        "ResourceUsage": _tracked(core.holdings.used.as_dict()),
        "PreemptedResource": _tracked(core.holdings.used_preempted.as_dict()),
        "PlaceholderResource": _tracked(core.holdings.used_placeholder.as_dict()),
    }


def _tracked(resources: dict[str, dict[str, int]]) -> Json:
    return {instance: quantities_shown(quantities) for instance, quantities in resources.items()}


def _task_group_view(group: TaskGroup) -> Json:
    return compact(
        {
            "taskGroupName": group.name,
            "count": group.count,
            "minResource": dict(group.minimum.items()),
            "replaced": group.replaced,
            "timedout": group.timed_out,
        },
    )


def _shown_ask(record: AskRecord) -> ShownAsk:
    """Return what is shown of an ask that waits."""
    assert record.group is not None, f"ask {record.ask.allocation_key} waits in no group: please report"
    log = sorted((record.log or {}).items(), key=lambda item: item[1][1])
    return ShownAsk(
        record.ask,
        tuple((text, count, last_ns) for text, (count, last_ns) in log),
        record.preemption_triggered,
        record.group.was_attempted(record),
        record.scale_up_triggered,
    )


def _ask_view(shown: ShownAsk) -> Json:
    """Return the document of an ask that waits."""
    ask = shown.ask
    log: list[Json] = [
        {"message": text, "count": count, "lastOccurrence": last_ns} for text, count, last_ns in shown.log
    ]
    return compact(
        {
            "allocationKey": ask.allocation_key,
            "allocationTags": dict(ask.tags),
            "requestTime": ask.created_at_ns,
            "resource": dict(ask.resource.items()),
            "priority": str(ask.priority),
            "requiredNodeId": ask.required_node,
            "applicationId": ask.application_id,
            "placeholder": ask.placeholder,
            "taskGroupName": ask.task_group_name,
            "allocationLog": log,
            "triggeredPreemption": shown.preemption_triggered,
            "originator": ask.originator,
            "schedulingAttempted": shown.attempted,
            "triggeredScaleUp": shown.scale_up_triggered,
        },
        keep=_ALLOCATION_KEEP,
    )


def placed_view(allocation: Allocation, *, preempted: bool) -> Json:
    """Return the document of an allocation on its node."""
    ask = allocation.ask
    replaced = allocation.placeholder_created_at_ns
    requested = ask.created_at_ns if replaced is None else replaced
    return compact(
        {
            "allocationKey": ask.allocation_key,
            "allocationTags": dict(ask.tags),
            "requestTime": requested,
            "allocationTime": ask.created_at_ns,
            "allocationDelay": ask.created_at_ns - requested,
            "resource": dict(ask.resource.items()),
            "priority": str(ask.priority),
            "nodeId": allocation.node_id,
            "applicationId": ask.application_id,
            "placeholder": ask.placeholder,
            "placeholderUsed": replaced is not None,
            "taskGroupName": ask.task_group_name,
            "preempted": preempted,
            "originator": ask.originator,
        },
        keep=_ALLOCATION_KEEP,
    )


def foreign_view(allocation: Allocation) -> Json:
    """Return the document of a foreign allocation."""
    ask = allocation.ask
    return compact(
        {
            "allocationKey": ask.allocation_key,
            "allocationTags": dict(ask.tags),
            "allocationTime": ask.created_at_ns,
            "resource": dict(ask.resource.items()),
            "priority": str(ask.priority),
            "nodeId": allocation.node_id,
            "preemptable": ask.allow_preempt_self,
        },
        keep=_ALLOCATION_KEEP,
    )


def validate_application(core: ApplicationCore) -> None:
    """Assert that the sums equal what they sum up, and that no key is counted twice."""
    name = core.application_id
    core.asks.validate()
    pending = total_of(record.ask.resource for record in core.asks.waiting())
    assert equals(pending, core.pending), (
        f"application {name}: pending {core.pending!r} is not the sum {pending!r}"
    )
    core.holdings.validate(name)
    for key in core.holdings.placed:
        record = core.asks.get(key)
        assert record is None or record.placed, f"application {name}: {key} is placed and waits"
    if core.execution is not None:
        strays = core.execution.running().difference(core.holdings.placed)
        assert not strays, f"application {name}: the time of {sorted(strays)} runs, and they do not"

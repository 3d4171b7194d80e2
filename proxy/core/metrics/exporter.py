"""The metrics of a scheduler for Prometheus.

Names, labels and buckets are those that dashboards know. If several partitions have a queue of one path, its
values are added up: the names have no label for the partition.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from ....model.applications.effects import ApplicationState
from ....model.policies.watching import PolicyFigures
from ....model.state.counters import HistogramFigures, TimedPart, merged
from ....model.values.states import ManagerState
from ....model.views.rows import NodeRow, PartitionFigures
from ....model.views.shown import QueueView
from .families import counter, gauge, histogram, single
from .figures import MetricsSource, SchedulerFigures
from .losses import loss_families

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_STATES: Final = (ManagerState.RUNNING, ManagerState.PAUSED, ManagerState.STOPPED)
_PHASES: Final = {
    "reserved": TimedPart.RESERVED,
    "placeholder": TimedPart.PLACEHOLDER,
    "regular": TimedPart.REGULAR,
}
_NS: Final = 10**9
_ACTIVE: Final = (
    ApplicationState.NEW,
    ApplicationState.ACCEPTED,
    ApplicationState.RUNNING,
    ApplicationState.RESUMING,
    ApplicationState.FAILING,
    ApplicationState.COMPLETING,
)
_ENDED: Final = (ApplicationState.COMPLETED, ApplicationState.FAILED, ApplicationState.REJECTED)
_RANGES: Final = ("[0,10%]", *(f"({low}%,{low + 10}%]" for low in range(10, 100, 10)))
_HISTOGRAMS: Final = (
    (
        "yunikorn_scheduler_scheduling_latency_milliseconds",
        "How long a pass over a partition took",
        TimedPart.CYCLE,
    ),
    ("yunikorn_scheduler_scheduling_cycle_milliseconds", "How long a scheduling cycle took", TimedPart.CYCLE),
    (
        "yunikorn_scheduler_trynode_evaluation_milliseconds",
        "How long the nodes were searched for one ask",
        TimedPart.NODE_SEARCH,
    ),
    (
        "yunikorn_scheduler_trypreemption_latency_milliseconds",
        "How long victims were looked for",
        TimedPart.PREEMPTION,
    ),
)
_EVENTS: Final = {
    "yunikorn_event_total_created": "Events that have happened",
    "yunikorn_event_total_channeled": "Events that were kept",
    "yunikorn_event_total_not_channeled": "Events that were dropped: more happened at once than can be taken",
    "yunikorn_event_total_processed": "Events that have an id",
    "yunikorn_event_total_stored": "Events that were kept for a resource manager",
    "yunikorn_event_total_not_stored": "Events that a resource manager has not got, since its store was full",
    "yunikorn_event_total_collected": "Events that were sent to a resource manager",
}
_OF_POLICIES: Final[Sequence[tuple[str, str, Callable[[PolicyFigures], float]]]] = (
    ("licorne_policy_answers_total", "How often each policy was asked", lambda each: each.answers),
    (
        "licorne_policy_failures_total",
        "How often each policy raised, or answered with no answer",
        lambda each: each.failures,
    ),
    (
        "licorne_policy_seconds_total",
        "How long the answers of each policy took together",
        lambda each: each.total_ns / _NS,
    ),
    (
        "licorne_policy_asks_without_class_total",
        "How often an ask was placed by the order of all asks, as 16 classes had an order",
        lambda each: each.without_class,
    ),
    (
        "licorne_policy_longest_seconds",
        "How long the slowest answer of each policy took",
        lambda each: each.longest_ns / _NS,
    ),
)


class SchedulerCollector:
    """A collector of prometheus-client: it asks the scheduler at each scrape, and keeps nothing.

    A program with its own registry can register it there; prometheus-client's own text gives some
    counters the ending `_total`, which `exposition` does not.
    """

    def __init__(self, source: MetricsSource) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        """Return the families of one scrape.

        Raises:
            RequestError: the scheduler has been stopped.
        """
        figures = self._source.figures()
        yield from shared_families(figures)
        yield from _own_families(figures)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: which families there are depends on queues and resources."""
        return ()


def registry_of(source: MetricsSource) -> CollectorRegistry:
    """Return a registry with the metrics of one scheduler, of its process and of Python."""
    registry = process_registry()
    registry.register(SchedulerCollector(source))
    return registry


def process_registry() -> CollectorRegistry:
    """Return a registry with the metrics of this process and of Python alone."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def exposition(source: MetricsSource) -> tuple[bytes, str]:
    """Return the metrics of a scheduler as a text for Prometheus, and its content type.

    Raises:
        RequestError: the scheduler has been stopped.
    """
    return text_of(registry_of(source).collect()).encode(), CONTENT_TYPE


def text_of(families: Iterable[Metric]) -> str:
    """Return families as a text for Prometheus, by name."""
    ordered = sorted(families, key=lambda family: family.name)
    return "".join(line for family in ordered for line in _lines(family))


def _own_families(figures: SchedulerFigures) -> Iterator[Metric]:
    """Return the families that the recorded core does not have."""
    yield from _load_families(figures)
    yield from _manager_families(figures)
    yield from _event_families(figures)
    yield from loss_families(figures)
    if figures.policies:
        yield from _policy_families(figures.policies)
    yield gauge(
        "licorne_quarantined",
        "Applications and nodes that broke by a bug of Licorne, and are excluded",
        "partition",
        {partition.name: partition.quarantined for partition in figures.current},
    )


def _policy_families(policies: Mapping[str, PolicyFigures]) -> Iterator[Metric]:
    """Return what policies have answered, where there are any."""
    for name, text, value in _OF_POLICIES:
        family = counter if name.endswith("_total") else gauge
        values = {policy: value(figures) for policy, figures in policies.items()}
        yield family(name, text, "policy", values)


def _load_families(figures: SchedulerFigures) -> Iterator[Metric]:
    """Return how long asks and cycles take, and what waits for a thread."""
    yield histogram(
        "licorne_ask_latency_seconds",
        "From the creation of an ask, as its resource manager says, to its placement",
        [({}, merged(partition.waits for partition in figures.partitions))],
    )
    yield histogram(
        "licorne_cycle_phase_seconds",
        "How long the passes of a cycle took; of eight cycles one is timed so",
        [
            ({"phase": phase}, merged(partition.times[part] for partition in figures.partitions))
            for phase, part in _PHASES.items()
        ],
    )
    load = figures.load
    yield gauge(
        "licorne_dispatcher_threads",
        "Threads that run partitions, applications and nodes, and how many of them wait",
        "state",
        {"all": load.threads, "waiting": load.threads_waiting},
    )
    yield single("licorne_dispatcher_queue", "Mailboxes or partitions that wait for a thread", load.queued)
    yield gauge("licorne_mailbox_messages", "Messages that wait for a partition", "partition", load.messages)


def _manager_families(figures: SchedulerFigures) -> Iterator[Metric]:
    """Return the state of each resource manager, and its callbacks."""
    managers = figures.managers.items()
    yield gauge(
        "licorne_manager",
        "The state of each resource manager: 1 for the one that it is in",
        ("rm", "state"),
        {
            (rm_id, state.value.lower()): int(manager.state is state)
            for rm_id, manager in managers
            for state in (_STATES if manager.state is not None else ())
        },
    )
    yield gauge(
        "licorne_link_backlog",
        "Callbacks that wait for their resource manager",
        "rm",
        {rm_id: manager.callbacks_waiting for rm_id, manager in managers},
    )
    yield gauge(
        "licorne_link_failures",
        "Callbacks that have raised since the resource manager registered",
        "rm",
        {rm_id: manager.callbacks_failed for rm_id, manager in managers},
    )


def _event_families(figures: SchedulerFigures) -> Iterator[Metric]:
    """Return the streams of events."""
    events = figures.events
    yield single("licorne_event_streams", "Streams of events that are open", events.streams)
    yield single(
        "licorne_event_streams_dropped",
        "Streams of events that ended because their readers were too slow",
        events.streams_dropped,
    )
    yield single(
        "licorne_event_lost_to_streams", "Events that such readers have not got", events.lost_to_streams
    )


def _lines(family: Metric) -> Iterator[str]:
    """Return the lines of a family; one of prometheus-client's own counters ends in `_total`, as there."""
    ours = any(sample.name == family.name for sample in family.samples)
    name = family.name if ours or family.type != "counter" else f"{family.name}_total"
    text = family.documentation.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {name} {text}\n"
    yield f"# TYPE {name} {family.type}\n"
    yield from map(_line, family.samples)


def _line(sample: Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
    return f"{sample.name}{f'{{{labels}}}' if labels else ''} {_number(sample.value)}\n"


def _number(value: float) -> str:
    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]  # it has no types
    return text


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def shared_families(figures: SchedulerFigures) -> Iterator[Metric]:
    """Return the families of one scrape."""
    yield from (
        single(name, text, getattr(figures.events, name.removeprefix("yunikorn_event_total_")))
        for name, text in _EVENTS.items()
    )
    yield from _counts(figures)
    yield from _applications_and_nodes(figures)
    yield from _times(figures)
    yield from _node_usage([node for partition in figures.current for node in partition.nodes])
    yield from _queue_applications(figures)
    yield from _queue_resources([queue for partition in figures.current for queue in partition.queues])
    yield from _queue_containers(figures.partitions)


def _counts(figures: SchedulerFigures) -> Iterator[Metric]:
    counts = figures.counts
    yield counter(
        "yunikorn_scheduler_container_allocation_attempt_total",
        "Allocations that were reported to resource managers, and requests for some that were refused",
        "state",
        {
            "allocated": sum(each.placed for each in counts),
            "rejected": sum(each.rejected for each in counts),
            "error": sum(each.rejected for each in counts),
            "released": sum(each.released for each in counts),
        },
    )
    yield counter(
        "yunikorn_scheduler_application_submission_total",
        "Applications that came: taken into a queue, accepted for scheduling, or rejected",
        "result",
        {
            "new": sum(each.applications_new for each in counts),
            "accepted": sum(each.applications_accepted for each in counts),
            "rejected": sum(each.applications_rejected for each in counts),
        },
    )


def _applications_and_nodes(figures: SchedulerFigures) -> Iterator[Metric]:
    states: Counter[ApplicationState] = Counter()
    active = [partition.active for partition in figures.current]
    for counted in (*active, *(partition.ended for partition in figures.partitions)):
        for (_, state), count in counted.items():
            states[state] += count
    shown = (*_ACTIVE[2:], ApplicationState.COMPLETED, ApplicationState.FAILED)
    yield gauge(
        "yunikorn_scheduler_application_total",
        "Applications by state; completed and failed: all since the partition was made",
        "state",
        {state.value.lower(): states[state] for state in shown},
    )
    nodes = [node for partition in figures.current for node in partition.nodes]
    yield gauge(
        "yunikorn_scheduler_node",
        "Nodes: active ones, those of them that drain; refused for want of a partition; removed",
        "state",
        {
            "active": len(nodes),
            "draining": sum(not node.schedulable for node in nodes),
            "failed": sum(counts.nodes_failed for counts in figures.counts),
            "decommissioned": sum(partition.nodes_removed for partition in figures.partitions),
        },
    )


def _times(figures: SchedulerFigures) -> Iterator[Metric]:
    def timed(part: TimedPart) -> HistogramFigures:
        return merged(partition.times[part] for partition in figures.partitions)

    for name, text, part in _HISTOGRAMS:
        yield histogram(name, f"{text}, in seconds", [({}, timed(part))])
    yield histogram(
        "yunikorn_scheduler_node_sorting_latency_milliseconds",
        "How long the order of queues and applications was brought up to date, in seconds",
        [
            ({"level": "app"}, timed(TimedPart.APPLICATION_ORDER)),
            ({"level": "queue"}, timed(TimedPart.QUEUE_ORDER)),
        ],
    )
    predicates = merged(manager.counts.predicates for manager in figures.managers.values())
    yield histogram(
        "yunikorn_scheduler_trynode_latency_milliseconds",
        "How long each predicate of a resource manager took, in seconds",
        [({}, predicates)],
    )


def _node_usage(nodes: Sequence[NodeRow]) -> Iterator[Metric]:
    """Return for each type of resource how many nodes use how much of theirs."""
    usage: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(_RANGES))
    for node in nodes:
        for name, total in node.capacity.items():
            if total > 0:
                used = total - node.available.get(name, 0)
                # The tenth part that the share falls into, each with its upper border.
                index = -(-10 * used // total) - 1
                usage[_sanitised(name)][min(max(index, 0), len(_RANGES) - 1)] += 1
    for name, counts in sorted(usage.items()):
        yield gauge(
            f"yunikorn_scheduler_{name}_node_usage_total",
            f"Nodes by how much of their {name} is used",
            "range",
            dict(zip(_RANGES, counts, strict=True)),
        )


def _queue_applications(figures: SchedulerFigures) -> Iterator[Metric]:
    active: Counter[tuple[str, ApplicationState]] = Counter()
    ended: Counter[tuple[str, ApplicationState]] = Counter()
    for partition in figures.current:
        for queue in partition.queues:
            if queue.is_leaf:
                active.update({(queue.path, state): 0 for state in _ACTIVE})
        active.update(partition.active)
    for partition in figures.partitions:
        ended.update(partition.ended)
    rows = sorted((*active.items(), *ended.items()), key=lambda row: (row[0][0], row[0][1].value))
    counts = {(path, state.value.lower()): count for (path, state), count in rows}
    totals = {(path, state.value.lower()): count for (path, state), count in rows if state in _ENDED}
    labels = ("queue", "state")
    yield gauge("yunikorn_queue_app", "Applications of a queue by state", labels, counts)
    text = "Applications of a queue that have ended, by state"
    yield counter("yunikorn_queue_app_total", text, labels, totals)


def _queue_resources(queues: Sequence[QueueView]) -> Iterator[Metric]:
    amounts: Counter[tuple[str, str, str]] = Counter()
    for queue in queues:
        amounts[queue.path, "apps", "maxRunningApps"] += queue.max_applications
        used = {"allocated": queue.allocated, "pending": queue.pending}
        others = {"guaranteed": queue.guaranteed, "max": queue.maximum, "preempting": queue.preempting}
        for kind, resource in (*others.items(), *used.items()):
            for name, quantity in () if resource is None else resource.items():
                amounts[queue.path, name, kind] += quantity
                for always in used:  # So that an expression such as used over maximum has a value.
                    amounts[queue.path, name, always] += 0
    text = "Quotas of a queue, and what is used and waits there"
    labels = ("queue", "resource", "state")
    yield gauge("yunikorn_queue_resource", text, labels, dict(sorted(amounts.items())))


def _queue_containers(partitions: Sequence[PartitionFigures]) -> Iterator[Metric]:
    containers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for partition in partitions:
        for queue in partition.queues:
            if queue.is_leaf:
                counts = containers[f"yunikorn_{_sanitised(queue.path)}_queue_container"]
                placed, ended = (
                    part.get(queue.path, 0) for part in (partition.placed_in, partition.ended_in)
                )
                counts.update(allocated=placed, released=ended)
    for name, counts in sorted(containers.items()):
        yield counter(name, "Allocations that came to the queue, and that ended there", "state", counts)


def _sanitised(name: str) -> str:
    """Return a text as a part of the name of a metric."""
    plain = re.sub("[^a-zA-Z0-9_:]", "_", name)
    return f"_{plain}" if plain[:1].isdigit() else plain

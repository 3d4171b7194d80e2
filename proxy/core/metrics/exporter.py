"""The metrics of a scheduler for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from ....model.state.counters import TimedPart, merged
from ....model.values.states import ManagerState
from .families import gauge, histogram, shared_families, single
from .figures import MetricsSource, SchedulerFigures

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_STATES: Final = (ManagerState.RUNNING, ManagerState.PAUSED, ManagerState.STOPPED)
_PHASES: Final = {
    "reserved": TimedPart.RESERVED,
    "placeholder": TimedPart.PLACEHOLDER,
    "regular": TimedPart.REGULAR,
}


class SchedulerCollector:
    """A collector of prometheus-client: it asks the scheduler at each scrape, and keeps nothing.

    A program that has a registry of its own can register it there; prometheus-client's own text gives some
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
    yield gauge(
        "licorne_quarantined",
        "Applications and nodes that broke by a bug of Licorne, and are excluded",
        "partition",
        {partition.name: partition.quarantined for partition in figures.current},
    )


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
    family = Metric(
        "licorne_manager", "The state of each resource manager: 1 for the one that it is in", "gauge"
    )
    for rm_id, manager in managers:
        for state in _STATES if manager.state is not None else ():
            labels = {"rm": rm_id, "state": state.value.lower()}
            family.add_sample(family.name, labels, int(manager.state is state))
    yield family
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

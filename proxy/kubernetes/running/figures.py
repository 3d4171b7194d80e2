"""The figures of the scheduler of pods, and their metrics.

Counters are changed by one thread and read by any: their keys are all there from the start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, final

from ....model.state.counters import Histogram
from ...si import si_pb2 as si
from ..client.api_client import ApiClient
from .tasks import PhaseEvent, PodTask, TaskEvent, TaskState

if TYPE_CHECKING:
    from prometheus_client import Metric

    from .pod_scheduler import PodScheduler

_NANOSECONDS: Final = 1e9
_TIMED: Final = (TaskState.NEW, TaskState.ASKED, TaskState.BINDING)
"""The states in which a pod waits for its node."""


@final
class PodFigures:
    """Counts events of pods and applications, and times the states of pods."""

    def __init__(self) -> None:
        self.task_events = dict.fromkeys(TaskEvent, 0)
        self.application_events = dict.fromkeys(PhaseEvent, 0)
        self.endings = dict.fromkeys(si.TerminationType.keys(), 0)
        """How many pods the scheduler has ended, by the reason."""
        self.state_times = {state: Histogram() for state in _TIMED}
        """How long pods were in the states that they have left."""

    def note(self, task: PodTask, event: TaskEvent, target: TaskState, now: float) -> None:
        """Count an event before it changes the state of a task.

        Args:
            task: The task.
            event: The event.
            target: The next state.
            now: The time, in seconds.
        """
        self.task_events[event] += 1
        if target is not task.state:
            times = self.state_times.get(task.state)
            if times is not None:
                times.add(round((now - task.since) * _NANOSECONDS))
            task.since = now


def pod_metrics(pods: PodScheduler, client: ApiClient, *, leads: bool) -> Iterator[Metric]:
    """Return the metrics of the scheduler of pods, which the scheduler below does not have."""
    from ...core.metrics.families import (  # noqa: PLC0415 - loads `prometheus_client`
        counter,
        gauge,
        histogram,
        single,
    )

    figures = pods.figures
    yield single("licorne_kubernetes_leader", "Whether this process schedules", int(leads))
    states = Counter(task.state.value.lower() for task in list(pods.tasks.values()))
    yield gauge("licorne_kubernetes_pods", "Our pods that have not ended, by state", "state", states)
    yield counter(
        "licorne_kubernetes_pod_events_total",
        "Events of our pods",
        "event",
        {event.name.lower(): count for event, count in figures.task_events.items()},
    )
    yield counter(
        "licorne_kubernetes_application_events_total",
        "Events of applications",
        "event",
        {event.name.lower(): count for event, count in figures.application_events.items()},
    )
    yield counter(
        "licorne_kubernetes_pod_endings_total",
        "Pods that the scheduler has ended, by the reason",
        "reason",
        {name.lower(): count for name, count in figures.endings.items()},
    )
    yield histogram(
        "licorne_kubernetes_pod_state_seconds",
        "How long pods were in the states that they have left",
        [({"state": state.value.lower()}, times.figures()) for state, times in figures.state_times.items()],
    )
    requests: Mapping[tuple[str, str], int] = client.request_counts
    labels, text = ("method", "code"), "Requests to the API server"
    yield counter("licorne_kubernetes_api_requests_total", text, labels, requests)
    yield counter(
        "licorne_kubernetes_lists_total", "Lists of all objects of a kind", "kind", pods.list_counts
    )
    yield gauge(
        "licorne_kubernetes_objects_left_out",
        "Objects of the cluster that are left out because they cannot be read",
        "kind",
        pods.left_out,
    )

"""The shared parts of a running scheduler of pods, and the events of its tasks and applications.

The parts carry out an event: they change the state by the table in `life`, and call the effects of the row in
their order. An effect may be the cause of further events; these are carried out at once, before the effects
that follow.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, final

from ..client.api_calls import ApiCalls
from ..mapping.settings import KubernetesSettings
from ..predicates.verdicts import PodFilters
from .cache import ClusterCache
from .event_loop import EventLoop, RequestBatch
from .figures import PodFigures
from .manager import Reconsidering
from .pod_actions import PodActions, VolumeBinding
from .reporting import Reporter
from .tasks import (
    LastRejection,
    PhaseEvent,
    PodApplication,
    PodApplicationPhase,
    PodTask,
    TaskEvent,
    TaskState,
)

TaskEffect: TypeAlias = "Callable[[SharedParts, PodTask, str], None]"
ApplicationEffect: TypeAlias = "Callable[[SharedParts, PodApplication, str], None]"


TaskTable: TypeAlias = Mapping[tuple[TaskState, TaskEvent], tuple[TaskState, tuple[TaskEffect, ...]]]
"""The next state and the effects by state and event."""
ApplicationTable: TypeAlias = Mapping[
    tuple[PodApplicationPhase, PhaseEvent], tuple[PodApplicationPhase, tuple[ApplicationEffect, ...]]
]


def _nothing(_: PodTask) -> None:
    """Do nothing."""


@final
@dataclass(slots=True)
class SharedParts:
    """The settings, the known cluster, the requests, the actions and the reports; used by one thread."""

    settings: KubernetesSettings
    cache: ClusterCache
    loop: EventLoop
    requests: RequestBatch
    calls: ApiCalls
    actions: PodActions
    reporter: Reporter
    reconsidering: Reconsidering
    figures: PodFigures
    task_table: TaskTable
    application_table: ApplicationTable
    on_asked: Callable[[PodTask], None] = _nothing
    """Is called with each requested task."""
    tasks: dict[str, PodTask] = field(default_factory=dict)
    """All tasks that have not ended, by key."""
    blocked: dict[str, PodTask] = field(default_factory=dict)
    """The tasks that wait for claims."""
    applications: dict[str, PodApplication] = field(default_factory=dict)
    """The applications with pods, and those that the scheduler has not completed yet, by id."""
    rejections: dict[str, LastRejection] = field(default_factory=dict)
    """The last rejections of applications by id, also of those whose pods are gone."""
    failed: dict[str, None] = field(default_factory=dict)
    """The last applications that have failed, by id, for those that wait for how they end."""
    has_begun: bool = False
    """Whether objects may arrive that were not listed at the start: an unknown namespace, for example."""
    random: random.Random = field(default_factory=random.Random)
    """Makes the ends of names."""
    filters: PodFilters = field(init=False)
    volumes: VolumeBinding = field(init=False)

    def __post_init__(self) -> None:
        """Make the parts that depend on the others, and receive the outcomes of the actions."""
        self.filters = PodFilters(self.cache)
        self.volumes = VolumeBinding(
            self.loop, self.cache, self.calls, self.settings.volume_bind_timeout_ns, self
        )
        self.actions.events = self

    def task_event(self, task: PodTask, event: TaskEvent, detail: str = "") -> None:
        """Carry out an event of a task; the detail is a node or a reason."""
        step = self.task_table.get((task.state, event))
        if step is not None:
            target, effects = step
            self.figures.note(task, event, target, self.loop.now())
            task.state = target
            for effect in effects:
                effect(self, task, detail)

    def application_event(self, application: PodApplication, event: PhaseEvent, detail: str = "") -> None:
        """Carry out an event of an application; the detail is a reason."""
        step = self.application_table.get((application.phase, event))
        if step is not None:
            self.figures.application_events[event] += 1
            application.phase, effects = step
            for effect in effects:
                effect(self, application, detail)

    def lose_pod(self, task: PodTask) -> None:
        """Handle a pod that the API server no longer has; the watch reports it too, sooner or later."""
        self.cache.remove_pod(task.key)
        self.task_event(task, TaskEvent.END)

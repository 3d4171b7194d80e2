"""The scheduler of pods with its threads: the watches, and the thread that carries out all events."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, final

from ....actors.services.log import Log
from ..client.api_calls import ApiCalls
from ..client.api_client import ApiClient
from ..client.list_watch import ListWatch, WatchedResource
from ..mapping.pod_groups import GROUP_KINDS
from ..objects import ConfigMap
from .coordinator import CLUSTER_KINDS, Coordinator, PodSchedulerOptions
from .event_loop import EventThread
from .figures import PodFigures
from .reporting import OBJECT_KINDS
from .tasks import PodTask

if TYPE_CHECKING:
    from ...core.scheduler.scheduler import Scheduler
    from ...wire.client.remote_scheduler import RemoteScheduler

_OPTIONAL: Final = frozenset(each.kind for each in GROUP_KINDS)
"""The kinds that not every cluster has."""


@final
class PodScheduler:
    """Schedules the pods of a cluster, from `start` to `stop`.

    Args:
        scheduler: The scheduler that places the pods; it is not stopped at the end.
        client: The API server.
        options: The options of the command line.
        log: The log for failures.
    """

    def __init__(
        self,
        scheduler: Scheduler | RemoteScheduler,
        client: ApiClient,
        options: PodSchedulerOptions,
        log: Log | None = None,
    ) -> None:
        self._log = log if log is not None else Log()
        self._loop = EventThread()
        self._coordinator = Coordinator(scheduler, self._loop, ApiCalls(client), options, self._log)
        maps = (ConfigMap, f"/api/v1/namespaces/{options.namespace}/configmaps")
        kinds: tuple[tuple[type[Any], str], ...] = (*CLUSTER_KINDS, maps)
        self._watches = {kind: self._watch(client, kind, path) for kind, path in kinds}

    def _watch(self, client: ApiClient, kind: type[Any], path: str) -> ListWatch[Any]:
        loop, coordinator = self._loop, self._coordinator
        return ListWatch(
            client,
            WatchedResource(path, kind),
            on_list=lambda items, _: loop.post(coordinator.listed, kind, items),
            on_events=lambda changes: loop.post(coordinator.changed, kind, changes),
            on_missing=(lambda: loop.post(coordinator.listed, kind, None)) if kind in _OPTIONAL else None,
            log=self._log,
        )

    @property
    def is_ready(self) -> bool:
        """Whether it schedules: it leads, and the scheduler knows the whole cluster."""
        return self._coordinator.is_ready

    @property
    def tasks(self) -> Mapping[str, PodTask]:
        """Our pods that have not ended, by uid; another thread changes them."""
        return self._coordinator.tasks

    @property
    def figures(self) -> PodFigures:
        """The counts and times of pods."""
        return self._coordinator.figures

    @property
    def list_counts(self) -> Mapping[str, int]:
        """How often all objects were listed, by kind."""
        counts: Counter[str] = Counter()
        for kind, watch in self._watches.items():
            counts[OBJECT_KINDS[kind].name] += watch.list_count
        return counts

    @property
    def left_out(self) -> Mapping[str, int]:
        """The number of objects that are left out as unreadable, by kind."""
        return self._coordinator.left_out

    @property
    def start_failure(self) -> str:
        """Why the last attempt to begin failed; empty if none failed, or it has begun."""
        return self._coordinator.start_failure

    @property
    def is_listed(self) -> bool:
        """Whether it has the whole cluster, so that it could schedule at once."""
        return self._coordinator.is_listed

    def answers_within(self, seconds: float) -> bool:
        """Return whether its thread carries out posted calls within this time."""
        answered = threading.Event()
        self._loop.post(answered.set)
        return answered.wait(seconds)

    def start(self) -> None:
        """Watch the cluster, and schedule when everything is listed and it leads."""
        self._loop.start(on_idle=self._coordinator.flush, on_error=self._coordinator.note_error)
        for watch in self._watches.values():
            watch.start()

    def lead(self) -> None:
        """Begin to lead: this process schedules from now on."""
        self._loop.post(self._coordinator.lead)

    def stop(self) -> None:
        """Stop watching, finish the calls in progress, and start no others."""
        for watch in self._watches.values():
            watch.stop()
        self._loop.stop()

    def stop_acting(self) -> None:
        """Stop changing the cluster: another process schedules."""
        self._coordinator.stop_acting()

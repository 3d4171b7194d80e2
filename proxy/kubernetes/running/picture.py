"""The present cluster on a separate scheduler: to explain placements, and to try a new pod."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar, final

import msgspec

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ...core.explanation.text import TextLine, lines_of
from ...core.scheduler.scheduler import Scheduler
from ..client.api_calls import ApiCalls
from ..client.api_client import ApiClient
from ..client.list_watch import ListWatch, WatchChange, WatchedResource, is_missing_kind
from ..manifests import PodManifest
from ..mapping.pod_groups import GROUP_KINDS
from ..objects import ConfigMap, KubernetesEvent, Pod
from .coordinator import CLUSTER_KINDS, Coordinator, PodSchedulerOptions
from .reporting import words_of_pods
from .tasks import PodApplicationPhase, PodTask, TaskState

T = TypeVar("T")
_BIND_FAILURES = ("PodBindFailure", "PodVolumesBindFailure")
_ROUNDS_MAX = 100
"""The maximum number of turns of the scheduler and its parts; both are idle long before."""


class PodMissingError(LicorneError):
    """The cluster does not have a pod with this name."""


@final
class _StillLoop:
    """Carries out posted calls on request; it drops calls of the API server and timers."""

    def __init__(self) -> None:
        self._posted: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()

    def now(self) -> float:
        return 0.0

    def unix_seconds(self) -> float:
        return time.time()

    def post(self, call: Callable[..., None], *args: Any) -> None:
        self._posted.append((call, args))

    def later(self, seconds: float, call: Callable[..., None], *args: Any) -> None:
        """Drop the call: no time passes."""

    def work(
        self, call: Callable[[], T], then: Callable[[T | Exception], None], *, is_urgent: bool = True
    ) -> None:
        """Drop the call: nothing is changed in the cluster."""

    def carry_out(self) -> bool:
        """Carry out all posted calls; return whether there were any."""
        had_any = bool(self._posted)
        while self._posted:
            call, args = self._posted.popleft()
            call(*args)
        return had_any


@final
class ClusterPicture:
    """Reads the whole cluster once, and places the waiting pods as the scheduler would.

    Nothing is changed in the cluster. The cluster contains all that decides, except the times at which the
    scheduler saw the objects: it may place pods of equal rank in another order.

    Args:
        client: The API server.
        options: The options of the scheduler.

    Raises:
        LicorneError: The cluster cannot be read, or its configuration is refused.
    """

    def __init__(self, client: ApiClient, options: PodSchedulerOptions) -> None:
        # No pod is created, so the scheduler keeps the room of gangs itself.
        defaults = replace(options.defaults, placeholder_pods=False)
        self._options = options = replace(options, defaults=defaults, is_real=False)
        self._client = client
        self._calls = ApiCalls(client)
        self._scheduler = Scheduler(engine="direct", policies=options.policies)
        self._loop = _StillLoop()
        self._coordinator = Coordinator(self._scheduler, self._loop, self._calls, options, Log())
        maps = (ConfigMap, f"/api/v1/namespaces/{options.namespace}/configmaps")
        kinds: list[tuple[type[Any], str]] = [*CLUSTER_KINDS, maps]
        lists = {kind: _read_list(client, kind, path) for kind, path in kinds}
        self._pods = {pod.full_name: pod for pod in lists[Pod] or () if isinstance(pod, Pod)}
        for kind, items in lists.items():
            self._coordinator.listed(kind, items)
        self._come_to_rest()
        if not self._coordinator.is_ready:
            raise LicorneError(f"the cluster cannot be placed: {self._coordinator.start_failure}")

    def explain(self, full_name: str) -> Iterator[TextLine]:
        """Return where a pod is, or why it waits.

        Args:
            full_name: `<namespace>/<name>`.

        Raises:
            PodMissingError: The pod does not exist.
        """
        pod = self._pods.get(full_name)
        if pod is None:
            raise PodMissingError(f"the cluster has no pod {full_name}")
        yield from self._lines(pod)
        yield from self._failed_binds(pod)

    def _failed_binds(self, pod: Pod) -> Iterator[TextLine]:
        """Return the events of binds of a waiting pod that have failed: they would fail again."""
        if pod.spec.node_name or pod.is_terminal:
            return
        path = f"/apis/events.k8s.io/v1/namespaces/{pod.metadata.namespace}/events"
        for event in _read_list(self._client, KubernetesEvent, path) or ():
            if event.reason in _BIND_FAILURES and event.regarding.uid == pod.metadata.uid:
                yield TextLine(f"{event.reason}: {event.note}", 1, "red")

    def try_pod(self, manifest: PodManifest) -> Iterator[TextLine]:
        """Return where a pod would run, or why it would wait, if it were created now.

        The API server completes the pod: defaults, limits of the namespace, priority, overhead and webhooks.

        Raises:
            ApiError: The API server would not create the pod.
        """
        seen = self._calls.create_pod(manifest.namespace, manifest.document, is_dry_run=True)
        uid = f"dry-run-{manifest.namespace}-{manifest.name}"
        # Without a time it is created now by the clock of this process, whatever that of the server is.
        metadata = msgspec.structs.replace(seen.metadata, name=manifest.name, uid=uid, creation_timestamp="")
        new = msgspec.structs.replace(seen, metadata=metadata)
        self._coordinator.changed(Pod, [(WatchChange.ADDED, new)])
        self._come_to_rest()
        yield from self._lines(new)

    def _come_to_rest(self) -> None:
        """Let the scheduler and its parts take turns until both are idle."""
        for _ in range(_ROUNDS_MAX):
            self._coordinator.flush()
            placed = self._scheduler.run_until_idle()
            if not self._loop.carry_out() and not placed:
                return

    def _lines(self, pod: Pod) -> Iterator[TextLine]:
        task = self._coordinator.tasks.get(pod.metadata.uid)
        if task is None:
            yield TextLine(f"{pod.full_name} {self._why_no_task(pod)}")
            return
        application = task.application
        if task.node_name and task.state is not TaskState.ORPHAN:
            verb = "runs" if pod.spec.node_name else "fits"
            yield TextLine(f"{pod.full_name} {verb} on node {task.node_name}", style="bold green")
            yield TextLine(f"application {application.application_id}", 1)
        elif task.state is TaskState.ASKED:
            yield TextLine(f"{pod.full_name} waits", style="bold yellow")
            yield from self._explained(task)
        else:
            yield TextLine(f"{pod.full_name} waits: {self._why_not_asked(task)}", style="bold yellow")
            waiting = (each for each in application.placeholders if each.state is TaskState.ASKED)
            for placeholder in islice(waiting, 1):
                yield from self._explained(placeholder)

    def _explained(self, task: PodTask) -> Iterator[TextLine]:
        """Return why a task waits for a node."""
        explanation = self._scheduler.explain_ask(task.application.application_id, task.key)
        for line in lines_of(explanation, lambda position: f"line {position.line} of the queues"):
            yield line._replace(text=words_of_pods(line.text))

    def _why_no_task(self, pod: Pod) -> str:
        ours, own = self._options.defaults.scheduler_name, pod.spec.scheduler_name
        if own != ours:
            return f"is for the scheduler {own!r}, not {ours!r}"
        if pod.is_terminal:
            return f"has ended: {pod.status.phase}"
        return f"waits for scheduling gates: {', '.join(gate.name for gate in pod.spec.scheduling_gates)}"

    def _why_not_asked(self, task: PodTask) -> str:
        if task.state is TaskState.ORPHAN:
            return f"its node {task.node_name} is not known"
        phase, named = task.application.phase, f"application {task.application.application_id}"
        match phase:
            case PodApplicationPhase.RESERVING:
                return f"the gang of {named} is not complete"
            case PodApplicationPhase.REJECTED | PodApplicationPhase.FAILING | PodApplicationPhase.FAILED:
                return f"{named} is {phase.value}: {task.application.reason}"
            case _:
                return self._coordinator.why_blocked(task) or "its application is not accepted yet"


def _read_list(client: ApiClient, kind: type[Any], path: str) -> list[Any] | None:
    """Return all objects of a kind, `None` for a kind of groups that the cluster does not have."""
    resource = WatchedResource(path, kind)
    try:
        items, _ = ListWatch(client, resource, on_list=_nothing, on_events=_nothing).read_list()
    except LicorneError as error:
        if any(each.kind is kind for each in GROUP_KINDS) and is_missing_kind(error):
            return None
        raise
    return items


def _nothing(*_: object) -> None:
    """Ignore events: the list is read once."""

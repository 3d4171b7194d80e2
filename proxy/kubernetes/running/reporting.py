"""Reports for people on pods and nodes: conditions and events, each written once while it is unchanged."""

from __future__ import annotations

import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias, final

from ....model.errors import LicorneError
from ..client.api_calls import ApiCalls
from ..client.errors import ApiError
from ..objects import (
    ConfigMap,
    KubernetesEvent,
    KubernetesNode,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    StorageClass,
)
from .event_loop import EventLoop
from .tasks import PodTask, TaskState

Reported: TypeAlias = (
    Pod
    | KubernetesNode
    | ConfigMap
    | Namespace
    | PersistentVolume
    | PersistentVolumeClaim
    | PriorityClass
    | StorageClass
)


class ObjectKind(NamedTuple):
    """The names of Kubernetes for a kind of objects."""

    name: str
    api_version: str = "v1"


OBJECT_KINDS: Final[Mapping[type, ObjectKind]] = {
    Pod: ObjectKind("Pod"),
    KubernetesNode: ObjectKind("Node"),
    ConfigMap: ObjectKind("ConfigMap"),
    Namespace: ObjectKind("Namespace"),
    PersistentVolume: ObjectKind("PersistentVolume"),
    PersistentVolumeClaim: ObjectKind("PersistentVolumeClaim"),
    PriorityClass: ObjectKind("PriorityClass", "scheduling.k8s.io/v1"),
    StorageClass: ObjectKind("StorageClass", "storage.k8s.io/v1"),
}
_CORES: Final = re.compile(r"(?<![\w.-])vcore(?= -?[0-9])")  # `constants.CPU`
_CPU: Final = "cpu"
_SERIES_MAX: Final = 20_000
"""How many events are remembered, so that the next one of the kind extends a series."""
_OPEN_MAX: Final = 5_000
"""How many events are written at a time; further ones are counted and dropped."""
_NOTE_BYTES_MAX: Final = 1_024
_NAME_LENGTH_MAX: Final = 230
"""A name has 253 characters at most, and the name of an event ends with a time."""
_SERIES_PAUSE_SECONDS: Final = 60
_RETRY_SECONDS: Final = 10.0
_AT_ONCE: Final = 4
_PAUSE_SECONDS: Final = 0.05
_AGAIN_SECONDS: Final = 30.0
_NEW_SECONDS: Final = 3.0
"""When to ask about a pod without a report of the scheduler that it lacks room: a quota holds it back."""
_AGAIN_PAUSE_SECONDS: Final = 0.2
"""The pause between two pods that are asked about again: with many pods each is asked about less often."""


class _Condition:
    """The condition for a pod, and whether it is being written."""

    __slots__ = ("is_open", "pod", "wanted", "written")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.wanted = ("", "")
        self.written = ("", "")
        self.is_open = False


class _Series:
    """Events with the same text about the same object."""

    __slots__ = ("count", "name", "next_write")

    def __init__(self, next_write: float) -> None:
        self.name = ""
        self.count = 1
        self.next_write = next_write


@final
class Reporter:
    """Writes conditions and events, after urgent calls; used by one thread."""

    def __init__(self, loop: EventLoop, calls: ApiCalls, controller: str, instance: str) -> None:
        self._loop = loop
        self._calls = calls
        self._controller = controller
        self._instance = instance
        self._conditions: dict[str, _Condition] = {}
        """The conditions by the uid of the pod."""
        self._series: OrderedDict[tuple[str, str, str, str], _Series] = OrderedDict()
        self._open_count = 0
        self.dropped_count = 0
        """How many events were dropped because too many waited."""

    # ------------------------------------------------------------------------------------- conditions

    @property
    def condition_count(self) -> int:
        """The number of pods with a reason why they wait."""
        return len(self._conditions)

    def condition(self, pod: Pod, reason: str, message: str) -> None:
        """Report on a pod why it is not scheduled; an unchanged reason is not written again."""
        uid = pod.metadata.uid
        condition = self._conditions.get(uid)
        if condition is None:
            condition = self._conditions[uid] = _Condition(pod)
        condition.wanted = (reason, _cut(words_of_pods(message)))
        self._write_condition(condition)

    def _write_condition(self, condition: _Condition) -> None:
        """Write the last requested condition; one at a time, so that the last one stays."""
        meta, wanted = condition.pod.metadata, condition.wanted
        is_wanted = self._conditions.get(meta.uid) is condition
        if condition.is_open or condition.written == wanted or not is_wanted:
            return
        document = {
            "type": "PodScheduled",
            "status": "False",
            "reason": wanted[0],
            "message": wanted[1],
            "lastTransitionTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }

        def call() -> None:
            # Many calls may wait for a worker: the pod may be on a node by now, and must not show that it
            # waits.
            if self._conditions.get(meta.uid) is condition:
                self._calls.patch_pod_condition(meta.namespace, meta.name, meta.uid, document)

        def then(answer: object) -> None:
            condition.is_open = False
            match answer:
                case ApiError(status=404 | 409):
                    pass  # the pod is gone
                case Exception():
                    self._loop.later(_RETRY_SECONDS, self._write_condition, condition)
                case _:
                    condition.written = wanted
                    self._write_condition(condition)

        condition.is_open = True
        self._write(call, then)

    def forget(self, uid: str) -> None:
        """Forget why a pod has waited: it no longer waits, or has ended."""
        self._conditions.pop(uid, None)

    # ------------------------------------------------------------------------------------- events

    def event(
        self, regarding: Reported, reason: str, action: str, note: str, *, is_warning: bool = False
    ) -> None:
        """Write an event; one with the same text as an earlier one extends its series."""
        note = _cut(words_of_pods(note))
        key = (regarding.metadata.uid, reason, action, note)
        series = self._series.get(key)
        if series is not None:
            self._go_on(regarding, key, series)
            return
        if self._open_count >= _OPEN_MAX:
            self.dropped_count += 1
            return
        series = self._series[key] = _Series(self._loop.now() + _SERIES_PAUSE_SECONDS)
        if len(self._series) > _SERIES_MAX:
            self._series.popitem(last=False)

        def then(answer: object) -> None:
            self._open_count -= 1
            if isinstance(answer, KubernetesEvent):
                series.name = answer.metadata.name
            elif self._series.get(key) is series:
                del self._series[key]  # the next one is written

        self._open_count += 1
        document = self._document(regarding, reason, action, note, is_warning=is_warning)
        self._write(lambda: self._calls.create_event(document["metadata"]["namespace"], document), then)

    def _go_on(self, regarding: Reported, key: tuple[str, str, str, str], series: _Series) -> None:
        """Count one more event of a series, and write their number, once a minute at most."""
        self._series.move_to_end(key)
        series.count += 1
        now = self._loop.now()
        if not series.name or now < series.next_write:
            return
        series.next_write = now + _SERIES_PAUSE_SECONDS
        namespace, name = regarding.metadata.namespace or "default", series.name
        count, when = series.count, _micro_time()

        def then(answer: object) -> None:
            is_gone = isinstance(answer, ApiError) and answer.status == 404  # events are kept for an hour
            if is_gone and self._series.get(key) is series:
                del self._series[key]

        self._write(
            lambda: self._calls.patch_event_series(namespace, name, count=count, last_observed_time=when),
            then,
        )

    def _document(
        self, regarding: Reported, reason: str, action: str, note: str, *, is_warning: bool
    ) -> dict[str, Any]:
        meta = regarding.metadata
        kind, api_version = OBJECT_KINDS[type(regarding)]
        name = f"{meta.name[:_NAME_LENGTH_MAX]}.{time.time_ns():x}"
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            # Objects without a namespace are in `default`, as for other components.
            "metadata": {"name": name, "namespace": meta.namespace or "default"},
            "eventTime": _micro_time(),
            "type": "Warning" if is_warning else "Normal",
            "reason": reason,
            "action": action,
            "note": note,
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "regarding": {
                "apiVersion": api_version,
                "kind": kind,
                "name": meta.name,
                "namespace": meta.namespace,
                "uid": meta.uid if kind != "Node" else meta.name,
            },
        }

    def _write(self, call: Callable[[], object], then: Callable[[object], None]) -> None:
        self._loop.work(call, then, is_urgent=False)


def words_of_pods(text: str) -> str:
    """Return a text about resources with the name of cores for pods, instead of that for queues."""
    return _CORES.sub(_CPU, text)


def _cut(text: str) -> str:
    """Return the beginning of a text that the API server accepts as a note; its bytes are counted."""
    return text.encode()[:_NOTE_BYTES_MAX].decode("utf-8", "ignore")


def _micro_time() -> str:
    """Return the present time in the notation of events."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


@final
class WaitingReports:
    """Writes conditions; used by one thread.

    Args:
        loop: The thread.
        reporter: Writes them.
        tasks: All tasks by key.
        explain: Returns in one line why a task of an application waits; called on workers.
    """

    def __init__(
        self,
        loop: EventLoop,
        reporter: Reporter,
        tasks: Mapping[str, PodTask],
        explain: Callable[[str, str], str],
    ) -> None:
        self._loop = loop
        self._reporter = reporter
        self._tasks = tasks
        self._explain = explain
        self._due: dict[str, str] = {}
        """The reasons of the conditions to be written, by key, in the order of arrival."""
        self._again: OrderedDict[str, tuple[float, str]] = OrderedDict()
        """When to ask again, and the reason, by key, in the order of the times."""
        self._new: deque[tuple[float, str]] = deque()
        """When to check whether a pod still waits, and its key, in the order of the times."""
        self._open_count = 0
        self._is_planned = False
        self._is_again_planned = False

    @property
    def count(self) -> int:
        """The number of pods to ask about, now or later."""
        return len(self._due) + len(self._again) + len(self._new)

    def asked(self, task: PodTask) -> None:
        """Handle a task that is asked for."""
        if not self._new:
            self._loop.later(_NEW_SECONDS, self._look_at_new)
        self._new.append((self._loop.now() + _NEW_SECONDS, task.key))

    def _look_at_new(self) -> None:
        while self._new and self._new[0][0] <= self._loop.now():
            _, key = self._new.popleft()
            if key not in self._due and key not in self._again:
                self.waits(key, "SchedulingSkipped")
        if self._new:
            self._loop.later(self._new[0][0] - self._loop.now(), self._look_at_new)

    def waits(self, key: str, reason: str) -> None:
        """Handle a task that waits, `Unschedulable` or `SchedulingSkipped`."""
        if self._waiting(key) is not None:
            self._again.pop(key, None)
            self._due[key] = reason
            self._plan(_PAUSE_SECONDS)

    def _waiting(self, key: str) -> PodTask | None:
        """Return a task that matters to people: it waits for a node, and has a pod."""
        task = self._tasks.get(key)
        return task if task is not None and task.state is TaskState.ASKED and not task.is_virtual else None

    def _plan(self, seconds: float) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._loop.later(seconds, self._ask)

    def _ask(self) -> None:
        self._is_planned = False
        while self._due and self._open_count < _AT_ONCE:
            key = next(iter(self._due))
            reason = self._due.pop(key)
            task = self._waiting(key)
            if task is not None:
                self._open_count += 1
                self._explain_one(task, reason)
        if self._due:
            self._plan(_PAUSE_SECONDS)

    def _explain_one(self, task: PodTask, reason: str) -> None:
        application_id = task.application.application_id

        def then(answer: str | Exception) -> None:
            self._open_count -= 1
            if self._waiting(task.key) is not task:
                return
            if task.key not in self._due:
                self._again[task.key] = (self._loop.now() + _AGAIN_SECONDS, reason)
                self._plan_again(_AGAIN_SECONDS)
            if isinstance(answer, str):
                self._reporter.condition(task.pod, reason, answer)
                self._reporter.event(task.pod, "PodUnschedulable", "Scheduling", answer)
            elif not isinstance(answer, LicorneError):
                raise answer

        self._loop.work(lambda: self._explain(application_id, task.key), then, is_urgent=False)

    def _plan_again(self, seconds: float) -> None:
        if not self._is_again_planned:
            self._is_again_planned = True
            self._loop.later(seconds, self._ask_again)

    def _ask_again(self) -> None:
        """Ask about the pod with the oldest answer, and drop the pods that no longer wait."""
        self._is_again_planned = False
        while self._again:
            key, (due, reason) = next(iter(self._again.items()))
            if self._waiting(key) is None:
                del self._again[key]
            elif due > self._loop.now():
                self._plan_again(due - self._loop.now())
                return
            else:
                self.waits(key, reason)
                self._plan_again(_AGAIN_PAUSE_SECONDS)
                return

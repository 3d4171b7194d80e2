"""Reports for people on pods and nodes: conditions and events, each written once while it is unchanged."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias, final

from ....actors.services.log import Log
from ..client.api_calls import ApiCalls
from ..client.errors import ApiError
from ..group_objects import CoschedulingGroup, JobSet, PodGroup, RayCluster
from ..mapping.applications import queue_name
from ..mapping.pod_groups import GROUP_KINDS
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
from ..storage_objects import CsiDriver, CsiStorageCapacity
from .event_loop import EventLoop

Reported: TypeAlias = (
    Pod
    | KubernetesNode
    | ConfigMap
    | Namespace
    | PersistentVolume
    | PersistentVolumeClaim
    | PriorityClass
    | StorageClass
    | CsiDriver
    | CsiStorageCapacity
    | PodGroup
    | CoschedulingGroup
    | JobSet
    | RayCluster
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
    CsiDriver: ObjectKind("CSIDriver", "storage.k8s.io/v1"),
    CsiStorageCapacity: ObjectKind("CSIStorageCapacity", "storage.k8s.io/v1"),
    **{each.kind: ObjectKind(each.name, each.api_version) for each in GROUP_KINDS},
}
_LOGGED: Final = frozenset(
    {
        *("Scheduled", "PodBindFailure", "PodVolumesBindFailure", "Preempted", "NodeRefusedPod"),
        *("TaskRejected", "TaskFailed", "ApplicationRejected", "ApplicationFailed", "GangScheduling"),
    }
)
"""The reasons of events that are logged: binds, failures, preemptions, rejections and gangs."""
_CORES: Final = re.compile(r"(?<![\w.-])vcore(?= -?[0-9]| left\b)|(?<=\bInsufficient )vcore\b")
"""`constants.CPU` next to its amount, and in the sentences about nodes and quotas."""
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
SKIPPED: Final = "SchedulingSkipped"
"""The reason of the condition of a pod that waits for something else than another node."""


class _Report(NamedTuple):
    """What the status of a waiting pod contains; `None` as the node until it is written."""

    reason: str = ""
    message: str = ""
    nominated_node: str | None = None


class _Condition:
    """The condition for a pod, and whether it is being written."""

    __slots__ = ("is_open", "pod", "wanted", "written")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.wanted = _Report()
        self.written = _Report()
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

    def __init__(
        self, loop: EventLoop, calls: ApiCalls, controller: str, instance: str, log: Log | None = None
    ) -> None:
        self._loop = loop
        self._calls = calls
        self._controller = controller
        self._instance = instance
        self._log = log if log is not None else Log()
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

    def condition(self, pod: Pod, reason: str, message: str, nominated_node: str = "") -> None:
        """Report on a pod why it is not scheduled; an unchanged reason is not written again.

        Args:
            pod: The pod.
            reason: The reason of the condition.
            message: Its message.
            nominated_node: The node on which other pods end for this one, empty for none.
        """
        uid = pod.metadata.uid
        condition = self._conditions.get(uid)
        if condition is None:
            condition = self._conditions[uid] = _Condition(pod)
        condition.wanted = _Report(reason, _cut(words_of_pods(message)), nominated_node)
        self._write_condition(condition)

    def skipped(self, pod: Pod, reason: str) -> None:
        """Report on a pod, as its condition and an event, why it waits although a node may have room."""
        self.condition(pod, SKIPPED, reason)
        self.event(pod, SKIPPED, "Scheduling", reason)

    def _write_condition(self, condition: _Condition) -> None:
        """Write the last requested condition; one at a time, so that the last one stays."""
        meta, wanted = condition.pod.metadata, condition.wanted
        is_wanted = self._conditions.get(meta.uid) is condition
        if condition.is_open or condition.written == wanted or not is_wanted:
            return
        document = {
            "type": "PodScheduled",
            "status": "False",
            "reason": wanted.reason,
            "message": wanted.message,
            "lastTransitionTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }

        is_same_node = condition.written.nominated_node == wanted.nominated_node
        nominated_node = None if is_same_node else wanted.nominated_node

        def call() -> None:
            # Many calls may wait for a worker: the pod may be on a node by now, and must not show that it
            # waits.
            if self._conditions.get(meta.uid) is condition:
                self._calls.patch_pod_condition(
                    *(meta.namespace, meta.name, meta.uid, document, nominated_node)
                )

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
        """Write an event; one with the same text as an earlier one extends its series.

        Steps in the life of a pod are logged, too.
        """
        note = _cut(words_of_pods(note))
        if reason in _LOGGED and isinstance(regarding, Pod):
            self._log_step(regarding, reason, note, is_warning=is_warning)
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

    def _log_step(self, pod: Pod, reason: str, note: str, *, is_warning: bool) -> None:
        meta = pod.metadata
        log = self._log.bind(namespace=meta.namespace, pod=meta.name, queue=queue_name(pod), reason=reason)
        write = log.warning if is_warning else log.info
        write("{} {}: {}", reason, pod.full_name, note)

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

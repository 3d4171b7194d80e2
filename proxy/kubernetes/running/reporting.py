"""What people see on pods and nodes: conditions and events, each written once while it stays the same."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, final

from ..client.api_calls import ApiCalls
from ..objects import ConfigMap, KubernetesEvent, KubernetesNode, Pod
from .event_loop import EventLoop

__all__ = ["Reporter"]

Reported: TypeAlias = Pod | KubernetesNode | ConfigMap
_KINDS: Final = {Pod: "Pod", KubernetesNode: "Node", ConfigMap: "ConfigMap"}
_SERIES_MAX: Final = 20_000
"""How many events are remembered, so that the next of the kind makes a series."""
_OPEN_MAX: Final = 5_000
"""How many events are being written at most; what comes meanwhile is counted and dropped."""
_NOTE_MAX: Final = 1_024
_SERIES_PAUSE_SECONDS: Final = 60


class _Series:
    """Events that say the same about the same object."""

    __slots__ = ("count", "name", "next_write")

    def __init__(self, next_write: float) -> None:
        self.name = ""
        self.count = 1
        self.next_write = next_write


@final
class Reporter:
    """Writes conditions and events, beside what is urgent; used by one thread."""

    def __init__(self, loop: EventLoop, calls: ApiCalls, controller: str, instance: str) -> None:
        self._loop = loop
        self._calls = calls
        self._controller = controller
        self._instance = instance
        self._conditions: dict[str, tuple[str, str]] = {}
        """Reason and message of the condition that was written last, by the uid of the pod."""
        self._series: OrderedDict[tuple[str, str, str, str], _Series] = OrderedDict()
        self._open_count = 0
        self.dropped_count = 0
        """How many events were dropped because too many waited."""

    # ------------------------------------------------------------------------------------- conditions

    def condition(self, pod: Pod, reason: str, message: str) -> None:
        """Have a pod say why it is not scheduled; nothing is written while that stays the same."""
        uid, wanted = pod.metadata.uid, (reason, message[:_NOTE_MAX])
        if self._conditions.get(uid) == wanted:
            return
        self._conditions[uid] = wanted
        meta = pod.metadata
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": wanted[1],
            "lastTransitionTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }

        def then(answer: object) -> None:
            if isinstance(answer, Exception) and self._conditions.get(uid) == wanted:
                del self._conditions[uid]  # the next report writes it

        self._write(lambda: self._calls.patch_pod_condition(meta.namespace, meta.name, uid, condition), then)

    def forget(self, uid: str) -> None:
        """Forget a pod that has ended."""
        self._conditions.pop(uid, None)

    # ------------------------------------------------------------------------------------- events

    def event(
        self, regarding: Reported, reason: str, action: str, note: str, *, is_warning: bool = False
    ) -> None:
        """Have an event written; one that says the same as an earlier one becomes a series with it."""
        note = note[:_NOTE_MAX]
        key = (regarding.metadata.uid, reason, action, note)
        now = self._loop.now()
        series = self._series.get(key)
        if series is not None:
            self._series.move_to_end(key)
            series.count += 1
            if series.name and now >= series.next_write:
                series.next_write = now + _SERIES_PAUSE_SECONDS
                namespace, name = regarding.metadata.namespace or "default", series.name
                count, when = series.count, _micro_time()
                self._write(
                    lambda: self._calls.patch_event_series(
                        namespace, name, count=count, last_observed_time=when
                    ),
                    _ignore,
                )
            return
        series = self._series[key] = _Series(now + _SERIES_PAUSE_SECONDS)
        if len(self._series) > _SERIES_MAX:
            self._series.popitem(last=False)
        if self._open_count >= _OPEN_MAX:
            self.dropped_count += 1
            return

        def then(answer: object) -> None:
            self._open_count -= 1
            if isinstance(answer, KubernetesEvent):
                series.name = answer.metadata.name

        self._open_count += 1
        document = self._document(regarding, reason, action, note, is_warning=is_warning)
        self._write(lambda: self._calls.create_event(document["metadata"]["namespace"], document), then)

    def _document(
        self, regarding: Reported, reason: str, action: str, note: str, *, is_warning: bool
    ) -> dict[str, Any]:
        meta = regarding.metadata
        kind = _KINDS[type(regarding)]
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            # What has no namespace is in `default`, as for other components.
            "metadata": {"name": f"{meta.name}.{time.time_ns():x}", "namespace": meta.namespace or "default"},
            "eventTime": _micro_time(),
            "type": "Warning" if is_warning else "Normal",
            "reason": reason,
            "action": action,
            "note": note,
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "regarding": {
                "apiVersion": "v1",
                "kind": kind,
                "name": meta.name,
                "namespace": meta.namespace,
                "uid": meta.uid if kind != "Node" else meta.name,
            },
        }

    def _write(self, call: Callable[[], object], then: Callable[[object], None]) -> None:
        self._loop.work(call, then, is_urgent=False)


def _micro_time() -> str:
    """Return the time now, as events write it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _ignore(_: object) -> None:
    """An event that could not be written is not missed."""

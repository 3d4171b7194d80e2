"""Volumes that are made when a node has been chosen: the claims of a pod are bound before the pod is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol, final

from ..client.api_calls import ApiCalls
from ..objects import SELECTED_NODE, PersistentVolumeClaim
from ..predicates.volume_filters import claim_keys, is_to_be_provided
from .cache import ClusterCache
from .event_loop import EventLoop
from .tasks import PodTask, TaskState

_NANOSECONDS: Final = 1e9


class VolumeSide(Protocol):
    """Who is to know what has become of the claims of a pod."""

    def volumes_bound(self, task: PodTask) -> None:
        """Take that all claims of a pod have volumes."""
        ...

    def volumes_failed(self, task: PodTask, reason: str) -> None:
        """Take that a claim of a pod gets no volume on its node."""
        ...


@dataclass(slots=True)
class _Binding:
    """What a pod waits for."""

    task: PodTask
    placement: int
    asked: set[str] = field(default_factory=set)
    """The claims that carry the node, as the watch has shown."""


@final
class VolumeBinding:
    """Has volumes made; used by one thread.

    Args:
        loop: The thread.
        cache: The claims, as the watch shows them.
        calls: The API server.
        timeout_ns: How long a pod waits for its volumes.
        tasks: Who is to know.
    """

    def __init__(
        self, loop: EventLoop, cache: ClusterCache, calls: ApiCalls, timeout_ns: int, tasks: VolumeSide
    ) -> None:
        self._loop = loop
        self._cache = cache
        self._calls = calls
        self._timeout_seconds = timeout_ns / _NANOSECONDS
        self._tasks = tasks
        self._waiting: dict[str, _Binding] = {}

    def bind(self, task: PodTask) -> bool:
        """Have the volumes made that a pod lacks on its node; return whether it has to wait for any."""
        lacking = list(self._lacking(task))
        if not lacking:
            return False
        self._waiting[task.key] = _Binding(task, task.placement)
        for claim in lacking:
            self._select(task, claim)
        self._loop.later(self._timeout_seconds, self._time_out, task, task.placement)
        return True

    def claims_changed(self) -> None:
        """Look at the claims of the pods that wait."""
        for binding in list(self._waiting.values()):
            self._look(binding)

    def _lacking(self, task: PodTask) -> Iterable[PersistentVolumeClaim]:
        for key in claim_keys(task.pod):
            claim = self._cache.claims.get(key)
            if claim is not None and is_to_be_provided(claim, self._cache):
                yield claim

    def _select(self, task: PodTask, claim: PersistentVolumeClaim) -> None:
        meta, node_name, placement = claim.metadata, task.node_name, task.placement

        def then(answer: object) -> None:
            if isinstance(answer, Exception) and self._is_current(task, placement):
                self._fail(task, f"the claim {meta.namespace}/{meta.name}: {answer}")

        self._loop.work(lambda: self._calls.select_node(meta.namespace, meta.name, meta.uid, node_name), then)

    def _look(self, binding: _Binding) -> None:
        task = binding.task
        if not self._is_current(task, binding.placement):
            self._waiting.pop(task.key, None)
            return
        is_complete = True
        for key in claim_keys(task.pod):
            claim = self._cache.claims.get(key)
            if claim is None:
                self._fail(task, f"the claim {key} is gone")
                return
            if claim.spec.volume_name and claim.status.phase == "Bound":
                continue
            is_complete = False
            if claim.metadata.annotations.get(SELECTED_NODE) == task.node_name:
                binding.asked.add(key)
            elif key in binding.asked:
                self._fail(task, f"no volume can be made for the claim {key} on node {task.node_name}")
                return
        if is_complete:
            del self._waiting[task.key]
            self._tasks.volumes_bound(task)

    def _time_out(self, task: PodTask, placement: int) -> None:
        if self._is_current(task, placement):
            self._fail(task, f"its volumes were not there after {self._timeout_seconds:g} s")
        elif (binding := self._waiting.get(task.key)) is not None and binding.placement == placement:
            del self._waiting[task.key]  # the pod has ended, or is elsewhere

    def _is_current(self, task: PodTask, placement: int) -> bool:
        """Return whether a pod waits for its volumes since that placement."""
        binding = self._waiting.get(task.key)
        return (
            binding is not None
            and binding.placement == task.placement == placement
            and task.state is TaskState.BINDING
            and not task.is_gone
        )

    def _fail(self, task: PodTask, reason: str) -> None:
        del self._waiting[task.key]
        self._tasks.volumes_failed(task, reason)

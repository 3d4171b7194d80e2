"""A kubelet of tests for all nodes of a cluster: it runs no containers, but says what a real one would say.

It sets bound pods running, ends those that say how long they run, and deletes those that are to be deleted: a
pod that was bound stays until its kubelet says that it has ended. One thread watches, another one acts.
"""

from __future__ import annotations

import heapq
import http.client
import itertools
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, Final, Self
from urllib.parse import urlencode

from support.kubernetes.api import STRATEGIC_MERGE_PATCH, RefusedError, Watch
from support.kubernetes.cluster import Cluster
from support.kubernetes.manifests import RUNS_FOR

_BOUND_PODS: Final = "spec.nodeName!="
_RETRY_SECONDS: Final = 0.1
_CUT: Final = (OSError, http.client.HTTPException)


class _Step(Enum):
    """What a kubelet does with a pod; the first three are the phases that it writes."""

    RUN = "Running"
    SUCCEED = "Succeeded"
    FAIL = "Failed"
    DELETE = "deleted"


class Kubelet:
    """The kubelet of the nodes that were added to it; a context manager that removes them at its end.

    It survives that the API server is killed: it watches anew until it is closed. Pods that are bound to
    another node are recorded, and otherwise left alone.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._tests_api = cluster.api()
        self._watching_api = cluster.api()
        self._acting_api = cluster.api()
        self._lock = threading.Lock()
        self._nodes: set[str] = set()
        self._places: dict[str, list[str]] = {}
        self._watch: Watch | None = None
        self._pods: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._run, args=(work,), name=f"kubelet-{work.__name__}", daemon=True)
            for work in (self._watch_pods, self._act)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_node(self, document: Mapping[str, Any]) -> None:
        """Create a node, and run the pods that are bound to it from now on."""
        name = document["metadata"]["name"]
        with self._lock:
            self._nodes.add(name)
        self._tests_api.ok("POST", "/api/v1/nodes", document)

    def places(self, uid: str) -> tuple[str, ...]:
        """Return the names of the nodes that a pod was seen on, in order: one, if it was bound once."""
        with self._lock:
            return tuple(self._places.get(uid, ()))

    def all_places(self) -> dict[str, tuple[str, ...]]:
        """Return `places` of each pod that was seen bound, by its uid."""
        with self._lock:
            return {uid: tuple(names) for uid, names in self._places.items()}

    def close(self) -> None:
        """Stop, and delete the nodes.

        Raises:
            BaseException: What a thread of the kubelet failed with.
        """
        self._closing.set()
        self._pods.put(None)
        with self._lock:
            watch = self._watch
        if watch is not None:
            watch.stop()
        for thread in self._threads:
            thread.join()
        for name in sorted(self._nodes):
            self._tests_api.request("DELETE", f"/api/v1/nodes/{name}")
        for api in (self._tests_api, self._watching_api, self._acting_api):
            api.close()
        if self._failure is not None:
            raise self._failure

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 - whatever it is, `close` raises it in the test
            self._failure = failure

    def _watch_pods(self) -> None:
        while not self._closing.is_set():
            try:
                self._list_and_watch()
            except (*_CUT, RefusedError):  # the API server was killed, or is not ready again
                self._closing.wait(_RETRY_SECONDS)

    def _list_and_watch(self) -> None:
        """Hear of all bound pods, then of each change, until the watch ends."""
        query = urlencode({"fieldSelector": _BOUND_PODS})
        listed = self._watching_api.ok("GET", f"/api/v1/pods?{query}")
        for document in listed["items"]:
            self._hear(document)
        version = listed["metadata"]["resourceVersion"]
        watch = self._watching_api.watch("/api/v1/pods", fieldSelector=_BOUND_PODS, resourceVersion=version)
        with self._lock:
            self._watch = watch
        if self._closing.is_set():
            watch.stop()
        for event in watch:
            if event["type"] == "ERROR":  # the version is too old: list again
                return
            if event["type"] != "DELETED":
                self._hear(event["object"])

    def _hear(self, document: dict[str, Any]) -> None:
        place = document["spec"]["nodeName"]
        with self._lock:
            places = self._places.setdefault(document["metadata"]["uid"], [])
            if places[-1:] != [place]:
                places.append(place)
            ours = place in self._nodes
        if ours:
            self._pods.put(document)

    def _act(self) -> None:
        """Take the steps of pods when they are due; what the API server did not take is due again soon."""
        due: list[tuple[float, int, _Step, dict[str, Any]]] = []
        begun: set[tuple[str, _Step]] = set()
        serial = itertools.count()
        while True:
            wait = max(0.0, due[0][0] - time.monotonic()) if due else None
            with suppress(queue.Empty):
                document = self._pods.get(timeout=wait)
                if document is None:  # the kubelet closes
                    return
                for step, delay_seconds in _steps(document):
                    key = (document["metadata"]["uid"], step)
                    if key not in begun:
                        begun.add(key)
                        when = time.monotonic() + delay_seconds
                        heapq.heappush(due, (when, next(serial), step, document))
            while due and due[0][0] <= time.monotonic():
                _, _, step, document = heapq.heappop(due)
                if not self._taken(step, document):
                    when = time.monotonic() + _RETRY_SECONDS
                    heapq.heappush(due, (when, next(serial), step, document))

    def _taken(self, step: _Step, document: dict[str, Any]) -> bool:
        """Do a step; return whether the API server took it, or has no such pod any more."""
        metadata = document["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        try:
            if step is _Step.DELETE:
                options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
                status, _ = self._acting_api.request("DELETE", path, options)
            else:
                patch = _status_patch(metadata["uid"], step.value)
                status, _ = self._acting_api.request("PATCH", f"{path}/status", patch, STRATEGIC_MERGE_PATCH)
        except _CUT:
            return False
        return 200 <= status < 300 or status in {404, 409}  # gone, or replaced by another of its name


def _steps(document: Mapping[str, Any]) -> list[tuple[_Step, float]]:
    """Return what is to be done with a pod, in order, each with a delay in seconds."""
    metadata, phase = document["metadata"], document["status"]["phase"]
    if "deletionTimestamp" in metadata:
        ended = phase in {_Step.SUCCEED.value, _Step.FAIL.value}
        return [(_Step.DELETE, 0)] if ended else [(_Step.FAIL, 0), (_Step.DELETE, 0)]
    if phase != "Pending":
        return []
    runs_for = metadata.get("annotations", {}).get(RUNS_FOR)
    return [(_Step.RUN, 0)] + ([] if runs_for is None else [(_Step.SUCCEED, float(runs_for))])


def _status_patch(uid: str, phase: str) -> dict[str, Any]:
    ready = "True" if phase == _Step.RUN.value else "False"
    conditions = [
        {"type": name, "status": ready} for name in ("PodReadyToStartContainers", "ContainersReady", "Ready")
    ]
    return {"metadata": {"uid": uid}, "status": {"phase": phase, "conditions": conditions}}

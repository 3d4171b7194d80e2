"""A scheduler of pods without threads: the stub of an API server, a stepped scheduler, and a manual clock.

What is tested is the product's `Coordinator` with all of its parts. The client calls the stub directly, and
what the stub has noted is handed over as a watch would do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec
from support.kubernetes.manual_loop import ManualLoop
from support.kubernetes.stub_http import HttpRequest, LostConnectionError
from support.kubernetes.stub_server import StubApiServer
from support.kubernetes.stub_store import Document, ObjectPath, StatusError

from licorne import Scheduler
from licorne.actors.services.log import Log
from licorne.proxy.kubernetes.client.api_calls import ApiCalls
from licorne.proxy.kubernetes.client.api_client import ApiClient
from licorne.proxy.kubernetes.client.errors import ApiError, ApiUnreachable
from licorne.proxy.kubernetes.client.list_watch import WatchChange, read_object
from licorne.proxy.kubernetes.mapping.settings import KubernetesSettings
from licorne.proxy.kubernetes.objects import ConfigMap
from licorne.proxy.kubernetes.running.coordinator import CLUSTER_KINDS, Coordinator, PodSchedulerOptions
from licorne.proxy.kubernetes.running.tasks import PodApplication, PodTask

NAMESPACE: Final = "blue"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES: Final = "/api/v1/nodes"
QUEUES: Final = """
partitions:
- name: default
  preemption: {enabled: true}
  placementrules: [{name: provided, create: false}, {name: tag, value: namespace, create: true}]
  queues:
  - {name: root, submitacl: "*", queues: [
      {name: low}, {name: small, resources: {max: {vcore: "2"}}},
      {name: high, resources: {guaranteed: {vcore: "1"}}, properties: {preemption.delay: 10s}}]}
"""
SETTINGS: Final = KubernetesSettings(scheduler_name="licorne")
_KINDS: Final[tuple[tuple[type[Any], str], ...]] = (
    (ConfigMap, "/api/v1/namespaces/default/configmaps"),
    *CLUSTER_KINDS,
)
_ENDED: Final = {"Completed", "Failed", "Rejected", "Expired"}
_ROUNDS_MAX: Final = 300


class DirectClient:
    """Makes requests of a stub without HTTP, once."""

    def __init__(self, stub: StubApiServer) -> None:
        self._stub = stub

    def limit_rate(self, *_: object, **__: object) -> None:
        """Limit nothing."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        **_: object,
    ) -> bytes:
        """Make a request, and return the body of the answer."""
        headers = {"content-type": content_type}
        try:
            answer = self._stub.respond(HttpRequest(method, path, query or {}, headers, body or b""))
        except LostConnectionError as error:
            raise ApiUnreachable("the answer was lost") from error
        if answer.status >= 300:
            raise ApiError.of_answer(answer.status, answer.body, answer.headers.get("Retry-After"))
        return answer.body


class SteppedCluster:
    """The whole, which does everything that is to be done at a moment in `settle`.

    Args:
        queues: The queues.
        settings: The settings of the scheduler of pods.
        stub: The API server; a new one has the namespace `blue`.

    Attributes:
        stub: The API server.
        loop: The loop of the coordinator.
        scheduler: The scheduler.
        coordinator: What is tested.
        watches: Whether what happens at the API server is handed over.
    """

    def __init__(
        self,
        *,
        queues: str = QUEUES,
        settings: KubernetesSettings = SETTINGS,
        stub: StubApiServer | None = None,
    ) -> None:
        self.stub = stub if stub is not None else StubApiServer()
        if stub is None:
            self.stub.add("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self._options = PodSchedulerOptions(defaults=settings, queues=queues)
        self.watches = True
        self._begin()

    def _begin(self) -> None:
        self.scheduler = Scheduler(engine="direct", policies=self._options.policies)
        self.loop = ManualLoop(self.scheduler.now_ns() / 1e9)
        calls = ApiCalls(cast("ApiClient", DirectClient(self.stub)))
        self.coordinator = Coordinator(self.scheduler, self.loop, calls, self._options, Log())
        self._versions: dict[str, str] = {}
        for kind, path in _KINDS:
            self._versions[path] = str(self.stub.store.version)
            self.coordinator.listed(kind, self._decoded(kind, self.stub.objects(path)))

    def restart(self) -> None:
        """Go on as a new process with a new scheduler: nothing but the API server stays."""
        self.stop()
        self._begin()
        self.settle()

    def stop(self) -> None:
        """End the scheduler."""
        self.scheduler.stop()

    def relist(self) -> None:
        """Hand over all objects as they are, as after a watch that could not go on."""
        for kind, path in _KINDS:
            self._versions[path] = str(self.stub.store.version)
            self.coordinator.listed(kind, self._decoded(kind, self.stub.objects(path)))

    @staticmethod
    def _decoded(kind: type[Any], documents: Iterable[Document]) -> list[Any]:
        decoder = msgspec.json.Decoder(kind)
        return [read_object(decoder, msgspec.json.encode(each)) for each in documents]

    # ------------------------------------------------------------------------------------- time

    def settle(self) -> None:
        """Do all that is to be done without waiting."""
        for _ in range(_ROUNDS_MAX):
            fed = self._feed() if self.watches else 0
            done = self.loop.run()
            self.coordinator.flush()
            self.scheduler.run_until_idle()
            if not (fed or done or self.loop.posted):
                break
        else:
            raise AssertionError("it does not come to rest")
        assert [] == self.loop.errors
        self.scheduler.validate()

    def place(self) -> None:
        """Let the scheduler place what waits, so that the coordinator does not know yet."""
        self._feed()
        self.coordinator.flush()
        self.scheduler.schedule()

    def _feed(self) -> int:
        """Hand over what has changed; return how much."""
        count = 0
        for kind, path in _KINDS:
            version, self._versions[path] = self._versions[path], str(self.stub.store.version)
            try:
                lines = self.stub.store.changes(
                    ObjectPath.of(path),
                    lambda _: True,
                    version,
                    bookmarks=False,
                    seconds=0.0,
                    stopped=lambda: False,
                )
                read = [msgspec.json.decode(line) for batch in lines for line in batch]
            except StatusError:
                items = self._decoded(kind, self.stub.objects(path))
                self.coordinator.listed(kind, items)
                count += len(items)
                continue
            changes = [(WatchChange(each["type"]), self._decoded(kind, [each["object"]])[0]) for each in read]
            if changes:
                self.coordinator.changed(kind, changes)
            count += len(changes)
        return count

    def advance(self, seconds: float) -> None:
        """Let time pass, and do what is due on the way."""
        end = self.loop.now() + seconds
        self.settle()
        while (due := self.loop.next_due()) is not None and due <= end:
            self._move_to(due)
        self._move_to(end)
        self.scheduler.inspect_outstanding()
        self.settle()

    def _move_to(self, time: float) -> None:
        self.scheduler.advance_to(max(self.scheduler.now_ns(), int(time * 1e9)))
        self.loop.move_to(time)
        self.settle()

    # ------------------------------------------------------------------------------------- the cluster

    def add_node(self, name: str = "n1", cpu: str = "4", **spec: Any) -> None:
        """Add a node."""
        size = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": name}
        document = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        self.stub.add(NODES, {**document, "status": {"allocatable": size}})

    def add_pod(
        self,
        name: str = "p",
        *,
        cpu: str = "1",
        app: str = "app",
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        scheduler: str = "licorne",
        **spec: Any,
    ) -> str:
        """Add a pod, created now; return its uid."""
        created = _timestamp(self.loop.unix_seconds())
        own = {
            "name": name,
            "labels": {"applicationId": app, **(labels or {})},
            "annotations": dict(annotations or {}),
            "creationTimestamp": created,
            **(metadata or {}),
        }
        container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        whole = {"schedulerName": scheduler, "containers": [container], **spec}
        document = {"metadata": own, "spec": whole, "status": {"phase": "Pending"}}
        uid: str = self.stub.add(PODS, document)["metadata"]["uid"]
        return uid

    def pod(self, name: str = "p") -> Document:
        """Return a pod."""
        return self.stub.get(f"{PODS}/{name}")

    def node_of(self, name: str = "p") -> str:
        """Return the node of a pod, empty without one."""
        node: str = self.pod(name)["spec"].get("nodeName", "")
        return node

    @property
    def places(self) -> dict[str, str]:
        """The nodes of the pods that are on one, by the names of the pods."""
        pods = self.stub.objects(PODS)
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")
        }

    def condition(self, name: str = "p") -> tuple[str, str, str]:
        """Return status, reason and message of the condition `PodScheduled` of a pod."""
        conditions = self.pod(name)["status"].get("conditions", [])
        found = [each for each in conditions if each["type"] == "PodScheduled"]
        return (
            tuple(found[0].get(key, "") for key in ("status", "reason", "message")) if found else ("", "", "")
        )

    def events(self, name: str | None = None) -> list[str]:
        """Return the reasons, or for gangs the actions, of the events of a pod, or of all objects."""
        found = self.stub.objects("/apis/events.k8s.io/v1/events")
        return [
            each["action"] if each["reason"] == "GangScheduling" else each["reason"]
            for each in sorted(found, key=lambda each: each["eventTime"])
            if name in {None, each["regarding"]["name"]}
        ]

    def run_pods(self) -> None:
        """Say that the pods on nodes run, as kubelets do."""
        for pod in self.stub.objects(PODS):
            if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
                self.stub.change(f"{PODS}/{pod['metadata']['name']}", {"status": {"phase": "Running"}})

    def end_pod(self, name: str = "p", phase: str = "Succeeded", reason: str = "") -> None:
        """Say that a pod has ended."""
        self.stub.change(f"{PODS}/{name}", {"status": {"phase": phase, "reason": reason}})

    @property
    def placeholders(self) -> list[str]:
        """The names of the pods that are placeholders and have not ended."""
        return [
            pod["metadata"]["name"]
            for pod in self.stub.objects(PODS)
            if pod["metadata"]["name"].startswith("tg-")
        ]

    # ------------------------------------------------------------------------------------- both sides

    def task(self, uid: str) -> PodTask:
        """Return a task."""
        return self.coordinator.tasks[uid]

    def application(self, identity: str = "app") -> PodApplication | None:
        """Return an application of the coordinator."""
        running: Any = self.coordinator._running
        found: PodApplication | None = running.shared.applications.get(identity)
        return found

    def parts(self) -> Any:
        """Return the parts of the coordinator."""
        return self.coordinator._running

    def snapshot(self, kind: str) -> list[Any]:
        """Return the scheduler's documents of a kind."""
        snapshot: Any = self.scheduler.snapshot()
        found: list[Any] = snapshot[kind]["default"]
        return found

    @property
    def states(self) -> dict[str, str]:
        """The states of the applications that the scheduler has, without those that have ended."""
        return {
            each["applicationID"]: each["applicationState"]
            for each in self.snapshot("applications")
            if each["applicationState"] not in _ENDED
        }

    @property
    def core_places(self) -> dict[str, str]:
        """The nodes of the allocations that the scheduler counts, by key; foreign ones included."""
        return {
            allocation["allocationKey"]: node["nodeID"]
            for node in self.snapshot("nodes")
            for part in ("allocations", "foreignAllocations")
            for allocation in node.get(part) or []
        }

    @property
    def pod_places(self) -> dict[str, str]:
        """What the scheduler should count: the nodes that exist, of the pods that have not ended, by uid."""
        nodes = {each["metadata"]["name"] for each in self.stub.objects(NODES)}
        return {
            pod["metadata"]["uid"]: pod["spec"]["nodeName"]
            for pod in self.stub.objects("/api/v1/pods")
            if pod["spec"].get("nodeName") in nodes
            and pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
        }

    def on_request(self, method: str, path: str, call: Callable[[], object], times: int | None = 1) -> None:
        """Have something happen just before requests are carried out."""
        self.stub.before(method, path, call, times=times)


def gang_annotations(*groups: Mapping[str, Any], policy: str = "", member: str = "") -> dict[str, str]:
    """Return the annotations of a pod of a gang.

    Args:
        groups: The task groups; what they do not say is as for a group `workers` of one pod of one core.
        policy: The parameters of the policy.
        member: The group that the pod is a member of.
    """
    base = {"name": "workers", "minMember": 1, "minResource": {"cpu": "1"}}
    domain = "yunikorn.apache.org/"
    found = {f"{domain}task-groups": msgspec.json.encode([{**base, **each} for each in groups]).decode()}
    if policy:
        found[f"{domain}schedulingPolicyParameters"] = policy
    if member:
        found[f"{domain}task-group-name"] = member
    return found


def _timestamp(seconds: float) -> str:
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"

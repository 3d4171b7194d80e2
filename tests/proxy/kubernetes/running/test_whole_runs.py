"""The scheduler of pods with all of its threads, over HTTP, against the stub of an API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from support.kubernetes.manifests import node, pod
from support.kubernetes.placing import HOST, beside
from support.kubernetes.stepped_cluster import QUEUES, gang_annotations
from support.kubernetes.stub_clients import client_of
from support.kubernetes.stub_server import StubApiServer
from support.waiting import happens

from licorne import Scheduler
from licorne.proxy.kubernetes.mapping.settings import KubernetesSettings
from licorne.proxy.kubernetes.running.coordinator import PodSchedulerOptions
from licorne.proxy.kubernetes.running.pod_scheduler import PodScheduler

PODS: Final = "/api/v1/namespaces/blue/pods"
NODES: Final = "/api/v1/nodes"


class Whole:
    """A stub with two nodes, and a scheduler of pods that can be started anew."""

    def __init__(self, stub: StubApiServer, queues: str = QUEUES) -> None:
        self.stub = stub
        self._queues = queues.replace("10s", "1s")
        stub.add("/api/v1/namespaces", {"metadata": {"name": "blue"}})
        for name in ("n1", "n2"):
            stub.add(NODES, node(name, cpu="4"))
        self.start()

    def start(self) -> None:
        """Start with a new scheduler that knows nothing."""
        defaults = KubernetesSettings(scheduler_name="licorne")
        options = PodSchedulerOptions(defaults=defaults, queues=self._queues)
        self.scheduler = Scheduler(policies=options.policies)
        self.client = client_of(self.stub)
        self.pods = PodScheduler(self.scheduler, self.client, options)
        self.pods.start()
        self.until(lambda: self.pods.is_ready)

    def stop(self) -> None:
        """End everything but the stub."""
        self.pods.stop()
        self.client.close()
        self.scheduler.validate()
        self.scheduler.stop()

    def add(self, name: str, **more: Any) -> None:
        """Add a pod of one core."""
        labels = {"applicationId": more.pop("app", "app"), **more.pop("labels", {})}
        document = pod(name, cpu=more.pop("cpu", "1"), labels=labels, **more)
        document["metadata"]["creationTimestamp"] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        self.stub.add(PODS, document)

    @property
    def places(self) -> dict[str, str]:
        """The nodes of the pods that are on one."""
        found = self.stub.objects(PODS)
        return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in found}

    @property
    def are_accounts_equal(self) -> bool:
        """Whether the scheduler counts just the pods that are on nodes."""
        snapshot: Any = self.scheduler.snapshot()
        counted = {
            each["allocationKey"]: found["nodeID"]
            for found in snapshot["nodes"]["default"]
            for part in ("allocations", "foreignAllocations")
            for each in found.get(part) or []
        }
        pods = {
            each["metadata"]["uid"]: each["spec"]["nodeName"]
            for each in self.stub.objects(PODS)
            if each["spec"].get("nodeName")
        }
        return counted == pods

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition."""
        assert happens(condition), (self.places, dict(self.pods.tasks))

    def until_placed(self, *names: str) -> None:
        """Wait until just these pods are there and on nodes, and counted."""
        self.until(
            lambda: set(names) == set(self.places) and all(self.places.values()) and self.are_accounts_equal
        )


@pytest.fixture
def whole() -> Iterator[Whole]:
    """Return the whole, which is stopped at the end."""
    with StubApiServer() as stub:
        found = Whole(stub)
        yield found
        found.stop()


def test_pods_are_bound(whole: Whole) -> None:
    """A hundred of several applications, each once."""
    names = [f"p{number}" for number in range(100)]
    for number, name in enumerate(names):
        whole.add(name, cpu="50m", app=f"app{number % 7}")
    whole.until_placed(*names)

    assert 100 == len(whole.stub.asked("POST", f"{PODS}/.*/binding"))


def test_a_gang_comes_together(whole: Whole) -> None:
    """Its placeholders are created, placed, and replaced by its members."""
    annotations = gang_annotations({"minMember": 3}, member="workers")
    for name in "abc":
        whole.add(name, annotations=annotations)
    whole.until_placed("a", "b", "c")

    assert 3 == len(whole.stub.asked("POST", PODS))


def test_a_victim_makes_room(whole: Whole) -> None:
    """As soon as its kubelet says that it has ended."""
    for name in "abcdefgh":
        whole.add(name, app="low", labels={"queue": "root.low"})
    whole.until_placed(*"abcdefgh")
    whole.add("urgent", app="high", labels={"queue": "root.high"})
    whole.until(lambda: whole.stub.finish_deletions() == 1)
    whole.until(lambda: bool(whole.places["urgent"]) and whole.are_accounts_equal)


def test_a_node_is_drained(whole: Whole) -> None:
    """What is made anew runs on the other one."""
    for name in "abcd":
        whole.add(name)
    whole.until_placed("a", "b", "c", "d")
    whole.stub.change(f"{NODES}/n1", {"spec": {"unschedulable": True}})
    known: Any = whole.pods._coordinator._cache.nodes
    whole.until(lambda: known["n1"].node.spec.unschedulable)
    moved = [name for name, node_name in whole.places.items() if node_name == "n1"]
    for name in moved:
        whole.stub.remove(f"{PODS}/{name}")
        whole.add(f"{name}-again")
    whole.until(lambda: set(whole.places.values()) == {"n2"} and whole.are_accounts_equal)
    whole.stub.remove(f"{NODES}/n1")
    whole.until(lambda: ["n2"] == [each["nodeID"] for each in _nodes(whole)])

    assert 4 == len(whole.places)


def _nodes(whole: Whole) -> list[Any]:
    snapshot: Any = whole.scheduler.snapshot()
    found: list[Any] = snapshot["nodes"]["default"]
    return found


def test_what_happens_while_nothing_is_watched_is_seen_later(whole: Whole) -> None:
    """The watches are cut and their versions forgotten: everything is listed anew."""
    for name in "ab":
        whole.add(name)
    whole.until_placed("a", "b")
    whole.stub.fail("GET", ".*\\?watch", status=503, times=8)
    whole.stub.cut_watches()
    whole.stub.remove(f"{PODS}/a")
    whole.stub.remove(f"{NODES}/n1")
    whole.stub.add(NODES, node("n1", cpu="2"))
    whole.add("c")
    whole.stub.forget_history()
    whole.until_placed("b", "c")


def test_watches_that_are_cut_go_on(whole: Whole) -> None:
    """Nothing is missed."""
    names = [f"p{number}" for number in range(20)]
    for name in names:
        whole.add(name, cpu="100m")
        whole.stub.cut_watches()
    whole.until_placed(*names)


def test_a_new_process_takes_over(whole: Whole) -> None:
    """From what is at the API server alone: pods that run are counted, and pods that wait are placed."""
    for name in "abc":
        whole.add(name, cpu="3")
    whole.until(lambda: sum(map(bool, whole.places.values())) == 2 and whole.are_accounts_equal)
    before = whole.places
    whole.stop()
    (waiting,) = (name for name, node_name in before.items() if not node_name)
    gone = next(name for name in before if name != waiting)
    whole.stub.remove(f"{PODS}/{gone}")
    whole.start()
    whole.until_placed(*(name for name in before if name != gone))


def test_answers_that_are_lost_change_nothing(whole: Whole) -> None:
    """Each pod is bound once, also if binds are answered with errors or not at all."""
    whole.stub.lose_answer("POST", f"{PODS}/.*/binding", times=5)
    names = [f"p{number}" for number in range(20)]
    for name in names:
        whole.add(name, cpu="100m")
    whole.until_placed(*names)


def test_pods_get_the_nodes_that_they_prefer() -> None:
    """Ten of them alternate, and are placed while the cluster learns of the first ones."""
    with StubApiServer() as stub:
        order = "nodesortpolicy: {type: policy/pod-preferences}"
        whole = Whole(stub, QUEUES.replace("  preemption:", f"  {order}\n  preemption:", 1))
        terms = [{"weight": 1, "podAffinityTerm": beside({"matchLabels": {"app": "web"}}, HOST)}]
        apart = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
        whole.add("large", cpu="2")  # By room alone all others would be on the other node.
        whole.until_placed("large")
        names = [f"p{number}" for number in range(10)]
        for name in names:
            whole.add(name, cpu="10m", labels={"app": "web"}, affinity=apart)
        whole.until_placed("large", *names)
        whole.stop()

        assert {"n1": 5, "n2": 5} == Counter(whole.places[name] for name in names)

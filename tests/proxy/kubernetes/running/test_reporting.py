"""Conditions and events: written once, in order, again after a failure, and only of what waits."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest
from support.kubernetes.manual_loop import ManualLoop
from support.kubernetes.placing import a_node, a_pod
from support.kubernetes.stepped_cluster import PODS, DirectClient, SteppedCluster
from support.kubernetes.stub_server import StubApiServer

from licorne.proxy.kubernetes.client.api_calls import ApiCalls
from licorne.proxy.kubernetes.client.api_client import ApiClient
from licorne.proxy.kubernetes.running.reporting import Reporter, words_of_pods

STATUS: Final = f"{PODS}/asked/status"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/blue/events"
POD: Final = a_pod()


class Written:
    """A reporter, its loop, and what has arrived at the API server."""

    def __init__(self) -> None:
        self.stub = StubApiServer()
        self.stub.add(PODS, {"metadata": {"name": "asked", "uid": "asked"}, "spec": {}})
        self.loop = ManualLoop(0)
        calls = ApiCalls(cast("ApiClient", DirectClient(self.stub)))
        self.reporter = Reporter(self.loop, calls, "licorne", "one")

    def advance(self, seconds: float = 0) -> None:
        """Let time pass."""
        self.loop.run()
        self.loop.move_to(self.loop.now() + seconds)
        self.loop.run()

    @property
    def condition(self) -> tuple[str, str]:
        """Reason and message of the condition."""
        conditions = self.stub.get(f"{PODS}/asked").get("status", {}).get("conditions", [{}])
        return conditions[0].get("reason", ""), conditions[0].get("message", "")

    @property
    def events(self) -> list[Any]:
        """The events."""
        return self.stub.objects("/apis/events.k8s.io/v1/events")


@pytest.fixture
def written() -> Written:
    """Return a reporter that has written nothing."""
    return Written()


def test_a_condition_is_written_once_while_it_stays(written: Written) -> None:
    """And again when its message changes."""
    for message in ("no room", "no room", "no quota", "no quota"):
        written.reporter.condition(POD, "Unschedulable", message)
        written.advance()

    assert 2 == len(written.stub.asked("PATCH", STATUS))
    assert ("Unschedulable", "no quota") == written.condition


def test_conditions_of_a_pod_are_written_one_after_the_other(written: Written) -> None:
    """The last one stays, whatever the workers do, and those in between are left out."""
    for message in "abc":
        written.reporter.condition(POD, "Unschedulable", message)

    assert 1 == written.loop.open_work

    written.advance()

    assert ("Unschedulable", "c") == written.condition
    assert 2 == len(written.stub.asked("PATCH", STATUS))


def test_a_condition_is_written_again_after_a_failure(written: Written) -> None:
    """Nobody has to report it a second time."""
    written.stub.fail("PATCH", STATUS, status=500, times=2)
    written.reporter.condition(POD, "Unschedulable", "no room")
    written.advance(10)
    written.advance(10)

    assert ("Unschedulable", "no room") == written.condition


def test_a_condition_of_a_pod_that_does_not_wait_any_more_is_not_written(written: Written) -> None:
    """It is on a node by now, and would say the opposite."""
    written.reporter.condition(POD, "Unschedulable", "no room")
    written.reporter.forget("asked")
    written.advance(100)

    assert [] == written.stub.asked("PATCH", STATUS)
    assert 0 == written.reporter.condition_count


def test_a_condition_of_a_pod_that_is_gone_is_not_written_for_ever(written: Written) -> None:
    """404 says so."""
    written.stub.remove(f"{PODS}/asked")
    written.reporter.condition(POD, "Unschedulable", "no room")
    written.advance(100)

    assert (1, 0) == (len(written.stub.asked("PATCH", STATUS)), written.loop.timers)


def test_equal_events_are_one_that_is_counted_each_minute(written: Written) -> None:
    """However often they happen."""
    for _ in range(125):
        written.reporter.event(POD, "FailedScheduling", "Scheduling", "no room")
        written.advance(1)
    (event,) = written.events

    assert (121, 2) == (event["series"]["count"], len(written.stub.asked("PATCH", f"{EVENTS}/.*")))


def test_an_event_that_has_expired_is_written_anew(written: Written) -> None:
    """API servers keep them for an hour."""
    written.reporter.event(POD, "R", "A", "note")
    written.advance(61)
    written.stub.remove(f"{EVENTS}/{written.events[0]['metadata']['name']}")
    for _ in range(2):
        written.reporter.event(POD, "R", "A", "note")
        written.advance(61)

    assert 1 == len(written.events)


def test_an_event_that_could_not_be_written_is_written_the_next_time(written: Written) -> None:
    """Not counted as one that is there."""
    written.stub.fail("POST", EVENTS, status=500)
    for _ in range(2):
        written.reporter.event(POD, "R", "A", "note")
        written.advance(1)

    assert 1 == len(written.events)


def test_events_are_as_the_api_server_takes_them(written: Written) -> None:
    """Names of 253 characters and notes of 1,024 bytes at most, and a node is in the namespace `default`."""
    long = a_pod("p" * 253, metadata={"uid": "long"})
    written.reporter.event(long, "R", "A", "ä" * 2_000, is_warning=True)
    written.reporter.event(a_node("n1"), "R", "A", "note")
    written.advance()
    by_kind = {event["regarding"]["kind"]: event for event in written.events}

    assert 253 >= len(by_kind["Pod"]["metadata"]["name"])
    assert ("ä" * 512, "Warning") == (by_kind["Pod"]["note"], by_kind["Pod"]["type"])
    assert "default" == by_kind["Node"]["metadata"]["namespace"]


def test_too_many_events_at_once_are_dropped(written: Written) -> None:
    """They do not fill the memory while the API server is away."""
    for number in range(5_100):
        written.reporter.event(POD, "R", "A", str(number))

    assert (5_000, 100) == (written.loop.open_work, written.reporter.dropped_count)

    written.advance()
    written.reporter.event(POD, "R", "A", "5099")
    written.advance()

    assert 5_001 == len(written.events)


# --------------------------------------------------------------------------------------- why pods wait


def test_a_pod_says_why_it_waits_and_says_it_anew_when_that_changes(cluster: SteppedCluster) -> None:
    """As the scheduler explains it, in one line."""
    cluster.add_node(cpu="1")
    cluster.add_pod(cpu="2")
    cluster.advance(1)
    cluster.advance(1)
    first = cluster.condition()

    assert ("False", "Unschedulable") == first[:2]
    assert "cpu" in first[2]
    assert "vcore" not in first[2]

    cluster.add_node("n2", cpu="1")
    cluster.advance(40)

    assert first[2] != cluster.condition()[2]

    cluster.add_node("n3", cpu="2")
    cluster.settle()

    assert "True" == cluster.condition()[0]


def test_a_pod_over_a_quota_is_none_that_an_autoscaler_looks_for(cluster: SteppedCluster) -> None:
    """Another node would not help it."""
    cluster.add_node(cpu="8")
    for name in "abc":
        cluster.add_pod(name, labels={"queue": "root.small"})
    cluster.advance(10)
    (waiting,) = (name for name in "abc" if name not in cluster.places)

    assert ("False", "SchedulingSkipped") == cluster.condition(waiting)[:2]
    assert ["SchedulingSkipped"] == cluster.events(waiting)
    assert "root.small" in cluster.condition(waiting)[2]


def test_reports_of_pods_that_wait_do_not_grow(cluster: SteppedCluster) -> None:
    """However often the scheduler says that they wait, each is asked about each half minute."""
    cluster.add_node(cpu="1")
    for number in range(20):
        cluster.add_pod(f"p{number}", cpu="2")
    cluster.advance(5)
    asked: list[str] = []
    waiting = cluster.parts().waiting
    explain = waiting._explain

    def noting(application: str, key: str) -> object:
        asked.append(key)
        return explain(application, key)

    waiting._explain = noting
    for _ in range(10):
        for uid in list(cluster.coordinator.tasks):
            waiting.waits(uid)
        cluster.advance(1)
    asked.clear()
    cluster.advance(120)

    assert 20 == waiting.count
    assert 60 <= len(asked) <= 80
    assert 5 > cluster.loop.timers


def test_a_condition_counts_the_first_reason_of_each_node(cluster: SteppedCluster) -> None:
    """Also of nodes that are full: no pod is blamed for a taint that its node does not have."""
    taints = [{"key": "home", "value": "ada", "effect": "NoSchedule"}]
    cluster.add_node("n1", cpu="2")
    cluster.add_node("n2", cpu="2")
    cluster.add_node("home", cpu="1", taints=taints)
    cluster.add_node("old", unschedulable=True)
    cluster.add_node("broken", unschedulable=True, taints=taints)
    for number in range(8):
        cluster.add_pod(f"p{number}")
    cluster.advance(10)
    message = (
        "0/5 nodes are available: 2 Insufficient cpu, 2 cordoned, 1 untolerated taint home=ada:NoSchedule"
    )
    waiting = {f"p{number}" for number in range(8)} - set(cluster.places)

    assert 4 == len(waiting)
    assert {("False", "Unschedulable", message)} == {cluster.condition(name) for name in waiting}


def test_a_condition_tells_what_is_left_of_a_quota(cluster: SteppedCluster) -> None:
    """In the words for pods, and nodes are not named that have room."""
    cluster.add_node(cpu="8")
    for name in ("a", "b"):
        cluster.add_pod(name, cpu="1500m", labels={"queue": "root.small"})
    cluster.advance(10)

    assert ("False", "SchedulingSkipped", "queue root.small: 500m of 2 cpu left") == cluster.condition("b")


def test_a_pod_waits_for_the_first_node_at_once(cluster: SteppedCluster) -> None:
    """An autoscaler adds it."""
    cluster.add_pod()
    cluster.advance(0.1)

    assert ("False", "Unschedulable", "0/0 nodes are available") == cluster.condition()


def test_a_pod_that_needs_one_node_is_not_unschedulable(cluster: SteppedCluster) -> None:
    """As those of a DaemonSet: another node would not help."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    owner = {"kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    cluster.add_node(cpu="1")
    cluster.add_pod(cpu="2", affinity={"nodeAffinity": required}, metadata={"ownerReferences": [owner]})
    cluster.advance(10)

    assert ("False", "SchedulingSkipped") == cluster.condition()[:2]


def test_a_pod_for_which_others_end_names_its_node(cluster: SteppedCluster) -> None:
    """And the condition tells that it waits for them; it is no longer there when nobody ends for the pod."""
    cluster.add_node(cpu="2")
    for name in ("a", "b"):
        cluster.add_pod(name, app="low", labels={"queue": "root.low"})
    cluster.settle()
    cluster.run_pods()
    cluster.add_pod("p", app="high", labels={"queue": "root.high"})
    cluster.stub.fail("DELETE", f"{PODS}/.*", status=500, times=100)
    for _ in range(6):
        cluster.advance(5)

    assert "n1" == cluster.pod()["status"]["nominatedNodeName"]
    assert "it has preempted, and waits until its victims have ended" in cluster.condition()[2]


def test_a_pod_that_preempts_nothing_tells_why(cluster: SteppedCluster) -> None:
    """The last attempt has failed for this reason."""
    cluster.add_node(cpu="1")
    cluster.add_pod("a", app="high", labels={"queue": "root.high"})
    cluster.settle()
    cluster.add_pod("b", app="high", labels={"queue": "root.high"})
    cluster.advance(60)

    expected = "0/1 nodes are available: 1 Insufficient cpu; preemption: "
    assert cluster.condition("b")[2].startswith(expected)


def test_changed_counts_are_not_an_event(cluster: SteppedCluster) -> None:
    """The condition has the present numbers; a new event tells of another kind of reason."""
    cluster.add_node("n1", cpu="1")
    cluster.add_pod(cpu="2")
    cluster.advance(5)
    for number in range(2, 6):
        cluster.add_node(f"n{number}", cpu="1")
        cluster.advance(40)

    assert "0/5 nodes are available: 5 Insufficient cpu" == cluster.condition()[2]
    assert ["PodUnschedulable"] == cluster.events("p")


WORDS: Final = {
    "2 Insufficient vcore, 1 cordoned": "2 Insufficient cpu, 1 cordoned",
    "queue root.vcore: 2 of 10 vcore left": "queue root.vcore: 2 of 10 cpu left",
    "no node has room for pods 1, vcore 1m": "no node has room for pods 1, cpu 1m",
    "queue root.vcore has no room: vcore 3 asked": "queue root.vcore has no room: cpu 3 asked",
    "cpu and vcore mean one resource": "cpu and vcore mean one resource",
}


@pytest.mark.parametrize("text", WORDS)
def test_cores_are_called_as_pods_call_them(text: str) -> None:
    """Names that resemble them stay."""
    assert WORDS[text] == words_of_pods(text)

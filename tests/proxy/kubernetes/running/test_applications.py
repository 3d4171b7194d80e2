"""The life of an application, with a scheduler that is stepped: each way that it can go."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.kubernetes.stepped_cluster import PODS, SteppedCluster

from licorne.proxy.kubernetes.running.tasks import TaskState
from licorne.proxy.si import si_pb2 as si

NAMESPACES: Final = "/api/v1/namespaces"
REJECTED: Final = {"yunikorn.apache.org/queue": "root.nowhere.at.all"}
"""A queue that is not there, and that nothing creates."""
STRICT: Final = """
partitions:
- name: default
  placementrules: [{name: provided, create: false}]
  queues: [{name: root, submitacl: "*", queues: [{name: jobs}]}]
"""


def test_pods_of_one_id_are_one_application(cluster: SteppedCluster) -> None:
    """It is submitted once, in the queue of its namespace, and runs."""
    cluster.add_node()
    for name in "abc":
        cluster.add_pod(name)
    cluster.settle()

    assert {"app": "Running"} == cluster.states
    assert {"a": "n1", "b": "n1", "c": "n1"} == cluster.places
    assert cluster.pod_places == cluster.core_places


def test_one_application_in_two_namespaces_says_so(cluster: SteppedCluster) -> None:
    """Its queue is that of the namespace that was first."""
    cluster.add_node()
    cluster.add_pod("a")
    cluster.settle()
    cluster.stub.add("/api/v1/namespaces", {"metadata": {"name": "red"}})
    document = cluster.pod("a")
    del document["metadata"]["uid"], document["spec"]["nodeName"]
    cluster.stub.add(
        "/api/v1/namespaces/red/pods", {**document, "metadata": {**document["metadata"], "name": "b"}}
    )
    cluster.settle()

    assert ["Scheduling", "Scheduled"] == cluster.events("b")
    assert {"app": "Running"} == cluster.states


def test_an_application_whose_pods_have_ended_completes_and_is_forgotten(cluster: SteppedCluster) -> None:
    """The scheduler completes it half a minute later; nothing of it is remembered here."""
    cluster.add_node()
    cluster.add_pod()
    cluster.settle()
    cluster.end_pod()
    cluster.advance(1)

    assert {"app": "Completing"} == cluster.states
    assert cluster.application() is not None

    cluster.advance(60)

    assert (None, {}) == (cluster.application(), cluster.states)


def test_a_pod_of_an_application_that_is_completing_runs(cluster: SteppedCluster) -> None:
    """It goes on where it is."""
    cluster.add_node()
    cluster.add_pod("a")
    cluster.settle()
    cluster.end_pod("a")
    cluster.advance(10)
    cluster.add_pod("b")
    cluster.advance(60)

    assert "n1" == cluster.node_of("b")
    assert {"app": "Running"} == cluster.states


def test_a_pod_that_comes_while_its_application_completes_makes_it_anew(cluster: SteppedCluster) -> None:
    """What the scheduler has said already is not lost, whichever message comes first."""
    cluster.add_node()
    cluster.add_pod("a")
    cluster.settle()
    cluster.end_pod("a")
    cluster.settle()
    # It completes, and the pod comes before the coordinator hears of that.
    cluster.scheduler.advance_to(cluster.scheduler.now_ns() + 60 * 10**9)
    cluster.add_pod("b")
    cluster.settle()

    assert "n1" == cluster.node_of("b")
    assert {"app": "Running"} == cluster.states
    assert cluster.pod_places == cluster.core_places


def test_an_application_whose_only_pod_ends_before_it_is_accepted_is_removed(cluster: SteppedCluster) -> None:
    """The scheduler would keep it for ever, as it has got nothing of it."""
    uid = cluster.add_pod()
    cluster._feed()
    cluster.stub.remove(f"{PODS}/p")
    cluster.settle()

    assert uid not in cluster.coordinator.tasks
    assert (None, {}) == (cluster.application(), cluster.states)


def test_an_application_whose_pods_are_all_refused_does_not_stay(cluster: SteppedCluster) -> None:
    """The scheduler has taken none of its asks, so it stays New there until it is removed."""
    cluster.add_pod("p", cpu="-1")
    cluster.settle()

    assert TaskState.REJECTED is next(iter(cluster.coordinator.tasks.values())).state
    assert ["TaskRejected"] == cluster.events("p")

    cluster.stub.remove(f"{PODS}/p")
    cluster.advance(100)

    assert (None, {}) == (cluster.application(), cluster.states)


# ------------------------------------------------------------------------------------------- rejections


@pytest.fixture
def strict() -> SteppedCluster:
    """Return a scheduler that rejects applications without a queue."""
    found = SteppedCluster(queues=STRICT)
    found.add_node()
    found.settle()
    return found


def submissions(cluster: SteppedCluster) -> list[int]:
    """Return a list that grows: the seconds from now on at which an application is submitted."""
    found: list[int] = []
    requests, begun = cluster.parts().requests, cluster.loop.now()
    add = requests.add

    def noted(entry: Any) -> None:
        if isinstance(entry, si.AddApplicationRequest):
            found.append(round(cluster.loop.now() - begun))
        add(entry)

    requests.add = noted
    return found


def test_the_pods_of_a_rejected_application_wait(strict: SteppedCluster) -> None:
    """With the reason of the scheduler; nothing fails, and more nodes would not help."""
    strict.add_pod(labels=REJECTED)
    strict.settle()
    status, reason, message = strict.condition()

    assert ("Pending", "False", "SchedulingSkipped") == (strict.pod()["status"]["phase"], status, reason)
    assert "failed to place application app" in message
    assert ["ApplicationRejected"] == strict.events("p")


def test_a_controller_makes_no_pods_without_end(strict: SteppedCluster) -> None:
    """It makes a new pod for each that has failed, and there is none."""
    made = 0
    for _ in range(600):
        alive = [pod for pod in strict.stub.objects(PODS) if pod["status"]["phase"] == "Pending"]
        for _ in range(3 - len(alive)):
            owner = {"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
            strict.add_pod(f"r{made}", labels=REJECTED, metadata={"ownerReferences": [owner]})
            made += 1
        strict.advance(1)

    assert 3 == made


def test_a_rejected_application_is_submitted_again_after_a_pause_that_doubles(strict: SteppedCluster) -> None:
    """Up to five minutes."""
    found = submissions(strict)
    strict.add_pod(labels=REJECTED)
    strict.advance(1000)

    assert [0, 10, 30, 70, 150, 310, 610, 910] == found


def test_a_rejected_application_that_is_made_anew_waits_as_long(strict: SteppedCluster) -> None:
    """Its pods are deleted and come again; the new one gives the reason at once."""
    found = submissions(strict)
    for _ in range(8):
        strict.add_pod(labels=REJECTED)
        strict.settle()

        assert "SchedulingSkipped" == strict.condition()[1]

        strict.advance(5)
        strict.stub.remove(f"{PODS}/p")

    assert [0, 10, 30] == found


def test_a_pod_that_comes_to_a_rejected_application_is_not_forgotten(strict: SteppedCluster) -> None:
    """It gives the same reason, and is tried with the others."""
    strict.add_pod("a", labels=REJECTED)
    strict.settle()
    strict.add_pod("b", labels={"yunikorn.apache.org/queue": "root.jobs"})
    strict.settle()

    assert strict.condition("a") == strict.condition("b")

    strict.stub.remove(f"{PODS}/a")
    strict.advance(15)

    assert "SchedulingSkipped" == strict.condition("b")[1]


def test_a_queue_that_comes_takes_what_was_rejected(strict: SteppedCluster) -> None:
    """With the next attempt."""
    strict.add_pod(labels={"yunikorn.apache.org/queue": "root.later"})
    strict.settle()
    queues = STRICT.replace("jobs", "later")
    data = {"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": queues}}
    strict.stub.add("/api/v1/namespaces/default/configmaps", data)
    strict.advance(11)

    assert "n1" == strict.node_of()


def test_an_accepted_application_ends_the_pauses(strict: SteppedCluster) -> None:
    """With a queue that is there it runs after the first pause."""
    strict.add_pod("a", labels=REJECTED)
    strict.settle()
    strict.stub.remove(f"{PODS}/a")
    strict.add_pod("b", labels={"yunikorn.apache.org/queue": "root.jobs"})
    strict.settle()

    assert "" == strict.node_of("b")

    strict.advance(10)

    assert "n1" == strict.node_of("b")


def test_pods_that_run_are_counted_though_their_application_is_rejected(strict: SteppedCluster) -> None:
    """The first pod waits, so nothing forces the application; the next time it is forced."""
    strict.add_pod("a", labels=REJECTED)
    strict.add_pod("b", labels=REJECTED, nodeName="n1")
    strict.advance(20)

    assert strict.pod_places == strict.core_places
    assert {"a": "n1", "b": "n1"} == strict.places


# ------------------------------------------------------------------------------------------- namespaces


def test_an_application_waits_for_its_namespace(cluster: SteppedCluster) -> None:
    """With it come the quotas, which nothing corrects later."""
    cluster.add_node()
    cluster.stub.remove(f"{NAMESPACES}/blue")
    cluster.settle()
    cluster.add_pod()
    cluster.advance(1)

    assert {} == cluster.states

    annotations = {"yunikorn.apache.org/namespace.quota": '{"cpu": "3"}'}
    cluster.stub.add(NAMESPACES, {"metadata": {"name": "blue", "annotations": annotations}})
    cluster.settle()
    root: Any = cluster.snapshot("queues")
    quotas = {queue["queuename"]: queue.get("maxResource") for queue in root["children"]}

    assert {"vcore": 3000} == quotas["root.blue"]
    assert "n1" == cluster.node_of()


def test_a_quota_that_is_raised_reaches_pods_that_wait(cluster: SteppedCluster) -> None:
    """As does one that is exchanged for a guarantee alone."""
    quota = "yunikorn.apache.org/namespace.quota"
    guarantee = "yunikorn.apache.org/namespace.guaranteed"
    path = f"{NAMESPACES}/blue"
    cluster.stub.change(path, {"metadata": {"annotations": {quota: '{"cpu": "1"}'}}})
    cluster.add_node()
    for name in "abc":
        cluster.add_pod(name)
    cluster.advance(5)

    assert 1 == len(cluster.places)

    cluster.stub.change(path, {"metadata": {"annotations": {quota: '{"cpu": "2"}'}}})
    cluster.advance(5)

    assert 2 == len(cluster.places)

    cluster.stub.change(path, {"metadata": {"annotations": {quota: None, guarantee: '{"cpu": "1"}'}}})
    cluster.advance(5)

    assert 3 == len(cluster.places)


def test_an_application_does_not_wait_for_ever_for_its_namespace(cluster: SteppedCluster) -> None:
    """After some seconds it is submitted without quotas."""
    cluster.add_node()
    cluster.stub.remove(f"{NAMESPACES}/blue")
    cluster.settle()
    cluster.add_pod()
    cluster.advance(6)

    assert "n1" == cluster.node_of()


def test_an_application_that_waits_for_its_namespace_can_end(cluster: SteppedCluster) -> None:
    """The scheduler never hears of it."""
    cluster.stub.remove(f"{NAMESPACES}/blue")
    cluster.settle()
    cluster.add_pod()
    cluster.settle()
    cluster.stub.remove(f"{PODS}/p")
    cluster.advance(10)

    assert (None, {}) == (cluster.application(), cluster.states)


def test_a_pod_on_a_node_does_not_wait_for_its_namespace(cluster: SteppedCluster) -> None:
    """It uses room already."""
    cluster.add_node()
    cluster.stub.remove(f"{NAMESPACES}/blue")
    cluster.settle()
    cluster.add_pod(nodeName="n1")
    cluster.settle()

    assert cluster.pod_places == cluster.core_places
    assert 1 == len(cluster.core_places)


def test_what_the_scheduler_has_lost_is_submitted_again(cluster: SteppedCluster) -> None:
    """An ask of an application that it does not know brings the application back, with all that runs."""
    cluster.add_node()
    cluster.add_pod("a")
    cluster.settle()
    removal = si.RemoveApplicationRequest(applicationID="app", partitionName="default")
    cluster.parts().requests.add(removal)
    cluster.settle()
    cluster.add_pod("b")
    cluster.advance(30)

    assert {"a": "n1", "b": "n1"} == cluster.places
    assert cluster.pod_places == cluster.core_places
    assert {"app": "Running"} == cluster.states

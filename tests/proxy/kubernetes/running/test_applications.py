"""The life of an application, with a scheduler that is stepped: each way that it can go."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from support.kubernetes.stepped_cluster import PODS, SETTINGS, SteppedCluster, gang_annotations
from support.kubernetes.stub_server import OWN_USER

from licorne.proxy.kubernetes.mapping.settings import PLACEHOLDER, USER_INFO
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


def test_a_pod_does_not_run_under_the_application_of_another_user(cluster: SteppedCluster) -> None:
    """It names the application of a user of another namespace, and gets its own; the queue is its own too."""
    cluster.add_node()
    cluster.add_pod("a", annotations={"yunikorn.apache.org/user.info": '{"user": "ada"}'})
    cluster.settle()
    cluster.stub.add("/api/v1/namespaces", {"metadata": {"name": "red"}})
    document = cluster.pod("a")
    del document["metadata"]["uid"], document["spec"]["nodeName"], document["metadata"]["annotations"]
    cluster.stub.add(
        "/api/v1/namespaces/red/pods", {**document, "metadata": {**document["metadata"], "name": "b"}}
    )
    cluster.settle()
    found = {
        each["applicationID"]: (each["user"], each["queueName"]) for each in cluster.snapshot("applications")
    }

    assert {"app": ("ada", "root.blue"), "app-red": ("nobody", "root.red")} == found
    assert "Scheduled" in cluster.events("b")


def users_of_applications(cluster: SteppedCluster) -> dict[str, str]:
    """Return the user of each application."""
    return {each["applicationID"]: each["user"] for each in cluster.snapshot("applications")}


@pytest.mark.parametrize("is_separate", [False, True])
def test_users_of_one_namespace_are_separated_by_a_setting(*, is_separate: bool) -> None:
    """The account of the first pod may join it: that of a driver creates its executors."""
    cluster = SteppedCluster(settings=replace(SETTINGS, separate_users=is_separate))
    cluster.add_node()
    for name in ("ada", "bob", "system:serviceaccount:blue:spark", "system:serviceaccount:blue:other", "ada"):
        annotations = {"yunikorn.apache.org/user.info": json.dumps({"user": name})}
        pod_name = f"p{len(cluster.stub.objects(PODS))}"
        cluster.add_pod(pod_name, cpu="100m", annotations=annotations, serviceAccountName="spark")
        cluster.settle()
    other = "system:serviceaccount:blue:other"
    separate = {"app-bob": "bob", f"app-{other}": other} if is_separate else {}
    allocations = {
        each["applicationID"]: len(each["allocations"]) for each in cluster.snapshot("applications")
    }

    assert {"app": "ada", **separate} == users_of_applications(cluster)
    assert 5 - len(separate) == allocations["app"]
    assert 5 == len(cluster.places)
    cluster.stop()


def test_users_with_a_setting_that_separates_them_have_gangs() -> None:
    """Placeholders have the account of the scheduler as their user, and belong to the gang."""
    cluster = SteppedCluster(settings=replace(SETTINGS, separate_users=True))
    cluster.add_node()
    annotations = gang_annotations({}, member="workers")
    annotations["yunikorn.apache.org/user.info"] = '{"user": "ada"}'
    cluster.add_pod(annotations=annotations)
    for _ in range(4):
        cluster.advance(2)
        cluster.run_pods()

    assert ({"app": "ada"}, "n1") == (users_of_applications(cluster), cluster.node_of())
    cluster.stop()


def test_a_placeholder_that_another_user_writes_does_not_join_a_gang() -> None:
    """It would take the place of a real one; those of the scheduler join also after a restart."""
    cluster = SteppedCluster(settings=replace(SETTINGS, separate_users=True))
    cluster.add_node(cpu="1")
    annotations = gang_annotations({"minMember": 2}, member="workers")
    cluster.add_pod(annotations={**annotations, USER_INFO: '{"user": "ada"}'})
    cluster.settle()
    real = cluster.placeholders
    cluster.restart()
    forged = {PLACEHOLDER: "true", USER_INFO: '{"user": "bob"}'}
    cluster.add_pod("forged", cpu="100m", annotations={**annotations, **forged})
    cluster.settle()
    users = {cluster.pod(name)["metadata"]["annotations"][USER_INFO] for name in real}
    application = cluster.application()

    assert application is not None
    assert sorted(["p", *real]) == sorted(task.pod.metadata.name for task in application.tasks.values())
    assert [OWN_USER] == [json.loads(each)["user"] for each in users]
    assert "forged" not in cluster.places
    assert "Scheduling" in cluster.events("forged")
    cluster.stop()


def test_an_application_that_was_of_another_user_is_not_joined(cluster: SteppedCluster) -> None:
    """Its pods have ended; the scheduler keeps it for a while, with its user and queue."""
    cluster.add_node()
    cluster.add_pod("a", annotations={"yunikorn.apache.org/user.info": '{"user": "ada"}'})
    cluster.settle()
    document = cluster.pod("a")
    cluster.end_pod("a")
    cluster.stub.remove(f"{PODS}/a")
    cluster.stub.add("/api/v1/namespaces", {"metadata": {"name": "red"}})
    cluster.settle()
    del document["metadata"]["uid"], document["spec"]["nodeName"], document["metadata"]["annotations"]
    cluster.stub.add("/api/v1/namespaces/red/pods", document)
    cluster.settle()

    assert {"app": "ada", "app-red": "nobody"} == users_of_applications(cluster)


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


def add_queue(cluster: SteppedCluster, name: str) -> None:
    """Put a queue into the place of the only one."""
    data = {"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": STRICT.replace("jobs", name)}}
    cluster.stub.add("/api/v1/namespaces/default/configmaps", data)


def submissions(cluster: SteppedCluster) -> list[int]:
    """Return a list that grows: the seconds from now on at which an application is submitted."""
    found: list[int] = []
    requests, begun = cluster.parts().shared.requests, cluster.loop.now()
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


def test_a_pod_that_names_its_node_does_not_start_a_rejected_application(strict: SteppedCluster) -> None:
    """It counts on its node like a pod of another scheduler, and the others wait."""
    strict.add_pod("a", labels=REJECTED)
    strict.settle()
    uid = strict.add_pod("b", labels=REJECTED, nodeName="n1")
    strict.advance(400)

    assert "SchedulingSkipped" == strict.condition("a")[1]
    assert ({"b": "n1"}, {uid: "n1"}) == (strict.places, strict.core_places)

    strict.end_pod("b")
    strict.advance(1)

    assert {} == strict.core_places


def test_a_pod_that_names_its_node_admits_no_others(strict: SteppedCluster) -> None:
    """Neither as the first pod of its application nor by a restart; it is counted when the queue exists."""
    labels = {"yunikorn.apache.org/queue": "root.later"}
    uid = strict.add_pod("a", labels=labels, nodeName="n1")
    strict.settle()
    other = strict.add_pod("b", labels=labels)
    for _ in range(2):
        strict.advance(20)

        assert ("SchedulingSkipped", {"a": "n1"}) == (strict.condition("b")[1], strict.places)
        assert {uid: "n1"} == strict.core_places

        strict.restart()

    add_queue(strict, "later")
    strict.advance(45)

    assert {uid: "n1", other: "n1"} == strict.core_places
    assert {"app": "Running"} == strict.states
    assert not strict.snapshot("nodes")[0].get("foreignAllocations")


def test_a_pod_whose_user_is_invalid_closes_no_node(strict: SteppedCluster) -> None:
    """After a restart, others are placed on the node that it names, in the room that it leaves."""
    annotations = {"yunikorn.apache.org/user.info": '{"user": "no user"}'}
    strict.add_pod("a", cpu="2", annotations=annotations, nodeName="n1")
    strict.settle()
    strict.restart()
    for name in ("b", "c"):
        strict.add_pod(name, cpu="2", app="jobs", labels={"yunikorn.apache.org/queue": "root.jobs"})
    strict.advance(5)

    assert {"a": "n1", "b": "n1"} == strict.places


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
    add_queue(strict, "later")
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
    cluster.parts().shared.requests.add(removal)
    cluster.settle()
    cluster.add_pod("b")
    cluster.advance(30)

    assert {"a": "n1", "b": "n1"} == cluster.places
    assert cluster.pod_places == cluster.core_places
    assert {"app": "Running"} == cluster.states

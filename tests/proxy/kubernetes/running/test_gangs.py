"""Gangs with pods as placeholders: reserved, complete, timed out, broken off, and found after a restart."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from support.kubernetes.stepped_cluster import NODES, PODS, SteppedCluster, gang_annotations

from licorne.proxy.kubernetes.running.tasks import PodApplicationPhase

WORKERS: Final = {"minMember": 2}
SOFT: Final = "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Soft"
HARD: Final = "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard"


def add_member(cluster: SteppedCluster, name: str, policy: str = "", **more: Any) -> str:
    """Add a member of a gang of two, whose first pod it may be."""
    annotations = gang_annotations(WORKERS, policy=policy, member="workers")
    return cluster.add_pod(name, app="gang", annotations=annotations, **more)


def settle(cluster: SteppedCluster, seconds: float = 0) -> None:
    """Let time pass in steps, and delete what is to be deleted as kubelets do."""
    cluster.settle()
    while True:
        cluster.stub.finish_deletions()
        cluster.advance(min(seconds, 1))
        seconds -= 1
        if seconds <= 0:
            return


def phase(cluster: SteppedCluster) -> PodApplicationPhase | None:
    """Return how far the gang is, `None` if it is forgotten."""
    application = cluster.application("gang")
    return None if application is None else application.phase


def test_a_gang_comes_together(cluster: SteppedCluster) -> None:
    """Placeholders take the room, and the members their places; nothing is left over."""
    cluster.add_node(cpu="2")
    for name in "ab":
        add_member(cluster, name)
    settle(cluster)

    assert {"a": "n1", "b": "n1"} == cluster.places
    assert [] == cluster.placeholders
    assert cluster.pod_places == cluster.core_places
    assert 1 == cluster.events("a").count("GangReservationComplete")

    for name in "ab":
        cluster.end_pod(name)
    settle(cluster, 60)

    assert (None, {}) == (cluster.application("gang"), cluster.states)


def test_members_wait_until_the_gang_is_complete(cluster: SteppedCluster) -> None:
    """They say so; with room for one placeholder none of them runs."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a")
    add_member(cluster, "b")
    settle(cluster, 2)

    assert ["tg"] == [name[:2] for name in cluster.places]
    assert PodApplicationPhase.RESERVING is phase(cluster)
    assert ("False", "SchedulingSkipped") == cluster.condition("b")[:2]
    assert ["SchedulingSkipped"] == cluster.events("b")

    cluster.add_node("n2", cpu="1")
    settle(cluster, 2)

    assert {"a", "b"} == set(cluster.places)


def test_placeholders_say_why_they_wait(cluster: SteppedCluster) -> None:
    """An autoscaler looks for that."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a")
    settle(cluster, 3)
    (waiting,) = (name for name in cluster.placeholders if name not in cluster.places)

    assert ("False", "Unschedulable") == cluster.condition(waiting)[:2]


def test_a_soft_gang_runs_without_when_its_time_is_over(cluster: SteppedCluster) -> None:
    """The placeholders end, and the members are pods like others."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a", policy=SOFT)
    add_member(cluster, "b", policy=SOFT)
    settle(cluster, 70)

    assert {"a": "n1"} == cluster.places
    assert [] == cluster.placeholders
    assert "GangSchedulingFailed" in cluster.events("a")
    assert cluster.pod_places == cluster.core_places

    cluster.end_pod("a")
    settle(cluster, 2)

    assert "n1" == cluster.node_of("b")


def test_the_pods_of_a_hard_gang_fail_when_its_time_is_over(cluster: SteppedCluster) -> None:
    """With a reason that controllers show; nothing is left, and the next gang of the name begins anew."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a", policy=HARD)
    settle(cluster, 70)

    status = cluster.pod("a")["status"]

    assert ("Failed", "ResourceReservationTimeout") == (status["phase"], status["reason"])
    assert ([], {}) == (cluster.placeholders, cluster.core_places)

    cluster.stub.remove(f"{PODS}/a")
    cluster.add_node("n2", cpu="1")
    settle(cluster, 10)
    add_member(cluster, "a2", policy=HARD)
    settle(cluster, 20)

    assert ["a2"] == [name for name in cluster.places if not name.startswith("tg-")]


def test_a_hard_gang_of_a_controller_waits_and_is_reserved_anew(cluster: SteppedCluster) -> None:
    """A new pod for each that fails would go on without end."""
    owner = {"kind": "Job", "name": "j", "uid": "u", "controller": True}
    annotations = gang_annotations({"minMember": 2}, policy=HARD, member="workers")
    cluster.add_node(cpu="1")
    for name in "ab":
        cluster.add_pod(name, annotations=annotations, metadata={"ownerReferences": [owner]})
    settle(cluster, 65)

    assert ["Pending", "Pending"] == [cluster.pod(name)["status"]["phase"] for name in "ab"]
    expected = ("False", "SchedulingSkipped", "Scheduling has timed out due to insufficient resources")
    assert [expected] * 2 == [cluster.condition(name) for name in "ab"]
    assert [] == cluster.placeholders

    cluster.add_node("n2", cpu="1")
    settle(cluster, 60)

    assert ["a", "b"] == sorted(name for name in cluster.places if not name.startswith("tg-"))


def test_a_pod_that_comes_while_its_gang_fails_begins_it_anew(cluster: SteppedCluster) -> None:
    """It does not wait in an application that has failed."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a", policy=HARD)
    settle(cluster, 58)
    cluster.stub.fail("DELETE", f"{PODS}/tg-.*", times=2)
    cluster.stub.fail("PATCH", f"{PODS}/a/status", times=3)
    settle(cluster, 4)
    cluster.add_node("n2", cpu="1")
    add_member(cluster, "later", policy=HARD)
    settle(cluster, 60)

    assert "Failed" == cluster.pod("a")["status"]["phase"]
    assert "later" in cluster.places
    assert cluster.pod_places == cluster.core_places


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_gang_whose_placeholders_cannot_be_created_runs_without(
    cluster: SteppedCluster, status: int
) -> None:
    """Also if some are there already: a quota of the namespace may be used up by then."""
    cluster.add_node(cpu="1")
    created: list[int] = []

    def refuse_the_second() -> None:
        created.append(1)
        if len(created) == 1:
            cluster.stub.fail("POST", PODS, status=status, times=None)

    cluster.stub.before("POST", PODS, refuse_the_second, times=1)
    add_member(cluster, "a")
    add_member(cluster, "b")
    settle(cluster, 20)

    assert {"a": "n1"} == cluster.places
    assert [] == cluster.placeholders
    assert "PlaceholderCreateFailed" in cluster.events("a")

    cluster.end_pod("a")
    settle(cluster, 2)

    assert "n1" == cluster.node_of("b")


@pytest.mark.parametrize("fault", ["drop", "lose_answer", "fail"])
def test_a_placeholder_is_created_once_whatever_becomes_of_the_answer(
    cluster: SteppedCluster, fault: str
) -> None:
    """Its name makes sure of that."""
    cluster.add_node(cpu="2")
    getattr(cluster.stub, fault)("POST", PODS, times=3)
    add_member(cluster, "a")
    cluster.advance(20)

    assert 2 == len({request.body for request in cluster.stub.asked("POST", PODS)})
    assert {"a"} < set(cluster.places)
    assert cluster.pod_places == cluster.core_places


@pytest.mark.parametrize("cpu", ["2", "1"], ids=["one on a node", "one that waits"])
def test_a_placeholder_that_ends_too_early_is_replaced(cluster: SteppedCluster, cpu: str) -> None:
    """Somebody deletes it, and the gang would never be complete."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a")
    add_member(cluster, "b")
    settle(cluster)
    chosen = [name for name in cluster.placeholders if (name in cluster.places) == (cpu == "2")]
    cluster.stub.remove(f"{PODS}/{chosen[0]}")
    settle(cluster, 10)

    assert 2 == len(cluster.placeholders)

    cluster.add_node("n2", cpu="3")
    add_member(cluster, "c")
    settle(cluster, 10)

    assert {"a", "b", "c"} == set(cluster.places)
    assert cluster.pod_places == cluster.core_places


def test_members_do_not_wait_for_a_placeholder_that_was_never_placed(cluster: SteppedCluster) -> None:
    """Another one takes its place before it is replaced, and the scheduler counts three of them."""
    cluster.add_node(cpu="1")
    for name in "abc":
        add_member(cluster, name)
    settle(cluster)
    (waiting,) = (name for name in cluster.placeholders if name not in cluster.places)
    document = cluster.pod(waiting)
    cluster.stub.remove(f"{PODS}/{waiting}")
    del document["metadata"]["uid"], document["metadata"]["resourceVersion"]
    cluster.settle()
    cluster.stub.add(PODS, document)
    cluster.add_node("n2", cpu="2")
    settle(cluster, 10)

    assert {"a", "b", "c"} == set(cluster.places)
    assert cluster.pod_places == cluster.core_places


def test_a_placeholder_that_the_watch_never_shows_is_replaced(cluster: SteppedCluster) -> None:
    """It was deleted at once, and a list in between has neither."""
    cluster.add_node(cpu="2")
    add_member(cluster, "a")
    cluster._feed()
    cluster.watches = False
    cluster.settle()
    for name in cluster.placeholders:
        cluster.stub.remove(f"{PODS}/{name}")
    cluster.relist()
    cluster.watches = True
    settle(cluster, 5)

    assert {} == cluster.places

    settle(cluster, 60)

    assert {"a"} < set(cluster.places)


def test_a_placeholder_that_is_preempted_is_replaced(cluster: SteppedCluster) -> None:
    """The gang reserves its room again, later."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a", labels={"queue": "root.low"})
    settle(cluster, 1)
    cluster.add_pod("urgent", app="other", labels={"queue": "root.high"})
    settle(cluster, 60)

    assert "n1" == cluster.node_of("urgent")
    assert 2 == len(cluster.placeholders)
    assert cluster.pod_places == cluster.core_places


def test_placeholders_end_with_the_last_member(cluster: SteppedCluster) -> None:
    """Nothing will replace them."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a")
    settle(cluster, 1)
    cluster.stub.remove(f"{PODS}/a")
    settle(cluster, 10)

    assert ([], {}, {}) == (cluster.placeholders, cluster.states, cluster.core_places)
    assert None is cluster.application("gang")


def test_a_gang_goes_on_when_its_first_pod_has_ended(cluster: SteppedCluster) -> None:
    """New placeholders belong to a pod that is there, or they would be deleted at once."""
    cluster.add_node(cpu="1")
    first = add_member(cluster, "a")
    second = add_member(cluster, "b")
    settle(cluster, 1)
    cluster.stub.remove(f"{PODS}/a")
    for name in cluster.placeholders:
        cluster.stub.remove(f"{PODS}/{name}")
    settle(cluster, 10)
    owners = {cluster.pod(name)["metadata"]["ownerReferences"][0]["uid"] for name in cluster.placeholders}

    assert first != second
    assert {second} == owners


def test_a_placeholder_too_many_ends(cluster: SteppedCluster) -> None:
    """One that was created before a restart may come late."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a")
    settle(cluster, 1)
    document = cluster.pod(cluster.placeholders[0])
    metadata = {
        key: text for key, text in document["metadata"].items() if key not in {"uid", "resourceVersion"}
    }
    spec = {key: value for key, value in document["spec"].items() if key != "nodeName"}
    cluster.stub.add(PODS, {"metadata": {**metadata, "name": "tg-late"}, "spec": spec})
    settle(cluster, 5)

    assert "tg-late" not in cluster.placeholders
    assert 2 == len(cluster.placeholders)


def test_a_member_of_another_size_than_its_group_says_so(cluster: SteppedCluster) -> None:
    """An injected sidecar makes it larger: then no placeholder helps it."""
    cluster.add_node(cpu="8")
    add_member(cluster, "a", cpu="1500m")
    settle(cluster, 10)
    notes = [
        event["note"]
        for event in cluster.stub.objects("/apis/events.k8s.io/v1/events")
        if event["action"] == "TaskGroupMatch"
    ]

    assert ["the pod needs other resources than its task group says: cpu 1500m and not 1000m"] == notes
    assert "n1" == cluster.node_of("a")


def test_a_bad_declaration_is_no_gang(cluster: SteppedCluster) -> None:
    """People are told, and the pods run."""
    cluster.add_node()
    annotations = gang_annotations({"minMember": 0}, member="workers")
    cluster.add_pod("a", app="gang", annotations=annotations)
    settle(cluster)

    assert {"a": "n1"} == cluster.places
    assert ["TaskGroupsError", "Scheduled"] == cluster.events("a")


def test_a_node_that_goes_takes_placeholders_with_it(cluster: SteppedCluster) -> None:
    """The pods are deleted with the node; the gang reserves again."""
    cluster.add_node("n1", cpu="1")
    add_member(cluster, "a")
    settle(cluster, 1)
    (lost,) = cluster.places
    cluster.stub.remove(f"{NODES}/n1")
    settle(cluster, 1)
    cluster.stub.remove(f"{PODS}/{lost}")
    cluster.add_node("n2", cpu="2")
    settle(cluster, 10)

    assert "n2" == cluster.node_of("a")
    assert cluster.pod_places == cluster.core_places


# -------------------------------------------------------------------------------------------------- restarts


@pytest.mark.parametrize("rooms", range(5))
@pytest.mark.parametrize("ends", [True, False], ids=["with kubelets", "before placeholders are gone"])
def test_a_gang_goes_on_after_a_restart(cluster: SteppedCluster, rooms: int, ends: bool) -> None:  # noqa: FBT001 - of the table
    """However far it was, no placeholder is made twice, and in the end all members run."""
    cluster.add_node(cpu=str(rooms))
    for name in "abc":
        add_member(cluster, name)
    cluster.settle()
    if ends:
        settle(cluster, 1)
    before = set(cluster.placeholders)
    cluster.restart()
    cluster.advance(1)

    assert before >= set(cluster.placeholders)
    assert cluster.pod_places == cluster.core_places

    cluster.add_node("n2", cpu="3")
    settle(cluster, 20)

    assert {"a", "b", "c"} == set(cluster.places)
    assert [] == cluster.placeholders
    assert cluster.pod_places == cluster.core_places


def test_a_gang_has_the_user_of_its_first_member_after_a_restart(cluster: SteppedCluster) -> None:
    """Also if a placeholder of the same second precedes it in the list: the list is in the order of names."""
    ada = {"yunikorn.apache.org/user.info": '{"user": "ada"}'}
    cluster.watches = False
    gang = gang_annotations(WORKERS, member="workers")
    flag = {"internal.yunikorn.apache.org/placeholder": "true"}
    for name, more in (("placeholder", flag), ("worker", ada)):
        cluster.add_pod(name, app="gang", annotations={**gang, **more})
    cluster.watches = True

    cluster.restart()

    assert ["ada"] == [each["user"] for each in cluster.snapshot("applications")]


@pytest.mark.parametrize(("policy", "phases"), [(SOFT, "Pending"), (HARD, "Failed")], ids=["soft", "hard"])
def test_a_gang_whose_time_is_over_at_a_restart_is_not_reserved(
    cluster: SteppedCluster, policy: str, phases: str
) -> None:
    """Its placeholders would time out at once."""
    created = datetime.fromtimestamp(cluster.loop.unix_seconds() - 61, UTC)
    old = {"creationTimestamp": f"{created:%Y-%m-%dT%H:%M:%SZ}"}
    cluster.stub.fail("POST", PODS, status=503, times=None)
    add_member(cluster, "a", policy=policy, metadata=old)
    cluster.restart()
    settle(cluster, 5)

    assert [] == cluster.stub.asked("POST", PODS)
    assert phases == cluster.pod("a")["status"]["phase"]

    cluster.add_node()
    settle(cluster, 5)

    assert (phases == "Pending") == ("a" in cluster.places)


def test_placeholders_without_members_end_after_a_restart(cluster: SteppedCluster) -> None:
    """Their job is over."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a")
    settle(cluster, 1)
    cluster.watches = False
    cluster.stub.remove(f"{PODS}/a")
    cluster.watches = True
    cluster.restart()
    settle(cluster, 5)

    assert ([], {}) == (cluster.placeholders, cluster.core_places)

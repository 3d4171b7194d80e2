"""The life of a pod: what it waits for, where it runs, and how it ends, on both sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest
from support.kubernetes.stepped_cluster import PODS, SETTINGS, SteppedCluster

from licorne.proxy.kubernetes.running.tasks import TaskState
from licorne.proxy.si import si_pb2 as si

CLAIMS: Final = "/api/v1/namespaces/blue/persistentvolumeclaims"
CLAIM: Final = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
TAINTS: Final = [{"key": "gpu", "effect": "NoSchedule"}]


def release(uid: str, kind: si.TerminationType) -> si.AllocationResponse:
    """Return what the scheduler says when it ends something."""
    ended = si.AllocationRelease(allocationKey=uid, applicationID="app", terminationType=kind)
    return si.AllocationResponse(released=[ended])


# ------------------------------------------------------------------------------- before it is asked for


def test_a_gated_pod_is_asked_for_when_its_gates_are_lifted(cluster: SteppedCluster) -> None:
    """People are told of the gates once, however often the pod changes."""
    cluster.add_node()
    uid = cluster.add_pod(schedulingGates=[{"name": "quota"}])
    cluster.settle()
    cluster.stub.change(f"{PODS}/p", {"metadata": {"labels": {"new": "label"}}})
    cluster.advance(100)
    cluster.relist()
    cluster.advance(100)

    assert (["Scheduling"], {}) == (cluster.events("p"), cluster.places)
    assert uid not in cluster.coordinator.tasks

    cluster.stub.change(f"{PODS}/p", {"spec": {"schedulingGates": []}})
    cluster.settle()

    assert {"p": "n1"} == cluster.places


def test_a_pod_waits_for_its_claims(cluster: SteppedCluster) -> None:
    """It names the reason until the claim has its volume: another node would not help."""
    cluster.add_node()
    uid = cluster.add_pod(volumes=CLAIM)
    cluster.advance(60)

    assert ("False", "SchedulingSkipped", "persistentvolumeclaim 'data' not found") == cluster.condition()
    assert ["FailedScheduling"] == cluster.events("p")
    assert TaskState.NEW is cluster.task(uid).state

    cluster.stub.add(CLAIMS, {"metadata": {"name": "data"}, "spec": {"volumeName": "v"}})
    cluster.settle()

    assert TaskState.NEW is cluster.task(uid).state
    assert ("SchedulingSkipped", "the claim blue/data is not bound yet") == cluster.condition()[1:]

    cluster.stub.add("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": {}})
    cluster.stub.change(f"{CLAIMS}/data", {"status": {"phase": "Bound"}})
    cluster.advance(1)

    assert {"p": "n1"} == cluster.places


def test_a_pod_that_waits_for_a_claim_can_end(cluster: SteppedCluster) -> None:
    """Nothing asks for it when the claim comes."""
    cluster.add_pod(volumes=CLAIM)
    cluster.settle()
    cluster.stub.remove(f"{PODS}/p")
    cluster.settle()
    cluster.stub.add(CLAIMS, {"metadata": {"name": "data"}})
    cluster.settle()

    assert {} == cluster.coordinator.tasks


def test_a_pod_that_tolerates_more_is_judged_anew(cluster: SteppedCluster) -> None:
    """It does not share the refusals of pods as it was any more."""
    cluster.add_node(taints=TAINTS)
    cluster.add_pod("a")
    cluster.add_pod("b")
    cluster.settle()

    assert {} == cluster.places

    cluster.stub.change(f"{PODS}/a", {"spec": {"tolerations": [{"operator": "Exists"}]}})
    cluster.settle()

    assert {"a": "n1"} == cluster.places
    assert cluster.pod_places == cluster.core_places


def test_a_pod_that_ends_before_it_is_placed_is_withdrawn(cluster: SteppedCluster) -> None:
    """The scheduler does not keep room for it."""
    cluster.add_pod()
    cluster.settle()
    cluster.stub.remove(f"{PODS}/p")
    cluster.settle()
    cluster.add_node()
    cluster.settle()

    assert ({}, {}) == (cluster.coordinator.tasks, cluster.core_places)


def test_a_pod_that_is_being_deleted_is_not_bound(cluster: SteppedCluster) -> None:
    """A finalizer may keep it for long; the API server would refuse the bind."""
    cluster.add_pod()
    cluster.settle()
    cluster.stub.change(f"{PODS}/p", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    cluster.settle()
    cluster.add_node()
    cluster.advance(60)

    assert {} == cluster.coordinator.tasks
    assert [] == cluster.stub.asked("POST", f"{PODS}/p/binding")


# ----------------------------------------------------------------------------------------------- on a node


def test_a_pod_that_somebody_else_assigns_is_counted_where_it_is(cluster: SteppedCluster) -> None:
    """Also if the scheduler has placed it elsewhere, and has not said so yet."""
    uid = cluster.add_pod()
    cluster.settle()
    cluster.add_node("n1")
    cluster.place()

    assert {uid: "n1"} == cluster.core_places

    cluster.add_node("n2")
    cluster.stub.change(f"{PODS}/p", {"spec": {"nodeName": "n2"}})
    cluster.settle()

    assert {uid: "n2"} == cluster.core_places
    assert cluster.pod_places == cluster.core_places
    assert [] == cluster.stub.asked("POST", f"{PODS}/p/binding")


def test_a_pod_that_is_resized_is_counted_anew(cluster: SteppedCluster) -> None:
    """While it waits, and on its node."""
    cluster.add_node(cpu="4")
    cluster.add_pod(cpu="5")
    cluster.settle()

    assert {} == cluster.places

    resized = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}}
    cluster.stub.change(f"{PODS}/p", resized)
    cluster.settle()

    assert {"p": "n1"} == cluster.places

    resized["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    cluster.stub.change(f"{PODS}/p", resized)
    cluster.settle()
    (node,) = cluster.snapshot("nodes")

    assert 1000 == node["allocated"]["vcore"]


def test_a_pod_that_ends_is_not_counted_any_more(cluster: SteppedCluster) -> None:
    """What succeeds or fails uses nothing, though the API server keeps it."""
    cluster.add_node()
    cluster.add_pod("a")
    cluster.add_pod("b")
    cluster.settle()
    cluster.end_pod("a")
    cluster.end_pod("b", "Failed", "OutOfcpu")
    cluster.settle()

    assert ({}, {}) == (cluster.coordinator.tasks, cluster.core_places)
    assert ["Scheduled", "NodeRefusedPod"] == cluster.events("b")

    cluster.stub.remove(f"{PODS}/a")
    cluster.settle()

    assert {} == cluster.coordinator.tasks


def test_a_pod_of_the_same_name_is_another_one(cluster: SteppedCluster) -> None:
    """It is bound by itself."""
    cluster.add_node()
    first = cluster.add_pod()
    cluster.settle()
    cluster.stub.remove(f"{PODS}/p")
    second = cluster.add_pod()
    cluster.settle()

    assert first != second
    assert {second: "n1"} == cluster.core_places


def test_nothing_is_remembered_of_pods_that_are_gone(cluster: SteppedCluster) -> None:
    """Neither of ours nor of others, whatever they were waiting for."""
    cluster.add_node(cpu="2")
    cluster.add_pod("runs")
    cluster.add_pod("waits", cpu="9")
    cluster.add_pod("gated", schedulingGates=[{"name": "g"}])
    cluster.add_pod("claims", volumes=CLAIM)
    cluster.add_pod("alone", cpu="9", affinity=_anti_affinity())
    cluster.add_pod("foreign", scheduler="other", nodeName="n1")
    cluster.advance(100)
    cluster.advance(1)
    parts = cluster.parts()

    assert 3 == parts.waiting._reporter.condition_count
    assert 0 < parts.waiting.count

    for name in ("runs", "waits", "gated", "claims", "alone", "foreign"):
        cluster.stub.remove(f"{PODS}/{name}")
    cluster.advance(1000)
    shared, events = parts.shared, parts.events
    remembered = (
        *(shared.tasks, shared.blocked, parts.life._gated, shared.applications, shared.reconsidering.waiting),
        *(events._foreign, events._cache.pods, events._cache._node_of, events._cache._on),
        *(parts.waiting._due, parts.waiting._again, parts.waiting._reporter._conditions),
    )

    assert [0] * len(remembered) == [len(each) for each in remembered]
    assert 0 == cluster.loop.timers


def _anti_affinity() -> dict[str, object]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


# ------------------------------------------------------------------------------------------------- rejected


def test_a_rejected_pod_is_asked_for_again_after_a_pause(cluster: SteppedCluster) -> None:
    """It says why it waits, and the pauses grow."""
    uid = cluster.add_pod()
    cluster.settle()
    rejection = si.RejectedAllocation(allocationKey=uid, applicationID="app", reason="too large")
    response = si.AllocationResponse(rejectedAllocations=[rejection])
    pauses = []
    for _ in range(3):
        cluster.parts().shared.requests.take()
        cluster.coordinator._said("allocations", response)
        begun = cluster.loop.now()
        while cluster.task(uid).state is TaskState.REJECTED:
            cluster.advance(1)
        pauses.append(round(cluster.loop.now() - begun))

    assert [10, 20, 40] == pauses
    assert ("False", "SchedulingSkipped", "too large") == cluster.condition()
    assert ["TaskRejected"] == cluster.events("p")


def test_what_is_sent_again_says_where_a_pod_runs(cluster: SteppedCluster) -> None:
    """Also if the API server has answered the bind, and the watch has not shown it yet."""
    cluster.add_node()
    uid = cluster.add_pod()
    cluster._feed()
    cluster.watches = False
    cluster.settle()
    ended = si.AllocationRelease(allocationKey=uid, applicationID="app", partitionName="default")
    ended.terminationType = si.STOPPED_BY_RM
    cluster.parts().shared.requests.add(si.NodeInfo(nodeID="n1", action=si.NodeInfo.DRAIN_NODE))
    cluster.parts().shared.requests.add(ended)
    cluster.settle()

    assert {uid: "n1"} == cluster.core_places
    assert 1 == len(cluster.stub.asked("POST", f"{PODS}/p/binding"))


def test_a_pod_that_is_to_end_is_not_bound_any_more(cluster: SteppedCluster) -> None:
    """It is being deleted, as soon as the API server lets it."""
    cluster.add_node()
    uid = cluster.add_pod()
    cluster.stub.fail("POST", f"{PODS}/p/binding", status=500)
    cluster.stub.fail("DELETE", f"{PODS}/p", status=500, times=4)
    cluster.settle()
    cluster.coordinator._said("allocations", release(uid, si.PREEMPTED_BY_SCHEDULER))
    cluster.advance(40)

    assert 1 == len(cluster.stub.asked("POST", f"{PODS}/p/binding"))
    assert ({}, {}) == (cluster.coordinator.tasks, cluster.core_places)


def test_a_request_that_cannot_be_made_is_made_again(cluster: SteppedCluster) -> None:
    """One entry that makes a request bad does not keep a pod waiting for ever."""
    cluster.add_node()
    uid = cluster.add_pod()
    cluster.settle()
    cluster.parts().life.refused(si.Allocation(allocationKey=uid), "no")

    assert TaskState.ORPHAN is cluster.task(uid).state

    cluster.advance(20)

    assert TaskState.BOUND is cluster.task(uid).state


# --------------------------------------------------------------------------------- what the scheduler ends

ENDS: Final[dict[str, si.TerminationType]] = {
    "a timeout": si.TIMEOUT,
    "preemption": si.PREEMPTED_BY_SCHEDULER,
    "a replacement": si.PLACEHOLDER_REPLACED,
}


@pytest.mark.parametrize("kind", ENDS.values(), ids=ENDS)
def test_what_the_scheduler_ends_is_deleted_and_confirmed(
    cluster: SteppedCluster, kind: si.TerminationType
) -> None:
    """The confirmation has the same kind, and comes when the pod is gone, however often it is asked for."""
    cluster.add_node()
    uid = cluster.add_pod()
    cluster.settle()
    cluster.coordinator._said("allocations", release(uid, kind))
    cluster.coordinator._said("allocations", release(uid, kind))
    cluster.settle()

    assert {uid: "n1"} == cluster.core_places
    assert 1 == len(cluster.stub.asked("DELETE", f"{PODS}/p"))
    assert b'"uid"' in cluster.stub.asked("DELETE", f"{PODS}/p")[0].body

    sent = recorded(cluster)
    cluster.stub.finish_deletions()
    cluster.settle()

    assert [(uid, kind)] == sent
    assert {} == cluster.core_places


def recorded(cluster: SteppedCluster) -> list[tuple[str, int]]:
    """Return a list that gets the releases that are sent from now on."""
    sent: list[tuple[str, int]] = []
    requests = cluster.parts().shared.requests
    add: Callable[[object], None] = requests.add

    def note(entry: object) -> None:
        if isinstance(entry, si.AllocationRelease):
            sent.append((entry.allocationKey, entry.terminationType))
        add(entry)

    requests.add = note
    return sent


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_a_deletion_that_fails_is_tried_again(cluster: SteppedCluster, status: int) -> None:
    """Else the scheduler would wait for ever."""
    cluster.add_node()
    uid = cluster.add_pod()
    cluster.settle()
    cluster.stub.fail("DELETE", f"{PODS}/p", status=status, times=5)
    cluster.coordinator._said("allocations", release(uid, si.PREEMPTED_BY_SCHEDULER))
    cluster.advance(60)
    cluster.stub.finish_deletions()
    cluster.settle()

    assert ({}, {}) == (cluster.coordinator.tasks, cluster.core_places)
    assert ["Scheduled", "Preempted"] == cluster.events("p")


def test_a_pod_that_is_gone_already_is_confirmed_at_once(cluster: SteppedCluster) -> None:
    """Whether the API server says so, or another pod has its name."""
    cluster.add_node()
    uids = {name: cluster.add_pod(name) for name in "ab"}
    cluster.settle()
    cluster.watches = False
    for name in "ab":
        cluster.stub.remove(f"{PODS}/{name}")
    cluster.add_pod("b")
    for uid in uids.values():
        cluster.coordinator._said("allocations", release(uid, si.TIMEOUT))
    cluster.settle()

    assert ({}, {}) == (cluster.coordinator.tasks, cluster.core_places)


def test_the_end_of_a_pod_that_is_not_known_is_confirmed(cluster: SteppedCluster) -> None:
    """The scheduler waits for an answer."""
    sent = recorded(cluster)
    cluster.coordinator._said("allocations", release("nobody", si.TIMEOUT))

    assert [("nobody", si.TIMEOUT)] == sent


def test_a_member_that_waits_is_not_deleted_because_its_gang_has_timed_out(cluster: SteppedCluster) -> None:
    """It has never run: the end is confirmed, and it is asked for again."""
    uid = cluster.add_pod()
    cluster.settle()
    sent = recorded(cluster)
    cluster.coordinator._said("allocations", release(uid, si.TIMEOUT))
    cluster.add_node()
    cluster.settle()

    assert [(uid, si.TIMEOUT)] == sent
    assert {"p": "n1"} == cluster.places


def test_a_release_that_only_confirms_changes_nothing(cluster: SteppedCluster) -> None:
    """To send the pod again has no effect."""
    cluster.add_node()
    uid = cluster.add_pod()
    cluster.settle()
    cluster.coordinator._said("allocations", release(uid, si.STOPPED_BY_RM))
    cluster.settle()

    assert ({uid: "n1"}, {"p": "n1"}) == (cluster.core_places, cluster.places)


def test_an_allocation_of_a_pod_that_has_ended_is_given_back(cluster: SteppedCluster) -> None:
    """It came while the pod was deleted."""
    cluster.add_pod()
    cluster.settle()
    cluster.add_node()
    cluster.place()
    cluster.stub.remove(f"{PODS}/p")
    cluster.settle()

    assert {} == cluster.core_places


# ------------------------------------------------------------------------------------------------ preemption


def preempting(cluster: SteppedCluster) -> None:
    """Have a victim run, and a pod of higher priority wait for its room."""
    cluster.add_node(cpu="1")
    cluster.add_pod("victim", app="low", labels={"queue": "root.low"})
    cluster.settle()
    cluster.run_pods()
    cluster.advance(60)
    cluster.add_pod("urgent", app="high", labels={"queue": "root.high"})
    for _ in range(60):
        cluster.advance(1)


def test_a_victim_makes_room(cluster: SteppedCluster) -> None:
    """It is deleted, with an event that says so, and the other one runs when it is gone."""
    preempting(cluster)

    assert ["Scheduled", "Preempted"] == cluster.events("victim")

    cluster.stub.finish_deletions()
    cluster.advance(60)

    assert {"urgent": "n1"} == cluster.places
    assert cluster.pod_places == cluster.core_places


def test_a_victim_is_evicted_if_that_is_wanted() -> None:
    """A disruption budget may put it off; it is tried again until it is allowed."""
    cluster = SteppedCluster(settings=replace(SETTINGS, evict_preempted=True))
    cluster.stub.pods.evictions_allowed = 0
    preempting(cluster)

    assert [] == cluster.stub.asked("DELETE", f"{PODS}/victim")
    assert 2 < len(cluster.stub.asked("POST", f"{PODS}/victim/eviction")) < 12

    cluster.stub.pods.evictions_allowed = 1
    cluster.advance(60)
    cluster.stub.finish_deletions()
    cluster.advance(60)

    assert {"urgent": "n1"} == cluster.places

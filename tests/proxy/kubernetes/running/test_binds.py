"""Every answer to a bind, and what pod, scheduler and people see at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from support.kubernetes.stepped_cluster import NODES, PODS, SteppedCluster

from licorne.proxy.kubernetes.client.errors import ApiError, ApiUnreachable
from licorne.proxy.kubernetes.running.pod_actions import BindOutcome, bind_outcome, seen_outcome
from licorne.proxy.kubernetes.running.tasks import TaskState

BINDING = f"{PODS}/p/binding"
POD = f"{PODS}/p"


def assign(cluster: SteppedCluster, node: str) -> None:
    """Assign the pod, as somebody else would."""
    cluster.stub.change(POD, {"spec": {"nodeName": node}})


def lose_answer_and_look(cluster: SteppedCluster) -> None:
    """Bind the pod without an answer, and do not say how it is."""
    cluster.stub.lose_answer("POST", BINDING)
    cluster.stub.fail("GET", POD, times=3)


def recreate(cluster: SteppedCluster) -> None:
    """Replace the pod by another one of its name."""
    cluster.stub.remove(POD)
    cluster.add_pod("p")


@dataclass(frozen=True)
class Row:
    """What goes wrong, and what is to be seen in the end.

    Args:
        fault: What goes wrong.
        place: The node of the pod.
        reasons: Of its events.
        attempts: How often a bind was asked for.
        seconds: How long it takes at most.
    """

    fault: Callable[[SteppedCluster], object]
    place: str = "n1"
    reasons: tuple[str, ...] = ("Scheduled",)
    attempts: int = 1
    seconds: float = 0


def failing(status: int, times: int = 1, **headers: str) -> Callable[[SteppedCluster], object]:
    """Return a fault of this status."""
    given = {name.replace("_", "-"): text for name, text in headers.items()}
    return lambda cluster: cluster.stub.fail("POST", BINDING, status=status, times=times, headers=given)


CASES = {
    "201 binds it": Row(lambda _: None),
    "400 is a failure, and the pod avoids the node": Row(
        failing(400), attempts=2, place="n2", reasons=("PodBindFailure", "Scheduled")
    ),
    "401 is tried again": Row(failing(401), attempts=2, seconds=1),
    "403 is tried again": Row(failing(403), attempts=2, seconds=1),
    "404 means that the pod is gone": Row(
        lambda cluster: cluster.on_request("POST", BINDING, lambda: cluster.stub.remove(POD)),
        place="",
        reasons=(),
    ),
    "409 for the same node counts as bound": Row(
        lambda cluster: cluster.on_request("POST", BINDING, lambda: assign(cluster, "n1"))
    ),
    "409 for another node counts the pod there": Row(
        lambda cluster: cluster.on_request("POST", BINDING, lambda: assign(cluster, "n2")),
        place="n2",
        reasons=(),
    ),
    "409 for another pod of the name leaves that one to be bound": Row(
        lambda cluster: cluster.on_request("POST", BINDING, lambda: recreate(cluster)), attempts=2
    ),
    "409 of a conflict that is over is tried again": Row(failing(409), attempts=2, seconds=1),
    "422 is a failure, and the pod avoids the node": Row(
        failing(422), attempts=2, place="n2", reasons=("PodBindFailure", "Scheduled")
    ),
    "429 is tried again": Row(failing(429), attempts=2, seconds=1),
    "429 waits as long as the server asks for": Row(failing(429, Retry_After="7"), attempts=2, seconds=7),
    "500 is looked at, and tried again": Row(failing(500), attempts=2, seconds=1),
    "503 twice is looked at, and tried again": Row(failing(503, times=2), attempts=3, seconds=3),
    "a lost answer of a bind that was done counts as bound": Row(
        lambda cluster: cluster.stub.lose_answer("POST", BINDING), seconds=1
    ),
    "a lost bind is done again": Row(
        lambda cluster: cluster.stub.drop("POST", BINDING), attempts=2, seconds=1
    ),
    "nine failures put the pod back, and it avoids the node": Row(
        failing(500, times=9), attempts=10, place="n2", seconds=130, reasons=("PodBindFailure", "Scheduled")
    ),
    "a lost answer that cannot be looked up either is looked up later": Row(
        lose_answer_and_look,
        seconds=15,
    ),
}


@pytest.mark.parametrize("watches", [True, False], ids=["watching", "without a watch"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_answer_to_a_bind(cluster: SteppedCluster, case: Row, watches: bool) -> None:  # noqa: FBT001 - of the table
    """The pod is bound once or gone, the scheduler counts just that, and the events say what was wrong."""
    cluster.add_node("n1")
    cluster.settle()
    cluster.add_pod("p")
    case.fault(cluster)
    # The second node comes when the pod is placed on the first one.
    cluster.loop.holds_work = True
    cluster.settle()
    cluster.loop.holds_work = False
    cluster.add_node("n2")
    cluster.settle()
    cluster.watches = watches
    cluster.settle()
    cluster.advance(case.seconds)
    cluster.watches = True
    cluster.advance(0)

    assert case.place == cluster.places.get("p", "")
    assert cluster.pod_places == cluster.core_places
    assert case.reasons == tuple(cluster.events("p"))
    assert case.attempts == len(cluster.stub.asked("POST", BINDING))
    assert {TaskState.BOUND} >= {task.state for task in cluster.coordinator.tasks.values()}


def test_a_pod_that_cannot_be_bound_anywhere_waits_longer_each_time(cluster: SteppedCluster) -> None:
    """After three failures in a row it is asked for after a pause, so that nothing goes round in circles."""
    for number in range(10):
        cluster.add_node(f"n{number}")
    cluster.stub.fail("POST", BINDING, status=422, times=None)
    uid = cluster.add_pod("p")
    cluster.advance(9)

    assert 3 == len(cluster.stub.asked("POST", BINDING))
    assert TaskState.REJECTED is cluster.task(uid).state
    assert {} == cluster.core_places

    cluster.advance(600)

    assert 3 < len(cluster.stub.asked("POST", BINDING)) < 12

    cluster.stub.heal()
    cluster.advance(300)

    assert cluster.pod_places == cluster.core_places
    assert TaskState.BOUND is cluster.task(uid).state


def test_a_pod_is_not_bound_to_a_node_that_has_gone_meanwhile(cluster: SteppedCluster) -> None:
    """The API server would take the name; the pod waits again, for another node."""
    cluster.add_node("n1")
    cluster.stub.fail("POST", BINDING, status=500)
    uid = cluster.add_pod("p")
    cluster.settle()
    cluster.stub.remove(f"{NODES}/n1")
    cluster.advance(5)

    assert TaskState.ASKED is cluster.task(uid).state
    assert 1 == len(cluster.stub.asked("POST", BINDING))

    cluster.add_node("n2")
    cluster.advance(5)

    assert {"p": "n2"} == cluster.places
    assert cluster.pod_places == cluster.core_places


def test_a_bind_that_was_done_on_a_node_that_is_gone_is_an_orphan(cluster: SteppedCluster) -> None:
    """The pod is assigned to a name that nothing has, until a node comes that has it."""
    cluster.add_node("n1")
    cluster.on_request("POST", BINDING, lambda: cluster.stub.remove(f"{NODES}/n1"))
    uid = cluster.add_pod("p")
    cluster.advance(1)

    assert TaskState.ORPHAN is cluster.task(uid).state
    assert {} == cluster.core_places

    cluster.add_node("n1")
    cluster.advance(1)

    assert {uid: "n1"} == cluster.core_places


OUTCOMES: dict[str, tuple[Exception | None, BindOutcome]] = {
    "no error": (None, BindOutcome.BOUND),
    "a lost answer": (ApiUnreachable("lost"), BindOutcome.LOOK),
    "another error": (ValueError("ours"), BindOutcome.LOOK),
    **{
        str(status): (ApiError(status, "", ""), outcome)
        for status, outcome in {
            400: BindOutcome.REFUSED,
            401: BindOutcome.AGAIN,
            403: BindOutcome.AGAIN,
            404: BindOutcome.GONE,
            409: BindOutcome.LOOK,
            422: BindOutcome.REFUSED,
            429: BindOutcome.AGAIN,
            500: BindOutcome.LOOK,
            503: BindOutcome.LOOK,
        }.items()
    },
}


@pytest.mark.parametrize("case", OUTCOMES.values(), ids=OUTCOMES)
def test_what_an_answer_means(case: tuple[Exception | None, BindOutcome]) -> None:
    """Each status means one thing, wherever it comes from."""
    error, outcome = case

    assert outcome is bind_outcome(error)


def test_a_look_that_fails_says_nothing() -> None:
    """Only 404 says that the pod is gone."""
    outcomes = [seen_outcome(ApiError(status, "", ""), "uid", "n1") for status in (404, 500)]

    assert [BindOutcome.GONE, BindOutcome.LOOK] == outcomes

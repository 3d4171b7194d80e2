"""A process under the account of the manifests does all that a scheduler of pods does; nothing is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from support.kubernetes.api import MERGE_PATCH, Api
from support.kubernetes.installation import NAMESPACE, Replica
from support.kubernetes.manifests import pod
from support.waiting import happens, stays

pytestmark = pytest.mark.kubernetes

CONFIGURATION = f"/api/v1/namespaces/{NAMESPACE}/configmaps/yunikorn-configs"
UNPLACED_SECONDS = 5

Start = Callable[..., Replica]


def events_of(api: Api, namespace: str, name: str) -> list[dict[str, Any]]:
    """Return the events about an object."""
    events = api.ok("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return [each for each in events if each["regarding"]["name"] == name]


def has_event(api: Api, namespace: str, name: str, reason: str, part: str = "") -> bool:
    """Return whether there is an event about an object with a reason and a part of its text."""
    return any(
        each["reason"] == reason and part in each.get("note", "") for each in events_of(api, namespace, name)
    )


def condition_of(document: dict[str, Any]) -> dict[str, str]:
    """Return the condition of a pod that says whether it is scheduled."""
    conditions = document["status"].get("conditions", [])
    found: dict[str, str] = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    return found


def test_a_pod_is_bound_and_told_about(api: Api, leader: Replica, namespace: str) -> None:
    """It runs, and an event says where."""
    pods = f"/api/v1/namespaces/{namespace}/pods"

    api.ok("POST", pods, pod("small"))

    placed = api.until(f"{pods}/small", lambda document: document["status"]["phase"] == "Running")
    note = f"to node {placed['spec']['nodeName']}"
    assert happens(lambda: has_event(api, namespace, "small", "Scheduled", note)), leader.log.read_text()


def test_a_pod_that_fits_nowhere_says_so(api: Api, leader: Replica, namespace: str) -> None:
    """By its condition, which an autoscaler looks for, and by an event."""
    pods = f"/api/v1/namespaces/{namespace}/pods"

    api.ok("POST", pods, pod("large", cpu="100"))

    api.until(f"{pods}/large", lambda document: condition_of(document).get("reason") == "Unschedulable")
    told = happens(lambda: has_event(api, namespace, "large", "PodUnschedulable"))
    assert told, leader.log.read_text()


def start_gang(api: Api, namespace: str) -> None:
    """Create the two pods of a gang."""
    group = {"name": "all", "minMember": 2, "minResource": {"cpu": "100m", "memory": "64Mi"}}
    annotations = {
        "yunikorn.apache.org/task-groups": json.dumps([group]),
        "yunikorn.apache.org/task-group-name": "all",
    }
    labels = {"yunikorn.apache.org/app-id": f"gang-{namespace}"}
    for name in ("one", "two"):
        api.ok(
            "POST",
            f"/api/v1/namespaces/{namespace}/pods",
            pod(name, labels=labels, annotations=annotations),
        )


def phases(api: Api, namespace: str) -> dict[str, str]:
    """Return the phase of each pod of a namespace."""
    pods = api.ok("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return {each["metadata"]["name"]: each["status"]["phase"] for each in pods}


def placeholders_of(api: Api, namespace: str) -> set[str]:
    """Return the names of the placeholders that events were about."""
    events = api.ok("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    names = {each["regarding"]["name"] for each in events}
    return {name for name in names if name.startswith("tg-")}


GANG_RUNS: Final = {"one": "Running", "two": "Running"}


def test_a_gang_gets_its_placeholders_and_their_nodes(api: Api, leader: Replica, namespace: str) -> None:
    """The pods of placeholders are created, and deleted for the real ones."""
    start_gang(api, namespace)

    assert happens(lambda: phases(api, namespace) == GANG_RUNS), leader.log.read_text()
    assert 2 == len(placeholders_of(api, namespace))


def test_a_gang_can_do_without_pods_that_keep_its_room(
    api: Api, start: Start, pod_names: tuple[str, str], namespace: str
) -> None:
    """The scheduler alone keeps it."""
    api.ok("PATCH", CONFIGURATION, {"data": {"service.placeholderPods": "false"}}, MERGE_PATCH)
    leader = start(pod_names[0])

    start_gang(api, namespace)

    assert happens(lambda: phases(api, namespace) == GANG_RUNS), leader.log.read_text()
    assert set() == placeholders_of(api, namespace)


@pytest.fixture
def over_quota(api: Api, start: Start, pod_names: tuple[str, str], namespace: str) -> str:
    """Return the path of the pods of a namespace with a quota for one of its two."""
    quota = {"yunikorn.apache.org/namespace.quota": '{"cpu": "1"}'}
    api.ok("PATCH", f"/api/v1/namespaces/{namespace}", {"metadata": {"annotations": quota}}, MERGE_PATCH)
    start(pod_names[0])
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for name in ("first", "second"):
        api.ok("POST", pods, pod(name, cpu="600m", labels={"applicationId": namespace}))
        if name == "first":
            api.until(f"{pods}/first", lambda document: document["status"]["phase"] == "Running")
    return pods


def test_the_quota_of_a_namespace_holds(api: Api, over_quota: str) -> None:
    """A pod waits until another one has ended."""
    assert stays(lambda: not runs(api, f"{over_quota}/second"), UNPLACED_SECONDS)

    api.ok("DELETE", f"{over_quota}/first")

    assert happens(lambda: runs(api, f"{over_quota}/second"))


def test_a_pod_that_waits_for_a_quota_says_so(api: Api, over_quota: str) -> None:
    """By a reason that is not the one that autoscalers look for."""
    path = f"{over_quota}/second"

    assert happens(lambda: condition_of(api.ok("GET", path)).get("reason") == "SchedulingSkipped")


def test_it_takes_the_place_of_yunikorn(
    api: Api, start: Start, pod_names: tuple[str, str], namespace: str
) -> None:
    """Pods that name YuniKorn are scheduled, and others are not, under the name of the command line."""
    start(pod_names[0], "--scheduler-name=yunikorn")
    pods = f"/api/v1/namespaces/{namespace}/pods"

    api.ok("POST", pods, pod("other"))
    api.ok("POST", pods, pod("old", scheduler="yunikorn"))

    assert happens(lambda: phases(api, namespace) == {"old": "Running", "other": "Pending"})
    assert happens(lambda: has_event(api, namespace, "old", "Scheduled"))
    assert [] == events_of(api, namespace, "other")


PREEMPTING = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: poor
          - name: rich
            resources:
              guaranteed: {vcore: 3}
            properties: {preemption.delay: 1s}
"""


def rich_pod_behind_poor_ones(api: Api, start: Start, pod_name: str, namespace: str, evicts: str) -> str:
    """Fill the share of a queue with pods of another one, and return the path of the pod that asks for it."""
    data = {"queues.yaml": PREEMPTING, "service.evictPreempted": evicts}
    api.ok("PATCH", CONFIGURATION, {"data": data}, MERGE_PATCH)
    start(pod_name)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    selector = {"kubernetes.io/hostname": "n1"}
    for number in range(3):
        labels = {"queue": "root.poor", "applicationId": f"poor-{namespace}"}
        api.ok("POST", pods, pod(f"poor-{number}", cpu="1", labels=labels, nodeSelector=selector))
        api.until(f"{pods}/poor-{number}", lambda document: document["status"]["phase"] == "Running")
    labels = {"queue": "root.rich", "applicationId": f"rich-{namespace}"}
    api.ok("POST", pods, pod("rich", cpu="2", labels=labels, nodeSelector=selector))
    return f"{pods}/rich"


def runs(api: Api, path: str) -> bool:
    """Return whether a pod runs."""
    return bool(api.ok("GET", path)["status"]["phase"] == "Running")


def protect_the_poor(api: Api, namespace: str) -> str:
    """Have a budget forbid that one of three pods is evicted; return its path."""
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    selector = {"matchLabels": {"queue": "root.poor"}}
    api.ok("POST", budgets, {"metadata": {"name": "poor"}, "spec": {"minAvailable": 3, "selector": selector}})
    return f"{budgets}/poor"


def test_a_queue_gets_its_guarantee_back(
    api: Api, start: Start, pod_names: tuple[str, str], namespace: str
) -> None:
    """Pods of a queue that uses more than its share are deleted, whatever their budgets say."""
    protect_the_poor(api, namespace)

    rich = rich_pod_behind_poor_ones(api, start, pod_names[0], namespace, "false")

    assert happens(lambda: runs(api, rich))


def test_victims_are_evicted_if_that_is_said(
    api: Api, start: Start, pod_names: tuple[str, str], namespace: str
) -> None:
    """Their budgets put it off, here until there is none any more."""
    budget = protect_the_poor(api, namespace)
    rich = rich_pod_behind_poor_ones(api, start, pod_names[0], namespace, "true")

    assert stays(lambda: not runs(api, rich), UNPLACED_SECONDS)
    api.ok("DELETE", budget)

    assert happens(lambda: runs(api, rich))


def test_a_changed_configuration_takes_effect(api: Api, leader: Replica) -> None:
    """Without a restart."""
    changed = {"queues.yaml": PREEMPTING}

    api.ok("PATCH", CONFIGURATION, {"data": changed}, MERGE_PATCH)

    def names() -> set[str]:
        root = leader.rest_document("/ws/v1/partition/default/queues")
        return {each["queuename"] for each in root["children"]}

    assert happens(lambda: {"root.poor", "root.rich"} <= names()), leader.log.read_text()


def test_a_bad_configuration_is_refused_by_an_event(api: Api, leader: Replica) -> None:
    """The queues stay as they were, and the config map says why."""
    before = leader.rest_document("/ws/v1/partition/default/queues")

    api.ok("PATCH", CONFIGURATION, {"data": {"queues.yaml": "partitions: 5"}}, MERGE_PATCH)

    told = happens(lambda: has_event(api, NAMESPACE, "yunikorn-configs", "ConfigurationRejected"))
    assert told, leader.log.read_text()
    assert before == leader.rest_document("/ws/v1/partition/default/queues")


def test_nothing_is_refused_for_want_of_a_right(api: Api, leader: Replica, namespace: str) -> None:
    """The log of a process that has done all this once has no such word."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.ok("POST", pods, pod("small"))
    api.ok("POST", pods, pod("large", cpu="100"))
    api.until(f"{pods}/small", lambda document: document["status"]["phase"] == "Running")
    api.until(f"{pods}/large", lambda document: condition_of(document).get("reason") == "Unschedulable")

    assert "forbidden" not in leader.log.read_text().lower()

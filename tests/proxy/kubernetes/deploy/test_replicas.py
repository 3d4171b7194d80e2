"""Of two replicas one schedules, and the service leads to it: at first, after a crash, after a normal end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from support.kubernetes.api import STRATEGIC_MERGE_PATCH, Api
from support.kubernetes.installation import MANIFESTS, NAMESPACE, Replica, documents_of, is_leading, role_of
from support.kubernetes.manifests import pod
from support.waiting import WAIT_SECONDS, happens

pytestmark = pytest.mark.kubernetes

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/licorne"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
HANDOVER_SECONDS = 6

Start = Callable[..., Replica]


def holder(api: Api) -> str:
    """Return which process holds the lease, empty if none does."""
    name: str = api.request("GET", LEASE)[1].get("spec", {}).get("holderIdentity", "")
    return name


def knows_a_cluster(replica: Replica) -> bool:
    """Return whether the REST interface of a process has nodes."""
    partitions = replica.rest_document("/ws/v1/partitions")
    return any(each["totalNodes"] for each in partitions)


def started(api: Api, start: Start, pod_names: tuple[str, str]) -> tuple[Replica, Replica]:
    """Start two processes; return the one that leads, and the other one, when both are ready."""
    leader = start(pod_names[0])
    assert happens(lambda: is_leading(api, leader)), leader.log.read_text()
    standby = start(pod_names[1])
    assert happens(lambda: leader.is_ready and standby.is_ready), standby.log.read_text()
    return leader, standby


def test_the_service_leads_to_the_replica_that_schedules(
    api: Api, start: Start, pod_names: tuple[str, str]
) -> None:
    """Both are ready, one has the label, and it alone knows the cluster."""
    for number, name in enumerate(pod_names, 1):
        ips = {"podIP": f"10.1.0.{number}", "podIPs": [{"ip": f"10.1.0.{number}"}]}
        api.ok("PATCH", f"{PODS}/{name}/status", {"status": ips}, STRATEGIC_MERGE_PATCH)

    leader, standby = started(api, start, pod_names)

    assert ("leader", "standby") == tuple(role_of(api, name) for name in pod_names)
    assert (True, False) == (knows_a_cluster(leader), knows_a_cluster(standby))
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    assert happens(lambda: endpoints(api.ok("GET", slices)) == {"10.1.0.1"})


def test_the_service_says_where_the_metrics_are(leader: Replica) -> None:
    """By the annotations that a usual configuration of Prometheus reads."""
    service, *_ = documents_of(MANIFESTS / "5-service.yaml")
    annotations = service["metadata"]["annotations"]

    status, text = leader.get(leader.rest, annotations["prometheus.io/path"])

    assert (200, True) == (status, "yunikorn_scheduler_" in text)
    assert annotations["prometheus.io/port"] == str(service["spec"]["ports"][0]["port"])


def endpoints(slices: dict[str, Any]) -> set[str]:
    """Return the addresses of a list of endpoint slices."""
    return {
        address
        for each in slices["items"]
        for endpoint in each["endpoints"] or []
        for address in endpoint["addresses"]
    }


def test_a_standby_takes_over_when_the_leader_is_killed(
    api: Api, start: Start, pod_names: tuple[str, str], namespace: str
) -> None:
    """It schedules what comes meanwhile."""
    leader, standby = started(api, start, pod_names)

    leader.process.kill()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.ok("POST", pods, pod("meanwhile"))

    is_placed = happens(lambda: "nodeName" in api.ok("GET", f"{pods}/meanwhile")["spec"])
    assert is_placed, standby.log.read_text()
    assert happens(lambda: is_leading(api, standby) and knows_a_cluster(standby))


def test_a_container_that_starts_anew_takes_the_label_of_its_pod_back(
    api: Api, start: Start, pod_names: tuple[str, str]
) -> None:
    """The kubelet starts a container within its pod, whose labels stay."""
    leader, standby = started(api, start, pod_names)
    leader.process.kill()
    assert happens(lambda: role_of(api, standby.pod_name) == "leader")

    again = start(leader.pod_name)

    assert happens(lambda: again.is_ready)
    assert ("standby", "leader") == tuple(role_of(api, name) for name in pod_names)


def test_a_leader_that_is_asked_to_end_hands_over(
    api: Api, start: Start, pod_names: tuple[str, str], namespace: str
) -> None:
    """Within seconds, and its process ends without an error."""
    leader, standby = started(api, start, pod_names)
    before = holder(api)

    leader.process.send_signal(signal.SIGTERM)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.ok("POST", pods, pod("meanwhile"))

    is_placed = happens(lambda: "nodeName" in api.ok("GET", f"{pods}/meanwhile")["spec"], HANDOVER_SECONDS)
    assert is_placed, standby.log.read_text()
    assert 0 == leader.process.wait(WAIT_SECONDS)
    # The old leader may have placed the pod in its last moment: then the lease is taken a little later.
    assert happens(lambda: holder(api) not in {"", before}, HANDOVER_SECONDS)


def test_a_leader_that_loses_the_lease_ends(api: Api, start: Start, pod_names: tuple[str, str]) -> None:
    """Whoever wrote another holder into it: two may not schedule."""
    leader = start(pod_names[0])
    assert happens(lambda: is_leading(api, leader))

    lease = api.ok("GET", LEASE)
    lease["spec"]["holderIdentity"] = "somebody-else"
    api.request("PUT", LEASE, lease)

    assert 2 == leader.process.wait(WAIT_SECONDS)
    assert "another process holds the lease" in leader.log.read_text()


def test_a_process_lives_before_it_is_ready(start: Start, pod_names: tuple[str, str]) -> None:
    """It answers from its first moment on, so that a long start is no reason to kill it."""
    leader = start(pod_names[0])

    assert (200, "ok\n") == leader.get(leader.health, "/livez")
    assert happens(lambda: leader.is_ready)

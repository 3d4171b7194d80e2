"""Messages that were made of objects of Kubernetes, and the scheduler that they are for.

The scheduler itself runs step by step; so a tag or an attribute that it would not read is found here.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from support.kubernetes.decoded import CREATED_SECONDS, namespace_of, node_of, pod_of

from licorne import ResourceManager, Scheduler
from licorne.proxy.kubernetes.mapping.applications import add_application_request, application_id
from licorne.proxy.kubernetes.mapping.asks import (
    ask,
    foreign_allocation,
    foreign_release,
    node_changes,
    node_info,
    release,
)
from licorne.proxy.kubernetes.mapping.settings import KubernetesSettings
from licorne.proxy.kubernetes.objects import KubernetesNode, Namespace, Pod
from licorne.proxy.si import si_pb2 as si

D: Final = "yunikorn.apache.org/"
SETTINGS: Final = KubernetesSettings()
QUEUES: Final = """
partitions:
- name: default
  placementrules: [{name: provided}, {name: tag, value: namespace, create: true}]
  queues: [{name: root, submitacl: "*", queues: [{name: jobs}]}]
"""


class Cluster(ResourceManager):
    """A scheduler that is told of pods and nodes, and what it said."""

    def __init__(self) -> None:
        self.placed: dict[str, str] = {}
        self.rejected: list[Any] = []
        self.scheduler = Scheduler(engine="direct")
        self.scheduler.register("mycluster", self, configuration=QUEUES)

    def update_node(self, response: si.NodeResponse) -> None:
        self.rejected += response.rejected

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.rejected += response.rejected

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.placed |= {each.allocationKey: each.nodeID for each in response.new}
        self.rejected += response.rejectedAllocations

    def change_node(self, old: KubernetesNode | None, new: KubernetesNode) -> None:
        """Say what has changed about a node."""
        messages = [node_info(new, action, SETTINGS) for action in node_changes(old, new)]
        for message in messages:
            self.scheduler.update_node(si.NodeRequest(rmID="mycluster", nodes=[message]))

    def add_pod(self, pod: Pod, namespace: Namespace | None = None, *, originator: bool = True) -> None:
        """Add the application of a pod, and the pod."""
        application = add_application_request(pod, namespace, SETTINGS)
        self.scheduler.update_application(si.ApplicationRequest(rmID="mycluster", new=[application]))
        self.add(ask(pod, application_id(pod, SETTINGS), {}, SETTINGS, originator=originator))

    def add(self, allocation: si.Allocation) -> None:
        """Add an ask or allocation, and let everything happen that can."""
        self.scheduler.update_allocation(si.AllocationRequest(rmID="mycluster", allocations=[allocation]))
        self.settle()

    def end(self, ended: si.AllocationRelease) -> None:
        """End an ask or allocation."""
        releases = {"allocationsToRelease": [ended]}
        self.scheduler.update_allocation(si.AllocationRequest(rmID="mycluster", releases=releases))
        self.settle()

    def settle(self) -> None:
        """Let everything happen that can; nothing may be rejected or broken."""
        self.scheduler.run_until_idle()
        self.scheduler.validate()
        assert [] == self.rejected

    def snapshot(self, kind: str) -> Any:
        """Return the documents of a kind."""
        snapshot: Any = self.scheduler.snapshot()
        return snapshot[kind]["default"]


@pytest.fixture
def cluster() -> Any:
    """Return a scheduler without nodes, which is stopped at the end."""
    found = Cluster()
    yield found
    found.scheduler.stop()


def sized(name: str, cpu: str = "1", **metadata: Any) -> Pod:
    """Return a pod that requests cores."""
    spec = {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        **metadata.pop("spec", {}),
    }
    return pod_of(name=name, uid=f"uid-{name}", spec=spec, **metadata)


def test_a_pod_is_placed_and_ends(cluster: Cluster) -> None:
    """On a node that is used once its pods are known, in the queue of its namespace."""
    cluster.change_node(None, node_of())
    cluster.add_pod(sized("a"))
    (application,) = cluster.snapshot("applications")

    assert {"uid-a": "node-1"} == cluster.placed
    assert ("yunikorn-team-autogen", "root.team") == (application["applicationID"], application["queueName"])

    cluster.end(release("yunikorn-team-autogen", "uid-a", si.STOPPED_BY_RM, "gone"))
    (node,) = cluster.snapshot("nodes")

    assert not any(node.get("allocated", {}).values())


def test_the_second_pod_of_an_application_adds_it_again(cluster: Cluster) -> None:
    """Which is accepted, so that nobody has to remember which applications are there."""
    cluster.change_node(None, node_of())
    cluster.add_pod(sized("a"))
    cluster.add_pod(sized("b"), originator=False)

    assert {"uid-a": "node-1", "uid-b": "node-1"} == cluster.placed


def test_a_pod_that_runs_is_found_again_after_a_restart(cluster: Cluster) -> None:
    """Its application is forced, though the queue that it names is not there any more."""
    cluster.change_node(None, node_of())
    cluster.add_pod(sized("a", labels={"queue": "root.gone"}, spec={"nodeName": "node-1"}))
    (application,) = cluster.snapshot("applications")
    (node,) = cluster.snapshot("nodes")

    assert ["uid-a"] == [each["allocationKey"] for each in application["allocations"]]
    assert (1000, 1) == (node["allocated"]["vcore"], node["allocated"]["pods"])


def test_a_foreign_pod_uses_room_until_it_ends(cluster: Cluster) -> None:
    """What it leaves is too little for another."""
    foreign = sized("f", cpu="3500m", spec={"schedulerName": "default-scheduler", "nodeName": "node-1"})
    cluster.change_node(None, node_of())
    cluster.add(foreign_allocation(foreign, KubernetesSettings()))
    cluster.add_pod(sized("a"))
    assert {} == cluster.placed

    cluster.end(foreign_release(foreign))

    assert {"uid-a": "node-1"} == cluster.placed


def test_the_quota_of_a_namespace_holds(cluster: Cluster) -> None:
    """For the queue that is made for it."""
    namespace = namespace_of(namespace_quota='{"cpu": "1500m"}')
    cluster.change_node(None, node_of())
    cluster.add_pod(sized("a"), namespace)
    cluster.add_pod(sized("b"), namespace, originator=False)

    assert {"uid-a": "node-1"} == cluster.placed


def test_a_daemon_pod_goes_to_its_node(cluster: Cluster) -> None:
    """Though another one comes first."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    owner = [{"kind": "DaemonSet", "name": "agent", "uid": "u"}]
    cluster.change_node(None, node_of())
    cluster.change_node(None, node_of(name="node-2"))
    cluster.add_pod(sized("a", ownerReferences=owner, spec={"affinity": affinity}))

    assert {"uid-a": "node-2"} == cluster.placed


def test_a_gang_waits_for_its_placeholders(cluster: Cluster) -> None:
    """Its application says what they need together, and each placeholder is placed as a pod is."""
    groups = [{"name": "g", "minMember": 2, "minResource": {"cpu": "1"}}]
    gang = {f"{D}task-groups": json.dumps(groups), f"{D}task-group-name": "g"}
    placeholder = {**gang, "internal.yunikorn.apache.org/placeholder": "true"}
    cluster.change_node(None, node_of())
    cluster.add_pod(sized("a", annotations=placeholder))
    cluster.add_pod(sized("b", annotations=placeholder))
    (application,) = cluster.snapshot("applications")

    assert {"uid-a": "node-1", "uid-b": "node-1"} == cluster.placed
    assert [("g", 2)] == [(each["taskGroupName"], each["count"]) for each in application["placeholderData"]]


def test_an_ask_is_as_old_as_its_pod(cluster: Cluster) -> None:
    """So that a restart changes nobody's turn."""
    cluster.add_pod(sized("a"))
    ((waiting,),) = [each["requests"] for each in cluster.snapshot("applications")]

    assert int(CREATED_SECONDS) * 10**9 == waiting["requestTime"]


def test_a_node_has_its_instance_type(cluster: Cluster) -> None:
    """By which use is counted."""
    cluster.change_node(None, node_of(labels={"node.kubernetes.io/instance-type": "m5"}))
    cluster.settle()
    (node,) = cluster.snapshot("nodes")

    assert ("m5", "node-1", "/rack-default") == (
        node["attributes"]["si/instance-type"],
        node["hostName"],
        node["rackName"],
    )

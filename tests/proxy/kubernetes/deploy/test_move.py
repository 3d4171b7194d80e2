"""The move from YuniKorn and the way back: each scheduler continues with the pods as the other has left them.

YuniKorn is played by the test, which creates and binds pods as the rules of `docs/kubernetes-rules.md` say.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from support.kubernetes.api import Api
from support.kubernetes.cluster import Cluster
from support.kubernetes.installation import MANIFESTS, Replica, applied, documents_of, in_namespace, replica
from support.kubernetes.manifests import binding, node, pod
from support.waiting import WAIT_SECONDS, happens

pytestmark = pytest.mark.kubernetes

NAMESPACE: Final = "yunikorn"
DOMAIN: Final = "yunikorn.apache.org/"
FLAG: Final = f"internal.{DOMAIN}placeholder"
IDENTIFYING: Final = (FLAG, f"{DOMAIN}task-groups", f"{DOMAIN}task-group-name")
ADA: Final = json.dumps({"user": "ada", "groups": ["analysts"]})
ITS_ACCOUNT: Final = json.dumps({"user": "system:serviceaccount:yunikorn:yunikorn-admin"})
DEFAULTS: Final = {
    "service.schedulingInterval": "1s",
    "service.operatorPlugins": "general",
    "service.volumeBindTimeout": "10s",
    "health.checkInterval": "30s",
    "log.level": "0",
    "admissionController.webHook.amServiceName": "yunikorn-admission-controller-service",
    "admissionController.filtering.bypassNamespaces": "^kube-system$",
}
QUEUES: Final = """
partitions:
  - name: default
    placementrules: [{name: provided, create: true}]
    queues:
      - name: root
        queues:
          - name: jobs
            submitacl: ada
            limits: [{limit: "of ada", users: [ada], maxresources: {vcore: "20"}}]
"""

Start = Callable[[], Replica]


@pytest.fixture
def start(cluster: Cluster, api: Api, tmp_path: Path) -> Iterator[Start]:
    """Install Licorne in the namespace of YuniKorn, as the example does; return a function that starts it."""
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    maps = {"yunikorn-defaults": DEFAULTS, "yunikorn-configs": {"queues.yaml": QUEUES}}
    for name, data in maps.items():
        applied(
            api,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "data": data,
            },
        )
    access = documents_of(MANIFESTS / "2-access.yaml")
    for document in access:
        applied(api, in_namespace(document, NAMESPACE))
    api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", pod("licorne", scheduler="none"))
    token = cluster.service_account_token(NAMESPACE, "licorne")
    changed = ("--scheduler-name=yunikorn", f"--namespace={NAMESPACE}")
    with ExitStack() as stack:
        yield lambda: stack.enter_context(replica(cluster, tmp_path, "licorne", token, *changed))
    for document in access:
        if document["kind"] == "ClusterRoleBinding":  # it gives the account of other tests its rights
            applied(api, document)


def groups(cpu: str) -> str:
    """Return the declaration of a gang of three."""
    return json.dumps([{"name": "workers", "minMember": 3, "minResource": {"cpu": cpu, "memory": "64Mi"}}])


def of_ada(name: str, application: str, cpu: str = "100m", **annotations: str) -> dict[str, Any]:
    """Return a pod as YuniKorn's admission controller leaves it: nobody has signed its user."""
    labels = {"applicationId": application, f"{DOMAIN}app-id": application, "queue": "root.jobs"}
    return pod(
        name,
        cpu=cpu,
        scheduler="yunikorn",
        labels=labels,
        annotations={f"{DOMAIN}user.info": ADA, **annotations},
    )


def member(name: str, application: str, cpu: str = "100m") -> dict[str, Any]:
    """Return a member of a gang of three."""
    declared = {f"{DOMAIN}task-groups": groups(cpu), f"{DOMAIN}task-group-name": "workers"}
    return of_ada(name, application, cpu, **declared)


def placeholder(first: Mapping[str, Any], name: str, flag: str) -> dict[str, Any]:
    """Return a placeholder of YuniKorn; its account has created it."""
    own = first["metadata"]
    application = own["labels"]["applicationId"]
    document = member(f"tg-{application}-workers-{name}", application)
    document["metadata"]["annotations"] |= {flag: "true", f"{DOMAIN}user.info": ITS_ACCOUNT}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": own["name"], "uid": own["uid"]}
    document["metadata"]["ownerReferences"] = [{**owner, "controller": False, "blockOwnerDeletion": True}]
    document["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    return document


class Pods:
    """The pods of the test, which YuniKorn creates and binds."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    def create(self, document: Mapping[str, Any], node_name: str = "") -> dict[str, Any]:
        """Create a pod, and bind it if a node is given."""
        created = self._api.ok("POST", self._path, document)
        if node_name:
            self.bind(created, node_name)
        return created

    def bind(self, created: Mapping[str, Any], node_name: str) -> None:
        """Bind a pod."""
        self._api.ok(
            "POST", f"{self._path}/{created['metadata']['name']}/binding", binding(created, node_name)
        )

    def delete(self, name: str) -> None:
        """Delete a pod."""
        self._api.ok("DELETE", f"{self._path}/{name}")

    def all(self) -> list[dict[str, Any]]:
        """Return all pods."""
        items: list[dict[str, Any]] = self._api.ok("GET", self._path)["items"]
        return items

    def placeholders(self) -> list[dict[str, Any]]:
        """Return the placeholders."""
        return [each for each in self.all() if FLAG in each["metadata"].get("annotations", {})]

    def places(self) -> dict[str, str]:
        """Return the node of each pod, empty without one."""
        return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in self.all()}


@pytest.fixture
def pods(api: Api, namespace: str) -> Pods:
    return Pods(api, namespace)


def leave_gang(pods: Pods, application: str, flag: str, places: list[str], *, replaced: int = 0) -> None:
    """Leave a gang of three half-way: some members run already, and there are placeholders on these nodes."""
    members = [pods.create(member(f"{application}-{number}", application)) for number in range(3)]
    for created in members[:replaced]:
        pods.bind(created, "n1")
    for number, node_name in enumerate(places):
        pods.create(placeholder(members[0], str(number), flag), node_name)


def test_licorne_continues_where_yunikorn_has_stopped(start: Start, pods: Pods, namespace: str) -> None:
    """Pods keep their nodes and users, also where the queue would refuse them; gangs become complete."""
    pods.create(of_ada("running", f"old-{namespace}"), "n2")
    pods.create(of_ada("waiting", f"old-{namespace}"))
    leave_gang(pods, f"x-half-{namespace}", FLAG, ["n1", "", ""])
    leave_gang(pods, f"x-swaps-{namespace}", FLAG, ["n1", "n2"], replaced=1)
    leave_gang(pods, f"x-before-1-6-{namespace}", f"{DOMAIN}placeholder", ["n1", "n2", "n2"])
    before = {name: place for name, place in pods.places().items() if place and not name.startswith("tg-")}

    licorne = start()

    def has_all() -> bool:
        places = pods.places()
        return len(places) == 11 and all(places.values())

    assert happens(has_all), (pods.places(), licorne.log.read_text())
    assert before.items() <= pods.places().items()
    users = licorne.rest_document("/ws/v1/partition/default/usage/users")
    assert {"ada": 11} == {each["userName"]: each["queues"]["resourceUsage"]["pods"] for each in users}


def test_yunikorn_continues_where_licorne_has_stopped(
    api: Api, start: Start, pods: Pods, namespace: str
) -> None:
    """An incomplete gang goes to YuniKorn, which completes it and begins to run it, and comes back."""
    licorne = start()
    members = [pods.create(member(f"m-{number}", f"x-{namespace}", cpu="3")) for number in range(3)]
    half = ["", "n1", "n2"]
    assert happens(
        lambda: sorted(each["spec"].get("nodeName", "") for each in pods.placeholders()) == half
    ), licorne.log.read_text()

    licorne.process.send_signal(signal.SIGTERM)
    assert 0 == licorne.process.wait(WAIT_SECONDS)
    left = pods.placeholders()
    own = placeholder(members[0], "", FLAG)["metadata"]
    for each in left:
        metadata = each["metadata"]
        assert own["ownerReferences"] == metadata["ownerReferences"]
        assert {key: own["annotations"][key] for key in IDENTIFYING} | metadata["annotations"] == metadata[
            "annotations"
        ]
        assert own["labels"][f"{DOMAIN}app-id"] == metadata["labels"][f"{DOMAIN}app-id"]

    api.ok("POST", "/api/v1/nodes", node("n3"))
    for each in left:
        match each["spec"].get("nodeName"):
            case None:
                pods.bind(each, "n3")
            case "n1":
                pods.delete(each["metadata"]["name"])
                pods.bind(members[0], "n1")
    again = start()

    def is_complete() -> bool:
        return sorted(pods.places().values()) == ["n1", "n2", "n3"] and not pods.placeholders()

    is_over = happens(is_complete)
    api.ok("DELETE", "/api/v1/nodes/n3")
    assert is_over, (pods.places(), again.log.read_text())

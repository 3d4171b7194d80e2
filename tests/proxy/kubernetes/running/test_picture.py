"""What `licorne kubernetes explain` and `dry-run` say of a cluster, here a stub of its API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.kubernetes.manifests import node, pod
from support.kubernetes.stepped_cluster import gang_annotations
from support.kubernetes.stub_server import StubApiServer
from typer.testing import CliRunner

from licorne.proxy.shell.commands.kubernetes import kubernetes

PODS: Final = "/api/v1/namespaces/default/pods"
TAINT: Final = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    """A cluster of two nodes of 4 cores, one of which has a taint."""
    with StubApiServer() as server:
        server.add("/api/v1/namespaces", {"metadata": {"name": "default"}})
        server.add("/api/v1/nodes", node("free"))
        server.add("/api/v1/nodes", node("tainted", taints=[TAINT]))
        yield server


def said(stub: StubApiServer, folder: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit status of a command about the stub, and what it prints."""
    file = folder / "kubeconfig"
    file.write_text(
        json.dumps(
            {
                "current-context": "stub",
                "contexts": [{"name": "stub", "context": {"cluster": "stub", "user": "stub"}}],
                "clusters": [{"name": "stub", "cluster": {"server": stub.address}}],
                "users": [{"name": "stub", "user": {"token": "any"}}],
            }
        ),
        encoding="utf-8",
    )
    result = CliRunner().invoke(kubernetes, [*arguments, "--kubeconfig", str(file)])
    return result.exit_code, result.output


def manifest(folder: Path, document: dict[str, Any]) -> str:
    """Write a manifest, and return its path."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


EXPLAINED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "a pod that runs says where": (pod("it", nodeName="free"), "default/it runs on node free"),
    "a pod that will be bound says where it fits": (pod("it"), "default/it fits on node free"),
    "a pod that is too large for every node says what is short": (
        pod("it", cpu="6"),
        "2 of 2 too small even when empty, short of vcore",
    ),
    "a pod that filters refuse says which filter refuses": (
        pod("it", nodeSelector={"disk": "ssd"}),
        "0/2 nodes are available: 1 node affinity, 1 untolerated taint dedicated=gpu:NoSchedule",
    ),
    "a pod with scheduling gates says which": (
        pod("it", schedulingGates=[{"name": "quota-check"}]),
        "waits for scheduling gates: quota-check",
    ),
    "a pod of another scheduler says whose it is": (
        pod("it", scheduler="default-scheduler"),
        "is for the scheduler 'default-scheduler', not 'licorne'",
    ),
    "a pod whose node is gone says so": (pod("it", nodeName="lost"), "its node lost is not known"),
    "a pod whose claim is missing says so": (
        pod("it", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]),
        "persistentvolumeclaim 'data' not found",
    ),
}


@pytest.mark.parametrize("case", EXPLAINED.values(), ids=EXPLAINED)
def test_a_pod_is_explained(stub: StubApiServer, tmp_path: Path, case: tuple[dict[str, Any], str]) -> None:
    """From what the cluster has alone."""
    document, expected = case
    stub.add(PODS, document)

    status, output = said(stub, tmp_path, "explain", "default/it")

    assert (0, True) == (status, expected in output), output


@pytest.mark.parametrize("question", ["explain", "dry-run"])
def test_an_answer_can_be_one_document(stub: StubApiServer, tmp_path: Path, question: str) -> None:
    """With the lines of the text and their depth."""
    stub.add(PODS, pod("it"))
    about = {"explain": ["default/it"], "dry-run": ["-f", manifest(tmp_path, pod("new"))]}[question]
    status, output = said(stub, tmp_path, question, *about, "--json")

    lines = json.loads(output)["lines"]
    assert (0, 0) == (status, lines[0]["depth"])
    assert "fits on node free" in " ".join(line["text"] for line in lines)


def test_what_is_asked_changes_nothing(stub: StubApiServer, tmp_path: Path) -> None:
    """No request but reading, and the dry run of the API server."""
    stub.add(PODS, pod("it"))
    said(stub, tmp_path, "explain", "default/it")
    said(stub, tmp_path, "dry-run", "-f", manifest(tmp_path, pod("new")))

    assert {"GET"} == {each.method for each in stub.requests if each.query.get("dryRun") != "All"}


def test_pods_that_wait_already_have_their_room_before_a_new_one(stub: StubApiServer, tmp_path: Path) -> None:
    """The dry run places them first, as the scheduler would."""
    stub.add(PODS, pod("waits", cpu="3"))

    _, output = said(stub, tmp_path, "dry-run", "-f", manifest(tmp_path, pod("new", cpu="2")))

    assert "default/new waits" in output
    assert (
        "0/2 nodes are available: 1 Insufficient cpu, 1 untolerated taint dedicated=gpu:NoSchedule" in output
    )


def test_the_pod_of_a_workload_is_tried(stub: StubApiServer, tmp_path: Path) -> None:
    """In the namespace of the workload, by this scheduler unless it names another."""
    stub.add("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    template = pod("")["spec"] | {"tolerations": [{"operator": "Exists"}], "schedulerName": ""}
    document = {
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": "web"}}, "spec": template}},
    }

    status, output = said(stub, tmp_path, "dry-run", "-f", manifest(tmp_path, document))

    assert 0 == status
    assert "shop/web fits on node" in output


def test_the_api_server_completes_the_pod(stub: StubApiServer, tmp_path: Path) -> None:
    """By its own dry run, under a name that it chooses; if it refuses the pod, the command ends."""
    path = manifest(tmp_path, pod("new"))
    stub.fail("POST", PODS, status=403, reason="Forbidden", message="exceeded quota: small", times=1)

    status, _ = said(stub, tmp_path, "dry-run", "-f", path)
    (asked,) = stub.asked("POST", PODS)

    assert 2 == status
    assert "All" == asked.query["dryRun"]
    assert "new-" == json.loads(asked.body)["metadata"]["generateName"]


def test_all_pods_of_a_manifest_are_tried(stub: StubApiServer, tmp_path: Path) -> None:
    """Of several documents and of lists; other objects are ignored."""
    path = tmp_path / "all.yaml"
    items = [pod("b"), {"kind": "Service", "metadata": {"name": "s"}}]
    documents = [pod("a"), {"kind": "ConfigMap", "data": {"text": "x"}}, {"kind": "List", "items": items}]
    path.write_text("".join(f"---\n{json.dumps(each)}\n" for each in documents), encoding="utf-8")

    status, output = said(stub, tmp_path, "dry-run", "-f", str(path))

    assert 0 == status
    assert ["default/a fits on node free", "default/b fits on node free"] == [
        line for line in output.splitlines() if line.startswith("default/")
    ]


@pytest.mark.parametrize(("cpu", "expected"), [("1", "fits on node free"), ("3", "1 Insufficient cpu")])
def test_a_gang_is_tried_with_all_its_members(
    stub: StubApiServer, tmp_path: Path, cpu: str, expected: str
) -> None:
    """A pod of it fits if the whole gang does; otherwise the first member without a node is explained."""
    annotations = gang_annotations({"minMember": 2, "minResource": {"cpu": cpu}}, member="workers")
    document = pod("gang", cpu=cpu, labels={"applicationId": "gang"}, annotations=annotations)

    status, output = said(stub, tmp_path, "dry-run", "-f", manifest(tmp_path, document))

    assert (0, True) == (status, expected in output), output
    assert ("is not complete" in output) is (cpu == "3")


def test_the_queues_are_those_of_the_installed_scheduler(stub: StubApiServer, tmp_path: Path) -> None:
    """Not those of the user's own namespace."""
    queues = "partitions: [{name: default, queues: [{name: root, queues: [{name: only}]}]}]"
    data = {"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": queues}}
    stub.add("/api/v1/namespaces/licorne/configmaps", data)

    _, output = said(stub, tmp_path, "dry-run", "-f", manifest(tmp_path, pod("new")))

    assert "failed to place application" in output


def test_failed_binds_are_reported(stub: StubApiServer, tmp_path: Path) -> None:
    """The pod fits, and would fail again."""
    uid = stub.add(PODS, pod("it"))["metadata"]["uid"]
    event = {"metadata": {"name": "e"}, "reason": "PodBindFailure", "note": "the webhook refuses it"}
    stub.add("/apis/events.k8s.io/v1/namespaces/default/events", {**event, "regarding": {"uid": uid}})

    _, output = said(stub, tmp_path, "explain", "default/it")

    assert "default/it fits on node free" in output
    assert "PodBindFailure: the webhook refuses it" in output


REFUSED: Final[dict[str, tuple[list[str], str]]] = {
    "a pod that is not there": (["explain", "default/none"], "the cluster has no pod default/none"),
    "a name without a namespace": (["explain", "none"], "expected NAMESPACE/NAME, not 'none'"),
    "a manifest that is not there": (["dry-run", "-f", "/no/such.yaml"], "/no/such.yaml"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(
    stub: StubApiServer, tmp_path: Path, case: tuple[list[str], str], capfd: pytest.CaptureFixture[str]
) -> None:
    """With the offending value, and status 2."""
    arguments, expected = case

    status, output = said(stub, tmp_path, *arguments)

    assert (2, True) == (status, expected in output + capfd.readouterr().err), output


def test_a_manifest_without_a_pod_is_refused(
    stub: StubApiServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The error says which kinds have one."""
    status, output = said(stub, tmp_path, "dry-run", "-f", manifest(tmp_path, {"kind": "Service"}))

    text = output + capfd.readouterr().err
    assert 2 == status
    assert "kind: 'Service' has no pod; those that have are Pod, Deployment" in text

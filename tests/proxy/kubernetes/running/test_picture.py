"""What `licorne kubernetes explain` and `dry-run` say of a cluster, here a stub of its API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.kubernetes.manifests import node, pod
from support.kubernetes.stub_server import StubApiServer
from typer.testing import CliRunner

from licorne.proxy.shell.commands.kubernetes import kubernetes

PODS: Final = "/api/v1/namespaces/default/pods"
TAINT: Final = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    """A cluster of two nodes of 4 cores, one of which has a taint."""
    with StubApiServer() as server:
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
        "failed plugin: 'NodeAffinity'",
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


def test_what_is_asked_changes_nothing(stub: StubApiServer, tmp_path: Path) -> None:
    """No request but reading."""
    stub.add(PODS, pod("it"))
    said(stub, tmp_path, "explain", "default/it")
    said(stub, tmp_path, "dry-run", "-f", manifest(tmp_path, pod("new")))

    assert {"GET"} == {request.method for request in stub.requests}


def test_pods_that_wait_already_have_their_room_before_a_new_one(stub: StubApiServer, tmp_path: Path) -> None:
    """The dry run places them first, as the scheduler would."""
    stub.add(PODS, pod("waits", cpu="3"))

    _, output = said(stub, tmp_path, "dry-run", "-f", manifest(tmp_path, pod("new", cpu="2")))

    assert "default/new waits" in output
    assert "no node has room" in output or "every node with room is refused" in output


def test_the_pod_of_a_workload_is_tried(stub: StubApiServer, tmp_path: Path) -> None:
    """In the namespace of the workload, by this scheduler unless it names another."""
    template = pod("")["spec"] | {"tolerations": [{"operator": "Exists"}], "schedulerName": ""}
    document = {
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": "web"}}, "spec": template}},
    }

    status, output = said(stub, tmp_path, "dry-run", "-f", manifest(tmp_path, document))

    assert 0 == status
    assert "shop/web fits on node" in output


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

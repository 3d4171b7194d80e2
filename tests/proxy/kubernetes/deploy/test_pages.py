"""The commands of the README and the objects of the page are carried out on a cluster, without kubectl."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kubernetes.api import Api
from support.kubernetes.cluster import Cluster
from support.kubernetes.installation import MANIFESTS, Replica, applied, documents_of, path_of
from support.kubernetes.manifests import RUNS_FOR
from support.waiting import happens

pytestmark = pytest.mark.kubernetes

ROOT = MANIFESTS.parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
OBJECTS = [
    yaml.safe_load(block)
    for block in re.findall(r"^```yaml\n(apiVersion.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
]


def commands_of(page: str) -> list[str]:
    """Return the commands of a page, from the one that builds the image to the one that shows the pod."""
    found = re.search(r"^    (docker build .*?)\n\n", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    return [line.strip() for line in found[1].splitlines()]


def files_of(command: str) -> list[Path]:
    """Return what `kubectl apply -f` reads: a file, or the manifests in a folder and not below it."""
    path = ROOT / command.removeprefix("kubectl apply -f ")
    return [path] if path.is_file() else sorted(path.glob("*.yaml"))


def test_readme_and_page_begin_with_the_same_five_commands() -> None:
    """The first one is that of the Dockerfile."""
    commands = commands_of(README)

    assert (5, commands) == (len(commands), commands_of(PAGE))
    assert commands[0] in (MANIFESTS / "Dockerfile").read_text(encoding="utf-8")


def test_the_commands_of_the_readme_end_with_a_pod_that_has_a_node(api: Api, leader: Replica) -> None:
    """What is applied is applied, and a process stands for the image; then the pod runs."""
    applies = [line for line in commands_of(README) if line.startswith("kubectl apply")]
    shown = commands_of(README)[-1].removeprefix("kubectl get pod ").split()[0]
    path = f"/api/v1/namespaces/default/pods/{shown}"

    for command in applies:
        for document in documents_of(*files_of(command)):
            applied(api, document)

    is_running = happens(lambda: api.ok("GET", path)["status"]["phase"] == "Running")
    api.ok("DELETE", path)
    assert is_running, leader.log.read_text()


def test_the_way_without_an_image_schedules_a_pod(cluster: Cluster, api: Api, tmp_path: Path) -> None:
    """The command of the README as it is; only its page has another port."""
    assert "\n    licorne kubernetes\n    kubectl apply -f examples/kubernetes/pod.yaml " in README
    (hello,) = documents_of(ROOT / "examples" / "kubernetes" / "pod.yaml")
    program = Path(sys.executable).with_name("licorne")
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig(tmp_path / "config"))}
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(  # noqa: S603 - our own command
            [program, "kubernetes", "--rest-address=127.0.0.1:0"],
            stdout=errors,
            stderr=errors,
            env=environment,
        ) as process,
    ):
        applied(api, hello)
        has_node = happens(lambda: api.ok("GET", path_of(hello))["spec"].get("nodeName"))
        process.terminate()
    api.ok("DELETE", path_of(hello))

    assert has_node, log.read_text()


@pytest.mark.parametrize("document", OBJECTS, ids=lambda document: document["kind"])
def test_an_object_of_the_page_is_one_that_the_server_takes(api: Api, document: Mapping[str, Any]) -> None:
    """It has no field that the server does not know."""
    query = "fieldManager=tests&fieldValidation=Strict&dryRun=All"

    status, answer = api.request(
        "PATCH", f"{path_of(document)}?{query}", document, "application/apply-patch+yaml"
    )

    assert 201 == status, answer


def test_the_page_has_a_pod_and_a_namespace() -> None:
    """They are found where they are looked for."""
    assert ["Pod", "Namespace"] == [each["kind"] for each in OBJECTS]


def test_the_gang_of_the_examples_runs(api: Api, leader: Replica, namespace: str) -> None:
    """Three pods in the place of three placeholders, and the job completes."""
    (job,) = documents_of(ROOT / "examples" / "kubernetes" / "gang.yaml")
    job["spec"]["template"]["metadata"]["annotations"][RUNS_FOR] = "0.5"
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"

    api.ok("POST", jobs, job)

    def has_ended() -> bool:
        return "completionTime" in api.ok("GET", f"{jobs}/{job['metadata']['name']}")["status"]

    assert happens(has_ended), leader.log.read_text()
    events = api.ok("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    assert "GangReservationComplete" in {each["action"] for each in events if "action" in each}

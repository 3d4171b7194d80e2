"""The manifests of `deploy/kubernetes/` on a cluster of tests, and processes in place of their containers.

A process gets the arguments, the account and the pod that the manifests give to a container; only its
addresses are on loopback, and it finds the API server by a kubeconfig file.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from support.kubernetes.api import Api
from support.kubernetes.cluster import Cluster
from support.waiting import WAIT_SECONDS

MANIFESTS: Final = Path(__file__).parents[3] / "deploy" / "kubernetes"
NAMESPACE: Final = "licorne"
_APPLY: Final = "application/apply-patch+yaml"
_CLUSTER_WIDE: Final = frozenset(
    {
        *("Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityClass"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    }
)


def documents_of(*paths: Path) -> list[dict[str, Any]]:
    """Return the objects in YAML files, in order."""
    return [each for path in paths for each in yaml.safe_load_all(path.read_text()) if each is not None]


def in_namespace(document: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return a namespaced object in another namespace, or a binding of accounts there."""
    moved = {**document, "metadata": dict(document["metadata"])}
    if "namespace" in moved["metadata"]:
        moved["metadata"]["namespace"] = namespace
    if "subjects" in moved:
        moved["subjects"] = [{**each, "namespace": namespace} for each in moved["subjects"]]
    return moved


def path_of(document: Mapping[str, Any]) -> str:
    """Return the path of an object."""
    version, kind, metadata = document["apiVersion"], document["kind"], document["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"
    if kind not in _CLUSTER_WIDE:
        root += f"/namespaces/{metadata.get('namespace', 'default')}"
    return f"{root}/{plural}/{metadata['name']}"


def applied(api: Api, document: Mapping[str, Any]) -> dict[str, Any]:
    """Apply an object as `kubectl apply --server-side` does; return it as the server has it."""
    path = f"{path_of(document)}?fieldManager=tests&force=true&fieldValidation=Strict"
    return api.ok("PATCH", path, document, _APPLY)


class Replica:
    """A process `licorne kubernetes`; `replica` starts one."""

    def __init__(self, process: subprocess.Popen[str], pod_name: str, log: Path) -> None:
        self.process = process
        self.pod_name = pod_name
        self.log = log
        said = _spoken(process, log)
        self.rest, self.health = said["REST"], said["health"]
        self.webhook = said.get("webhook", "")
        """Where its webhook listens, empty if it has none."""

    def get(self, address: str, path: str) -> tuple[int, str]:
        """Ask one of its addresses; return status and text, and the status 0 if nobody listens."""
        host, _, port = address.rpartition(":")
        try:
            with closing(http.client.HTTPConnection(host, int(port), timeout=WAIT_SECONDS)) as connection:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""

    @property
    def is_ready(self) -> bool:
        """Whether a kubelet would call it ready."""
        return self.get(self.health, "/readyz")[0] == 200

    def rest_document(self, path: str) -> Any:
        """Return what its REST interface answers."""
        status, text = self.get(self.rest, path)
        assert status == 200, text
        return json.loads(text)


def role_of(api: Api, pod_name: str) -> str | None:
    """Return what the label of a pod says of its process."""
    pod = api.ok("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod_name}")
    role: str | None = pod["metadata"]["labels"].get("licorne.io/role")
    return role


def is_leading(api: Api, replica: Replica) -> bool:
    """Return whether a process schedules; the label may be that of an earlier process until it is ready."""
    return replica.is_ready and role_of(api, replica.pod_name) == "leader" and replica.is_ready


def _spoken(process: subprocess.Popen[str], log: Path) -> dict[str, str]:
    """Return the addresses that a process prints when it listens; that of the probes is the last one."""
    assert process.stdout is not None
    said: dict[str, str] = {}
    while "health" not in said:
        line = process.stdout.readline()
        assert line, f"it ended with status {process.wait()}: {log.read_text()}"
        name, _, address = line.strip().partition(" on ")
        said[name] = address
    return said


@contextmanager
def replica(
    cluster: Cluster,
    folder: Path,
    pod_name: str,
    token: str,
    *changed: str,
    within_command: Sequence[str] = (),
) -> Iterator[Replica]:
    """Run a process as the container of a pod of the deployment; it is killed behind the block.

    Args:
        cluster: Where it schedules.
        folder: For its kubeconfig and its log.
        pod_name: The pod in whose place it runs.
        token: Of its service account.
        changed: Arguments in the place of those of the manifest, such as `--scheduler-name=yunikorn`.
        within_command: A command that the one of the process is given to, such as `setpriv`.
    """
    documents = documents_of(MANIFESTS / "4-scheduler.yaml")
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    own = {each.partition("=")[0]: each for each in container["args"]}
    own |= {name: f"{name}=127.0.0.1:0" for name in ("--rest-address", "--health-address")}
    own |= {each.partition("=")[0]: each for each in changed}
    kubeconfig = cluster.kubeconfig(folder / f"{pod_name}.yaml", token)
    log = folder / f"{pod_name}-{time.monotonic_ns()}.log"
    command = [
        *within_command,
        sys.executable,
        "-m",
        "licorne",
        "kubernetes",
        f"--kubeconfig={kubeconfig}",
        *own.values(),
    ]
    with log.open("w") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {"NAMESPACE": NAMESPACE, "POD_NAME": pod_name},
        )
    try:
        yield Replica(process, pod_name, log)
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)
        assert process.stdout is not None
        process.stdout.close()

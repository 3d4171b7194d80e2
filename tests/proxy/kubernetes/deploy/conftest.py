"""The cluster of these tests: the manifests are applied to it, and controllers and a kubelet run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from support.kubernetes.api import Api
from support.kubernetes.building import UnbuiltError
from support.kubernetes.cluster import EVERY_SERVER, Cluster, installed_programs, running
from support.kubernetes.installation import (
    MANIFESTS,
    NAMESPACE,
    Replica,
    applied,
    documents_of,
    is_leading,
    path_of,
    replica,
)
from support.kubernetes.kubelet import Kubelet
from support.kubernetes.manifests import node
from support.waiting import happens


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster of two nodes; skip where a program is missing."""
    try:
        installed_programs()
    except UnbuiltError as error:
        pytest.skip(str(error))
    with (
        running(tmp_path_factory.mktemp("cluster"), servers=EVERY_SERVER) as cluster,
        Kubelet(cluster) as kubelet,
    ):
        for name in ("n1", "n2"):
            kubelet.add_node(node(name))
        yield cluster


@pytest.fixture(scope="session")
def pod_names(cluster: Cluster) -> tuple[str, str]:
    """Apply the manifests; return the names of the two pods that the deployment has made."""
    with closing(cluster.api()) as api:
        for document in documents_of(*sorted(MANIFESTS.glob("*.yaml"))):
            applied(api, document)
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"

        def are_running(pods: dict[str, list[dict[str, dict[str, str]]]]) -> bool:
            return [each["status"]["phase"] for each in pods["items"]] == ["Running", "Running"]

        first, second = [each["metadata"]["name"] for each in api.until(path, are_running)["items"]]
    return first, second


@pytest.fixture(scope="session")
def token(cluster: Cluster, pod_names: tuple[str, str]) -> str:
    """Return a token of the account of the manifests."""
    assert pod_names
    return cluster.service_account_token(NAMESPACE, "licorne")


@pytest.fixture
def start(cluster: Cluster, token: str, tmp_path: Path, api: Api) -> Iterator[Callable[..., Replica]]:
    """Return a function that starts a process as the container of a pod.

    Before the first start nobody holds the lease, and the configuration is that of the manifests.
    """
    api.request("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/licorne")
    for document in documents_of(MANIFESTS / "3-queues.yaml"):
        api.request("DELETE", path_of(document))
        applied(api, document)
    with ExitStack() as stack:
        yield lambda pod_name, *changed, **options: stack.enter_context(
            replica(cluster, tmp_path, pod_name, token, *changed, **options)
        )


@pytest.fixture
def leader(start: Callable[..., Replica], api: Api, pod_names: tuple[str, str]) -> Replica:
    """Return a process that schedules."""
    replica = start(pod_names[0])
    assert happens(lambda: is_leading(api, replica)), replica.log.read_text()
    return replica

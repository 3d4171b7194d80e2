"""The cluster of these tests: one for all of them, with a namespace and a kubelet for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.kubernetes.building import UnbuiltError
from support.kubernetes.cluster import EVERY_SERVER, Cluster, installed_programs, running
from support.kubernetes.kubelet import Kubelet


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster with controllers and Kubernetes' own scheduler; skip where a program is missing."""
    try:
        installed_programs()
    except UnbuiltError as error:
        pytest.skip(str(error))
    with running(tmp_path_factory.mktemp("cluster"), servers=EVERY_SERVER) as cluster:
        yield cluster


@pytest.fixture
def kubelet(cluster: Cluster) -> Iterator[Kubelet]:
    """Return a kubelet without nodes; those that the test adds are deleted after it."""
    with Kubelet(cluster) as kubelet:
        yield kubelet

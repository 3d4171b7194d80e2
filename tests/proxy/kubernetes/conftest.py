"""What every test on a real cluster has: the administrator's client, and a namespace of its own.

The cluster is a fixture of each folder, with what its tests need beside the API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest
from support.kubernetes.api import Api
from support.kubernetes.cluster import Cluster

_SERIAL = count(1)


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    """Return the administrator's client."""
    with closing(cluster.api()) as api:
        yield api


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """Return the name of a namespace of the test alone; its pods are gone afterwards."""
    name = f"test-{next(_SERIAL)}"
    api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    api.ok("DELETE", f"/api/v1/namespaces/{name}")
    api.ok("DELETE", f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})

"""A scheduler of pods without threads, for each test a new one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.kubernetes.stepped_cluster import SteppedCluster


@pytest.fixture
def cluster() -> Iterator[SteppedCluster]:
    """Return a scheduler of pods with a stub of an API server that has no node yet."""
    found = SteppedCluster()
    found.settle()
    yield found
    found.stop()

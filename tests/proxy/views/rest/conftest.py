"""A scheduler behind its REST interface."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.proxy.rest_clients import Reader, reader


@pytest.fixture
def served() -> Iterator[Reader]:
    """Give a scheduler with one partition behind its REST interface."""
    with reader() as served:
        yield served

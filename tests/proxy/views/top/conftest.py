"""A server whose documents a test may change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.proxy.document_server import DocumentServer


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    """Serve the documents of the recorded core."""
    with DocumentServer() as server:
        yield server

"""Doors over schedulers of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.proxy.door_views import Both, LiveWorkers, half_each
from support.waiting import WAIT_SECONDS


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers on a slow machine take a connection."""
    monkeypatch.setattr("licorne.proxy.wire.door.view.worker_client._CONNECT_SECONDS", float(WAIT_SECONDS))


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    with half_each() as both:
        yield both


@pytest.fixture
def workers() -> Iterator[LiveWorkers]:
    with ExitStack() as stack:
        yield LiveWorkers(stack)

"""Fixtures for the scheduler that runs by itself.

Every test ends with the invariants, with no thread left, and with nothing in the log that is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from loguru import logger
from support.actors.shared_fields import fields_watched
from support.proxy.listening import Listener
from support.proxy.running_scheduler import running

from licorne import Scheduler
from licorne.proxy.core.scheduler.engine_names import EngineName

if TYPE_CHECKING:
    from loguru import Message


@pytest.fixture(autouse=True)
def complaints() -> Iterator[list[str]]:
    """Collect what the scheduler logs as errors; what is left at the end fails the test."""
    kept: list[str] = []

    def keep(message: Message) -> None:
        record = message.record
        kept.append(f"{record['message']} {record['exception']} {record['extra']}")

    sink = logger.add(keep, level="ERROR")
    logger.enable("licorne")
    yield kept
    logger.disable("licorne")
    logger.remove(sink)
    assert [] == kept


@pytest.fixture(autouse=True)
def shared_fields() -> Iterator[list[str]]:
    """Have what threads share touched under its lock only; return what is not."""
    with fields_watched() as violations:
        yield violations


@pytest.fixture(params=["actors", "threads", "threads that share"])
def scheduler(request: pytest.FixtureRequest) -> Iterator[Scheduler]:
    """Give a scheduler that runs by itself."""
    engine: EngineName = "actors" if request.param == "actors" else "threads"
    shared = request.param == "threads that share"
    with running(engine, share_partitions=shared) as scheduler:
        yield scheduler


@pytest.fixture
def listener() -> Listener:
    """Give a manager that only listens."""
    return Listener()

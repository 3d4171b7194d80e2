"""Dispatchers for the tests of the runtime, and its log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from loguru import logger
from support.actors.shared_fields import fields_watched

from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.reference import DeadLetter, Failure

if TYPE_CHECKING:
    from loguru import Message, Record


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logger.disable("licorne")


@pytest.fixture(autouse=True)
def shared_fields() -> Iterator[list[str]]:
    """Have what threads share touched under its lock only; return what is not."""
    with fields_watched() as violations:
        yield violations


@pytest.fixture
def stepped() -> Iterator[Dispatcher]:
    """Give a dispatcher without threads: queued messages wait for `run_pending` or for an asker's help."""
    with Dispatcher(workers=0, name="stepped") as dispatcher:
        yield dispatcher


@pytest.fixture
def pooled() -> Iterator[Dispatcher]:
    """Give a dispatcher with two workers."""
    with Dispatcher(workers=2, name="pooled") as dispatcher:
        yield dispatcher


@pytest.fixture
def checked() -> Iterator[Dispatcher]:
    """Give a dispatcher that checks the direction of asks."""
    with Dispatcher(workers=1, check_direction=True) as dispatcher:
        yield dispatcher


@pytest.fixture
def records() -> Iterator[list[Record]]:
    """Collect what the runtime logs."""
    kept: list[Record] = []

    def keep(message: Message) -> None:
        kept.append(message.record)

    sink = logger.add(keep, level=0)
    logger.enable("licorne")
    yield kept
    logger.disable("licorne")
    logger.remove(sink)


@pytest.fixture
def dead_letters() -> Iterator[tuple[Dispatcher, list[DeadLetter]]]:
    """Give a dispatcher without threads and the dead letters it reports."""
    letters: list[DeadLetter] = []
    with Dispatcher(workers=0, on_dead_letter=letters.append) as dispatcher:
        yield dispatcher, letters


@pytest.fixture
def failures() -> Iterator[tuple[Dispatcher, list[Failure]]]:
    """Give a dispatcher without threads and the failures it reports."""
    reported: list[Failure] = []
    with Dispatcher(workers=0, on_failure=reported.append) as dispatcher:
        yield dispatcher, reported

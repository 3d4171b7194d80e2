"""What the tests of recordings share: the log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from loguru import logger


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """Give the texts of what is logged from now on."""
    texts: list[str] = []
    sink = logger.add(lambda message: texts.append(message.record["message"]), level="WARNING")
    logger.enable("licorne")
    try:
        yield texts
    finally:
        logger.disable("licorne")
        logger.remove(sink)

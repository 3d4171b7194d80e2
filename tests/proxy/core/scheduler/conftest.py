"""What tests of whole schedulers share: one on each engine, and a resource manager that only listens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.proxy.listening import Listener

from licorne import Scheduler
from licorne.proxy.core.scheduler.engine_names import ENGINES


@pytest.fixture(params=ENGINES)
def scheduler(request: pytest.FixtureRequest) -> Iterator[Scheduler]:
    """Give a stepped scheduler on each engine; it is in order at the end."""
    with Scheduler(engine=request.param, stepped=True, check_direction=True) as scheduler:
        yield scheduler
        if not scheduler._stopped:
            scheduler.validate()


@pytest.fixture
def listener() -> Listener:
    """Give a manager that only listens."""
    return Listener()

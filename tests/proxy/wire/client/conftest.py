"""Fixtures for recoveries: a scheduler that notes what it is sent, and a manager that has something."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.proxy.knowing_manager import KnowingManager, a_node, an_allocation, an_application
from support.proxy.noting_scheduler import Noting

from licorne import Scheduler
from licorne.proxy.core.scheduler.engine_names import ENGINES


@pytest.fixture(params=ENGINES)
def scheduler(request: pytest.FixtureRequest) -> Iterator[Noting]:
    """Give a stepped scheduler on each engine; it is in order at the end."""
    with Scheduler(engine=request.param, stepped=True, check_direction=True) as scheduler:
        yield Noting(scheduler)
        if not scheduler._stopped:
            scheduler.validate()


@pytest.fixture
def manager() -> KnowingManager:
    """Give a manager with two nodes, something of its own and of others on them, and an ask."""
    manager = KnowingManager()
    manager.know(
        nodes=[a_node("n1"), a_node("n2")],
        applications=[an_application("app")],
        allocations=[
            an_allocation("a", node_id="n1"),
            an_allocation("theirs", node_id="n2", foreign=True),
            an_allocation("waits"),
        ],
    )
    return manager

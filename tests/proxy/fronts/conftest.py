"""Fixtures for programs on asyncio: a front to each kind of scheduler, none of which leaves a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.proxy.manager_requests import ONE
from support.proxy.running_scheduler import threads_of_ours
from support.proxy.served import served
from support.waiting import WAIT_SECONDS

from licorne import AsyncScheduler, RemoteScheduler


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """A front ends all that it begins."""
    before = threads_of_ours()
    yield
    left = threads_of_ours() - before
    for thread in left:
        thread.join(WAIT_SECONDS)
    assert [] == [thread.name for thread in left if thread.is_alive()]


@pytest.fixture(params=["actors", "threads", "remote"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., AsyncScheduler]]:
    """Return what makes a front to a scheduler in this process, or to one behind a channel of gRPC."""
    if request.param != "remote":
        yield lambda **settings: AsyncScheduler(ONE, engine=request.param, **settings)
        return
    with served() as server:
        yield lambda **settings: AsyncScheduler(
            ONE, scheduler=lambda: RemoteScheduler(server.address), **settings
        )

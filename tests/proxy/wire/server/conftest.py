"""A scheduler that is served in this process, and channels to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import grpc
import pytest

from licorne import Scheduler
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.wire.server.server import ServerSettings, ServerThread


class Served:
    """A scheduler, and how it is reached."""

    def __init__(self, scheduler: Scheduler, address: str, stack: ExitStack) -> None:
        self.scheduler = scheduler
        self.address = address
        self._stack = stack

    def channel(self) -> grpc.Channel:
        """Return a connection of its own, which is closed when the test ends."""
        options = [("grpc.use_local_subchannel_pool", 1)]
        return self._stack.enter_context(grpc.insecure_channel(self.address, options=options))


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Return the function that serves a fresh scheduler; settings are those of `ServerSettings`."""
    with ExitStack() as stack:

        def start(engine: EngineName = "actors", **settings: object) -> Served:
            scheduler = Scheduler(engine=engine)
            made = ServerSettings(**settings)  # type: ignore[arg-type] # whatever the test says
            server = stack.enter_context(ServerThread(scheduler, made))
            return Served(scheduler, server.address, stack)

        yield start


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    """Return a fresh scheduler that is served as the defaults say."""
    return serve()

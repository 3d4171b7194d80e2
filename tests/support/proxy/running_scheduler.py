"""A scheduler that runs by itself, for tests: started, looked at, and found to leave no thread behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, TWO, application_request, node_request
from support.waiting import WAIT_SECONDS

from licorne import RequestError, Scheduler
from licorne.actors.engines.engine import ActorsEngine
from licorne.proxy.base.process import is_compiled
from licorne.proxy.core.scheduler.engine_names import EngineName


def begin(
    scheduler: Scheduler,
    listener: Listener,
    *,
    rm_id: str = "rm",
    memory: int = 1000,
    configuration: str = ONE,
) -> None:
    """Register an RM, with a node and an application in each partition; wait until both are there."""
    scheduler.register(rm_id, listener, configuration=configuration)
    for name in ("default", "second") if configuration == TWO else ("default",):
        scheduler.update_node(node_request(f"node-{name}", rm_id=rm_id, memory=memory, partition=name))
        application = "app" if name == "default" else f"app-{name}"
        scheduler.update_application(application_request(application, rm_id=rm_id, partition=name))
        listener.wait_for(f"accepted node-{name}", f"accepted {application}")


def threads_of_ours() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("licorne")}


def placed_in(scheduler: Scheduler) -> int:
    """Return how many allocations there are, after one more turn of each partition that has work."""
    snapshot: Any = scheduler.snapshot()
    return sum(view.get("totalContainers", 0) for view in snapshot["partitions"])


def reserved_in(scheduler: Scheduler) -> int:
    """Return how many nodes are reserved."""
    snapshot: Any = scheduler.snapshot()
    return sum(node["isReserved"] for nodes in snapshot["nodes"].values() for node in nodes)


def actors_of(scheduler: Scheduler) -> int:
    engine = scheduler._engine
    assert isinstance(engine, ActorsEngine)
    return len(engine.dispatcher.actors())


@contextmanager
def running(
    engine: EngineName = "actors",
    *,
    threads: int | None = None,
    share_partitions: bool = False,
    check_direction: bool = False,
) -> Iterator[Scheduler]:
    """Give a scheduler that runs by itself, and look at what it leaves; skip where it cannot share."""
    if share_partitions and is_compiled():
        pytest.skip("threads share a partition in pure Python alone: compiled classes cannot be given locks")
    before = threads_of_ours()
    with Scheduler(
        engine=engine, threads=threads, share_partitions=share_partitions, check_direction=check_direction
    ) as scheduler:
        yield scheduler
        if not scheduler._stopped:
            scheduler.validate()
    left = threads_of_ours() - before
    for thread in left:
        thread.join(WAIT_SECONDS)  # A link that was closed by its own callback ends when that returns.
    assert [] == [thread.name for thread in left if thread.is_alive()]


def in_threads(*bodies: Callable[[], object]) -> None:
    """Run bodies at once, each on a thread of its own, and wait for all; raise what one of them raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(bodies))

    def run(body: Callable[[], object]) -> None:
        try:
            start.wait(WAIT_SECONDS)
            body()
        except BaseException as error:  # noqa: BLE001 - it is raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(body,), daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a caller hangs"
    for error in errors:
        raise error


def refused(act: Callable[[], object]) -> str:
    """Return why an act is refused."""
    with pytest.raises(RequestError) as caught:
        act()
    return str(caught.value)

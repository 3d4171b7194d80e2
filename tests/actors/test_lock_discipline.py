"""What threads share is touched under its lock only, whatever the interpreter would forgive.

At every access to a shared field of the runtime it is asked whether the calling thread holds the lock of its
object. So a missing lock is found without the race it leads to.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest
from pykka import ActorDeadError, Timeout
from support.actors.shared_fields import Shared, classes_watched

from licorne.actors.runtime import dispatcher as dispatcher_module
from licorne.actors.runtime import future as future_module
from licorne.actors.runtime import mailbox as mailbox_module
from licorne.actors.runtime import pool as pool_module
from licorne.actors.runtime import waiting as waiting_module
from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.errors import AskCycleError
from licorne.actors.runtime.future import PooledFuture
from licorne.actors.runtime.mailbox import Mailbox
from licorne.actors.runtime.pool import WorkerPool
from licorne.actors.runtime.reference import PooledRef
from licorne.actors.runtime.waiting import WaitGraph

pytestmark = pytest.mark.lockcheck(off=True)  # these actors ask in all ways, also in cycles, on purpose

SHARED = (
    Shared(
        Mailbox,
        "_lock",
        ("_owner", "_idle", "_queued", "_waits"),
        written=("_closed", "_normal", "_control"),  # the owner of an actor may read these without the lock
    ),
    Shared(PooledFuture, "_lock", ("_outcome", "_hook_thread", "_waits", "_get_hook")),
    Shared(WaitGraph, "_lock", ("_waits",)),
    Shared(
        WorkerPool, "_lock", ("_threads", "_asleep", "_blocking", "_target", "_spawned", "_ready", "_idle")
    ),
    Shared(Dispatcher, "_lock", ("_actors", "_closing")),
)
MODULES = (dispatcher_module, future_module, mailbox_module, pool_module, waiting_module)


@pytest.fixture
def violations() -> Iterator[list[str]]:
    """Watch the classes of the runtime."""
    with classes_watched(SHARED, MODULES) as watching:
        watching.put(future_module, "WAIT_GRAPH", WaitGraph())
        yield watching.violations


class Worker(PooledActor):
    """Does a bit of everything."""

    def __init__(self) -> None:
        super().__init__()
        self.done = 0

    def on_start(self) -> None:
        self.done += 1

    def work(self) -> int:
        self.done += 1
        return self.done

    def ask_oneself(self) -> int:
        return self.actor_ref.call(Worker.work)

    def rest(self) -> None:
        with self.dispatcher.blocking():
            self.done += 1


def use(ref: PooledRef[Worker], way: int) -> None:
    """Use a reference in one of all ways."""
    if way == 0:
        ref.send(Worker.work)
    elif way == 1:
        ref.call(Worker.work)
    elif way == 2:
        ref.proxy().work().map(lambda done: done + 1).get()
    elif way == 3:
        ref.ask("unexpected", timeout=60)
    elif way == 4:
        ref.send(Worker.rest)
    else:
        with pytest.raises(AskCycleError):
            ref.call(Worker.ask_oneself)


def test_every_shared_field_is_touched_under_its_lock_only(violations: list[str]) -> None:
    """From many threads, over whole lives, on every path through the runtime."""
    with Dispatcher(workers=2) as dispatcher:
        for _ in range(10):
            ref = dispatcher.start(Worker)
            threads = [threading.Thread(target=partial(_use_all, ref, first)) for first in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            with pytest.raises(Timeout):
                ref.ask("too slow", timeout=0)
            ref.stop(block=False)
            ref.stop()
            with pytest.raises(ActorDeadError):
                ref.call(Worker.work)
        dispatcher.start(Worker)
        dispatcher.run_pending()
        assert 1 == len(dispatcher.actors())

    assert [] == sorted(set(violations))


def _use_all(ref: PooledRef[Worker], first: int) -> None:
    for way in range(6):
        use(ref, (first + way) % 6)


def test_the_watch_sees_a_field_touched_without_its_lock(violations: list[str]) -> None:
    """It can fail: a look and a change without the lock are both noted."""
    with Dispatcher(workers=0) as dispatcher:
        ref = dispatcher.start(PooledActor)
        inbox = ref.actor_inbox

        inbox._queued = inbox._idle

    found = {*violations}
    violations.clear()

    assert {"Mailbox._idle is read without _lock", "Mailbox._queued is written without _lock"} == found

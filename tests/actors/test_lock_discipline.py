"""What threads share is touched under its lock only, whatever the interpreter would forgive.

The classes of the runtime are replaced by ones that ask, at every access to a shared field, whether the
calling thread holds the lock of its object. So a missing lock is found without the race it leads to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest
from pykka import ActorDeadError, Timeout

from licorne.actors.runtime import actor as actor_module
from licorne.actors.runtime import dispatcher as dispatcher_module
from licorne.actors.runtime import future as future_module
from licorne.actors.runtime import mailbox as mailbox_module
from licorne.actors.runtime import pool as pool_module
from licorne.actors.runtime import reference as reference_module
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

SHARED: dict[type, tuple[str, ...]] = {
    Mailbox: ("_owner", "_idle", "_queued", "_waits"),
    PooledFuture: ("_outcome", "_hook_thread", "_waits", "_get_hook"),
    WaitGraph: ("_waits",),
    WorkerPool: ("_threads", "_asleep", "_blocking", "_target", "_spawned", "_ready", "_idle"),
    Dispatcher: ("_actors", "_closing"),
}
WRITTEN_UNDER_LOCK: dict[type, tuple[str, ...]] = {Mailbox: ("_closed", "_normal", "_control")}
"""Fields that the owner of an actor may read without the lock."""


class HeldLock:
    """A lock that knows who holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.holder: int | None = None

    def __enter__(self) -> None:
        self._lock.acquire()
        self.holder = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self.holder = None
        self._lock.release()


class Guard:
    """Stand for a field, and note every access without the lock."""

    def __init__(self, owner: type, name: str, violations: list[str], *, reads: bool) -> None:
        self._slot = owner.__dict__.get(name)
        self._label = f"{owner.__name__}.{name}"
        self._name = name
        self._violations = violations
        self._reads = reads

    def __get__(self, instance: object, _owner: type) -> object:
        if self._reads:
            self._look(instance, "read")
        if self._slot is not None and hasattr(self._slot, "__set__"):
            return self._slot.__get__(instance)
        return instance.__dict__[self._name]

    def __set__(self, instance: object, value: object) -> None:
        self._look(instance, "written")
        if self._slot is not None and hasattr(self._slot, "__set__"):
            self._slot.__set__(instance, value)
        else:
            instance.__dict__[self._name] = value

    def _look(self, instance: object, how: str) -> None:
        state = instance.__dict__
        if state.get("is_made") and instance._lock.holder != threading.get_ident():  # type: ignore[attr-defined]  # each has one
            self._violations.append(f"{self._label} {how} without its lock")


def guarded(owner: type, violations: list[str]) -> type:
    """Make a subclass that watches the shared fields, once an object is made."""

    def __init__(self: object, *args: object, **kwargs: object) -> None:  # noqa: N807 - it becomes a method
        owner.__init__(self, *args, **kwargs)  # type: ignore[misc]  # of whatever class
        self.__dict__["is_made"] = True

    guards = {name: Guard(owner, name, violations, reads=True) for name in SHARED[owner]}
    for name in WRITTEN_UNDER_LOCK.get(owner, ()):
        guards[name] = Guard(owner, name, violations, reads=False)
    return type(owner.__name__, (owner,), {"__init__": __init__, **guards})


@pytest.fixture
def violations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put the watching classes in place of the runtime's own."""
    found: list[str] = []
    for module in (dispatcher_module, future_module, mailbox_module, pool_module, waiting_module):
        monkeypatch.setattr(module, "Lock", HeldLock)
    monkeypatch.setattr(actor_module, "Mailbox", guarded(Mailbox, found))
    future_class = guarded(PooledFuture, found)
    monkeypatch.setattr(future_class, "__class_getitem__", lambda _item: future_class)
    monkeypatch.setattr(actor_module, "PooledFuture", future_class)
    monkeypatch.setattr(reference_module, "PooledFuture", future_class)
    monkeypatch.setattr(future_module, "WAIT_GRAPH", guarded(WaitGraph, found)())
    monkeypatch.setattr(dispatcher_module, "WorkerPool", guarded(WorkerPool, found))
    return found


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
    dispatcher_class: Callable[..., Dispatcher] = guarded(Dispatcher, violations)
    with dispatcher_class(workers=2) as dispatcher:
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

    assert {"Mailbox._idle read without its lock", "Mailbox._queued written without its lock"} == set(
        violations
    )

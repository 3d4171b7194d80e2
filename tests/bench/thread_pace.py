"""The gain from several scheduling threads in one partition of the engine `threads`.

The pace of several threads is given as a multiple of that of one, in two cases: with a resource manager whose
predicate takes two milliseconds, and with one without predicates, whose partition threads share.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from licorne.proxy.bench.errors import BenchError
from licorne.proxy.core.scheduler.scheduler import Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager

PREDICATE_SECONDS: Final = 0.002
LEAVES: Final = 8
"""Of a partition that threads share."""
_WAIT_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True)
class ThreadPace:
    """What so many threads place."""

    threads: int
    per_second: float
    ratio: float
    """How often the pace of one thread."""


class _Manager(ResourceManager):
    """Counts its callbacks, and lets a thread wait for them."""

    def __init__(self, applications: int, asks: int) -> None:
        self.ready = threading.Event()
        self.done = threading.Event()
        self._accepted_left = applications
        self._left = asks

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._accepted_left -= len(response.accepted)
        if not self._accepted_left:
            self.ready.set()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._left -= len(response.new)
        if not self._left:
            self.done.set()


class _SlowManager(_Manager):
    """Agrees to every placement, after a while."""

    def __init__(self, sleep_seconds: Callable[[float], None], asks: int) -> None:
        super().__init__(1, asks)
        self._sleep_seconds = sleep_seconds

    def predicates(self, args: si.PredicatesArgs) -> None:
        del args
        self._sleep_seconds(PREDICATE_SECONDS)


def measure_predicate_pace(
    clock_seconds: Callable[[], float],
    sleep_seconds: Callable[[float], None],
    *,
    counts: Sequence[int] = (1, 2, 4),
    asks: int = 300,
) -> tuple[ThreadPace, ...]:
    """Place asks with a slow predicate on as many threads as each count says; the first count is one.

    Raises:
        BenchError: they are not placed in a minute.
    """

    def seconds(threads: int) -> float:
        manager = _SlowManager(sleep_seconds, asks)
        with Scheduler(engine="threads", threads=threads) as scheduler:
            _begin(scheduler, manager, leaves=1)
            scheduler.update_node(_node(asks))
            return _seconds_until_done(
                clock_seconds, manager, lambda: scheduler.update_allocation(_asks(asks, 1)), threads
            )

    return _paces(counts, asks, seconds)


def measure_shared_pace(
    clock_seconds: Callable[[], float], *, counts: Sequence[int] = (1, 2, 4), asks: int = 4_000
) -> tuple[ThreadPace, ...]:
    """Place asks that wait in several leaves of a shared partition, on as many threads as each count says.

    Raises:
        BenchError: they are not placed in a minute.
    """

    def seconds(threads: int) -> float:
        manager = _Manager(LEAVES, asks)
        with Scheduler(engine="threads", threads=threads, share_partitions=threads > 1) as scheduler:
            _begin(scheduler, manager, leaves=LEAVES)
            scheduler.update_allocation(_asks(asks, LEAVES))
            return _seconds_until_done(
                clock_seconds, manager, lambda: scheduler.update_node(_node(asks)), threads
            )

    return _paces(counts, asks, seconds)


def _paces(counts: Sequence[int], asks: int, seconds: Callable[[int], float]) -> tuple[ThreadPace, ...]:
    assert counts[0] == 1, "the first one is what the others are held against"
    paces = [asks / seconds(count) for count in counts]
    return tuple(ThreadPace(count, pace, pace / paces[0]) for count, pace in zip(counts, paces, strict=True))


def _begin(scheduler: Scheduler, manager: _Manager, *, leaves: int) -> None:
    """Register with so many leaves, and an application in each."""
    queues = ", ".join(f"{{name: leaf-{number}}}" for number in range(leaves))
    root = f"{{name: root, submitacl: '*', queues: [{queues}]}}"
    scheduler.register("bench", manager, configuration=f"partitions: [{{name: default, queues: [{root}]}}]")
    user = si.UserGroupInformation(user="bench")
    applications = [
        si.AddApplicationRequest(applicationID=f"app-{number}", queueName=f"root.leaf-{number}", ugi=user)
        for number in range(leaves)
    ]
    scheduler.update_application(si.ApplicationRequest(rmID="bench", new=applications))
    _wait(manager.ready, f"accepted {leaves} applications")


def _node(asks: int) -> si.NodeRequest:
    """Return a node with room for all."""
    room = si.Resource(resources={"vcore": si.Quantity(value=asks)})
    node = si.NodeInfo(nodeID="node", action=si.NodeInfo.CREATE, schedulableResource=room)
    return si.NodeRequest(rmID="bench", nodes=[node])


def _asks(count: int, leaves: int) -> si.AllocationRequest:
    size = si.Resource(resources={"vcore": si.Quantity(value=1)})
    asks = [
        si.Allocation(
            allocationKey=f"ask-{number}", applicationID=f"app-{number % leaves}", resourcePerAlloc=size
        )
        for number in range(count)
    ]
    return si.AllocationRequest(rmID="bench", allocations=asks)


def _seconds_until_done(
    clock_seconds: Callable[[], float], manager: _Manager, begin: Callable[[], None], threads: int
) -> float:
    start = clock_seconds()
    begin()
    _wait(manager.done, f"heard of all allocations on {threads} threads")
    return clock_seconds() - start


def _wait(event: threading.Event, what: str) -> None:
    if not event.wait(_WAIT_SECONDS_MAX):
        raise BenchError(f"after {_WAIT_SECONDS_MAX:g} s the resource manager has not {what}")

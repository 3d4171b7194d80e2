"""What several scheduling threads bring where a resource manager takes its time to judge.

One partition of the engine `threads`, one node with room for all, and a resource manager that takes two
milliseconds for each question. The pace of several threads is told as a multiple of that of one.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..scheduler import Scheduler
from ..si import si_pb2 as si
from ..si.api import ResourceManager
from .errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["JUDGEMENT_SECONDS", "JudgedPace", "measure_judged_pace"]

JUDGEMENT_SECONDS: Final = 0.002
_WAIT_SECONDS_MAX: Final = 60.0
_QUEUES: Final = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: leaf}]}]}]"
)


@dataclass(frozen=True, slots=True)
class JudgedPace:
    """What so many threads place."""

    threads: int
    per_second: float
    ratio: float
    """How often the pace of one thread."""


class _SlowManager(ResourceManager):
    """Agrees to all, after a while."""

    def __init__(self, sleep_seconds: Callable[[float], None], expected: int) -> None:
        self.ready = threading.Event()
        self.done = threading.Event()
        self._sleep_seconds = sleep_seconds
        self._left = expected

    def update_application(self, response: si.ApplicationResponse) -> None:
        if response.accepted:
            self.ready.set()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._left -= len(response.new)
        if not self._left:
            self.done.set()

    def predicates(self, args: si.PredicatesArgs) -> None:
        del args
        self._sleep_seconds(JUDGEMENT_SECONDS)


def measure_judged_pace(
    clock_seconds: Callable[[], float],
    sleep_seconds: Callable[[float], None],
    *,
    counts: Sequence[int] = (1, 2, 4),
    asks: int = 300,
) -> tuple[JudgedPace, ...]:
    """Place asks on as many threads as each of the counts says, the first of which is one.

    Raises:
        BenchError: they are not placed in a minute.
    """
    assert counts[0] == 1, "the first one is what the others are held against"
    paces = [asks / _seconds(clock_seconds, sleep_seconds, count, asks) for count in counts]
    return tuple(JudgedPace(count, pace, pace / paces[0]) for count, pace in zip(counts, paces, strict=True))


def _seconds(
    clock_seconds: Callable[[], float], sleep_seconds: Callable[[float], None], threads: int, asks: int
) -> float:
    manager = _SlowManager(sleep_seconds, asks)
    size = si.Resource(resources={"vcore": si.Quantity(value=1)})
    room = si.Resource(resources={"vcore": si.Quantity(value=asks)})
    with Scheduler(engine="threads", threads=threads) as scheduler:
        scheduler.register("bench", manager, configuration=_QUEUES)
        node = si.NodeInfo(nodeID="node", action=si.NodeInfo.CREATE, schedulableResource=room)
        scheduler.update_node(si.NodeRequest(rmID="bench", nodes=[node]))
        user = si.UserGroupInformation(user="bench")
        application = si.AddApplicationRequest(applicationID="app", queueName="root.leaf", ugi=user)
        scheduler.update_application(si.ApplicationRequest(rmID="bench", new=[application]))
        _wait(manager.ready, "an accepted application")
        allocations = [
            si.Allocation(allocationKey=f"ask-{number}", applicationID="app", resourcePerAlloc=size)
            for number in range(asks)
        ]
        start = clock_seconds()
        scheduler.update_allocation(si.AllocationRequest(rmID="bench", allocations=allocations))
        _wait(manager.done, f"{asks} allocations on {threads} threads")
        return clock_seconds() - start


def _wait(event: threading.Event, what: str) -> None:
    if not event.wait(_WAIT_SECONDS_MAX):
        raise BenchError(f"after {_WAIT_SECONDS_MAX:g} s the resource manager has not {what}")

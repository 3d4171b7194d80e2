"""The gain from several scheduling threads in one partition of the engine `threads`.

The pace of several threads is given as a multiple of that of one, in two cases: with a resource manager whose
predicate takes two milliseconds, and with one without predicates, whose partition threads share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from driver import SelfRunning
from figures import Gauges
from recorder import Goal, PredicateRecorder, Recorder
from workload_requests import application_request, ask_requests, node_request, registration_request
from workloads import BenchQueue, BenchWorkload, Size

from licorne.proxy.core.scheduler.scheduler import Scheduler

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
        recorder = PredicateRecorder(perf_counter, sleep_seconds, PREDICATE_SECONDS)
        with Scheduler(engine="threads", threads=threads) as scheduler:
            run = _Run(scheduler, recorder, _workload(leaves=1, asks=asks))
            run.add_node()
            return run.seconds_until_placed(clock_seconds, run.send_asks)

    return _paces(counts, asks, seconds)


def measure_shared_pace(
    clock_seconds: Callable[[], float], *, counts: Sequence[int] = (1, 2, 4), asks: int = 4_000
) -> tuple[ThreadPace, ...]:
    """Place asks that wait in several leaves of a shared partition, on as many threads as each count says.

    Raises:
        BenchError: they are not placed in a minute.
    """

    def seconds(threads: int) -> float:
        with Scheduler(engine="threads", threads=threads, share_partitions=threads > 1) as scheduler:
            run = _Run(scheduler, Recorder(perf_counter), _workload(LEAVES, asks))
            run.send_asks()
            return run.seconds_until_placed(clock_seconds, run.add_node)

    return _paces(counts, asks, seconds)


def _paces(counts: Sequence[int], asks: int, seconds: Callable[[int], float]) -> tuple[ThreadPace, ...]:
    assert counts[0] == 1, "the first one is what the others are held against"
    paces = [asks / seconds(count) for count in counts]
    return tuple(ThreadPace(count, pace, pace / paces[0]) for count, pace in zip(counts, paces, strict=True))


def _workload(leaves: int, asks: int) -> BenchWorkload:
    """Return a node with room for all asks, and an application in each leaf."""
    return BenchWorkload(
        name="threads",
        node_count=1,
        node_size=Size(asks, asks),
        queues=tuple(BenchQueue(name=f"leaf-{number}") for number in range(leaves)),
        applications_per_leaf=1,
        asks_per_wave=asks // leaves,
        ask_sizes=(Size(1, 1),),
    )


class _Run:
    """A scheduler that has accepted the applications."""

    def __init__(self, scheduler: Scheduler, recorder: Recorder, workload: BenchWorkload) -> None:
        self._scheduler = scheduler
        self._recorder = recorder
        self._workload = workload
        self._driver = SelfRunning(scheduler, Gauges(), wait_seconds_max=_WAIT_SECONDS_MAX)
        scheduler.register_resource_manager(registration_request(workload), recorder)
        scheduler.update_application(application_request(workload))
        self._driver.wait(recorder, Goal(applications=workload.application_count))

    def add_node(self) -> None:
        self._scheduler.update_node(node_request(self._workload))

    def send_asks(self) -> None:
        for request in ask_requests(self._workload, 0):
            self._scheduler.update_allocation(request)

    def seconds_until_placed(self, clock_seconds: Callable[[], float], begin: Callable[[], None]) -> float:
        start = clock_seconds()
        begin()
        self._driver.wait(self._recorder, Goal(allocations=self._workload.ask_count))
        return clock_seconds() - start

"""The engine `threads`: entities behind read/write locks; the calling thread works. See docs/threads.md.

A thread works for a partition for one slice at a time, and several threads for several partitions at once.
While the predicates of an RM are slow, free threads help its partition: they call predicates for other asks
of it (`licorne.actors.locks.guarded_partition`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from time import perf_counter_ns
from typing import cast, final

from ...lockcheck import Condition, blocking, excludes
from ...model.applications.application import Application
from ...model.applications.report import ApplicationSummary
from ...model.cluster import Cluster
from ...model.errors import LicorneError, RequestError
from ...model.nodes.node import Node
from ...model.partition import Partition
from ...model.predicates.node_checks import QuestionChannel
from ...model.state.host import PartitionHost, TimerAction, TimerKey
from ...model.values.messages import Announcement, NumberedQuestion, PredicateAnswer
from ..engines.engine import EngineLoad
from ..engines.handles import broken_entity
from ..engines.partition_actor import CYCLES_PER_SLICE
from ..services.interrupts import Uninterrupted
from ..services.log import Log
from .guarded_partition import CALL_TIMEOUT_NS, GuardedPartition, PredicateCalls, UnlockedPredicates
from .guards import Action, DeferredActions, guard, instrument


@final
class ThreadsEngine:
    """A handle is a guard: the entity with its lock.

    Args:
        threads: how many threads run cycles. A stepped engine with one thread uses the caller's.
        automatic: partitions schedule by themselves when something has changed; otherwise they are stepped.
        share_partitions: several threads place asks in one partition at once if its RM has no predicates.
        log: gets what broke.
    """

    def __init__(
        self, *, threads: int, automatic: bool, share_partitions: bool = False, log: Log | None = None
    ) -> None:
        self._automatic = automatic
        self._log = log or Log()
        self._deferred = DeferredActions(self._log)
        self._shares = share_partitions
        self._threads = SchedulingThreads(threads, self._work)
        several = not automatic and threads > 1
        self._stepping = SteppingThreads(threads, self._deferred) if several else None

    def adapt_host(self, host: PartitionHost) -> PartitionHost:
        """Return a host that defers what may block until the thread holds no lock."""
        defer = self._deferred.defer

        def call_at(due_ns: int, action: TimerAction) -> None:
            defer(partial(host.call_at, due_ns, action))

        def cancel(key: TimerKey) -> None:
            defer(partial(host.cancel, key))

        def announce(announcement: Announcement) -> None:
            defer(partial(host.announce, announcement))

        def summarise(summary: ApplicationSummary) -> None:
            defer(partial(host.summarise, summary))

        if host.predicates is not None and self._automatic:
            calls = PredicateCalls(host.predicates, self._threads.count, perf_counter_ns)
            host = replace(
                host,
                predicates=None,
                question_channel=calls,
                answer_timeout_ns=CALL_TIMEOUT_NS,
                open_questions_max=calls.open_max,
            )
        elif host.predicates is not None:
            host = replace(host, predicates=UnlockedPredicates(host.predicates))
        elif host.question_channel is not None:
            host = replace(host, question_channel=_DeferredChannel(host.question_channel, defer))
        return replace(
            host,
            call_at=call_at,
            cancel=cancel,
            # If partitions make their steps at once, their announcements come in the order of the partitions.
            announce=host.announce if self._stepping is None else announce,
            summarise=summarise,
            instrument=instrument if self._is_shared(host) else host.instrument,
        )

    def _is_shared(self, host: PartitionHost) -> bool:
        """Return whether threads share the partition; with predicates they help each other in other ways."""
        return self._shares and host.predicates is None and host.question_channel is None

    def adopt_cluster(self, cluster: Cluster) -> Cluster:
        """Guard a cluster."""
        return guard(cluster, "", self._deferred)

    def adopt_partition(self, partition: Partition) -> Partition:
        """Guard a partition."""
        isolate, call = (self._isolate, self._threads.call) if self._automatic else (None, None)
        shares = self._is_shared(partition.host)
        guarded = GuardedPartition(partition, self._deferred, isolate, call, shares=shares)
        return cast("Partition", guarded)

    def adopt_application(self, application: Application) -> Application:
        """Guard an application."""
        return guard(application, application.application_id, self._deferred)

    def adopt_node(self, node: Node) -> Node:
        """Guard a node."""
        return guard(node, node.node_id, self._deferred)

    def release(self, handle: object) -> None:
        """Do nothing: the entity is gone when nothing refers to it."""

    def retire(self, partition: Partition) -> None:
        """End a partition; it has carried out all that was sent to it."""
        guarded = _guarded(partition)
        guarded.ended = True
        guarded.flush()

    @excludes()
    def tell(
        self,
        partition: Partition,
        method: str,
        *args: object,
        may_wait: bool = False,  # noqa: ARG002 - the caller does the work, so nothing can pile up
    ) -> None:
        """Run the method on the calling thread; a scheduling thread runs the cycles that follow.

        Raises:
            RequestError: the partition or the engine has ended.
        """
        guarded = _guarded(partition)
        if guarded.ended or self._threads.closed:
            raise RequestError(f"partition {partition.name} has ended")
        with Uninterrupted():
            # A partition that schedules by itself gives the caller no answer.
            with suppress(Exception) if self._automatic else nullcontext():
                getattr(guarded, method)(*args)
            if self._automatic:
                self._threads.want(guarded)
                guarded.flush()

    def step_each(self, partitions: Sequence[Partition], step: Callable[[Partition], int]) -> list[int]:
        """Run the steps of all partitions at once, as far as there are threads, and wait for all of them."""
        if self._stepping is None or len(partitions) < 2:
            return [step(partition) for partition in partitions]
        return self._stepping.run(partitions, step)

    def check_may_close(self) -> None:
        """Raise if the calling thread is one of the engine's scheduling threads.

        Raises:
            LicorneError: it is.
        """
        self._threads.check_may_close()

    def blocking(self) -> AbstractContextManager[None]:
        """Have the lock checker check that no lock is held."""
        return blocking("callback")

    def load(self, partitions: Sequence[Partition]) -> EngineLoad:  # noqa: ARG002 - callers work themselves
        """Return how many threads there are, and how many partitions want one; requests never wait."""
        return EngineLoad(*self._threads.load(), {})

    def close(self) -> None:
        """End the threads."""
        self._threads.close()
        if self._stepping is not None:
            self._stepping.close()

    def _work(self, guarded: GuardedPartition, helps: bool) -> bool:  # noqa: FBT001 - as the threads have it
        """Run one slice of a partition's cycles; return whether there is more to do."""
        more = False
        with suppress(BaseException):  # The broken entity has been isolated, and the others continue.
            more = guarded.work(CYCLES_PER_SLICE, helps=helps)
        guarded.flush()
        return more

    @excludes("partition", "application", "node")
    def _isolate(self, guarded: GuardedPartition, error: BaseException) -> None:
        """Put broken entities into quarantine, and continue with the rest."""
        if isinstance(error, LicorneError):
            return
        log = self._log.bind(partition=guarded.name)
        log.error("partition {} met an error, please report:", guarded.name, error=error)  # noqa: PLE1205 - loguru's braces
        broken = broken_entity(error)
        if broken is None:
            return
        kind, name, reason = broken
        if guarded.quarantine_broken(kind, name, reason):
            log = log.bind(**{kind.value: name})
            log.error("{} {} is quarantined, please report: {}", kind.value, name, reason)  # noqa: PLE1205 - loguru's braces
            self._threads.want(guarded)


@final
class _DeferredChannel:
    """The questions of a partition, sent when the thread holds no lock: the RM may call the scheduler."""

    def __init__(self, channel: QuestionChannel, defer: Callable[[Action], None]) -> None:
        self._channel = channel
        self._defer = defer

    def ask(self, questions: Sequence[NumberedQuestion]) -> None:
        """Send questions soon."""
        self._defer(partial(self._channel.ask, questions))

    def take(self) -> Sequence[PredicateAnswer]:
        """Return the answers that have come."""
        return self._channel.take()


def _guarded(partition: Partition) -> GuardedPartition:
    assert isinstance(partition, GuardedPartition), f"expected a guard, got {partition!r}: please report"
    return partition


@final
class SteppingThreads:
    """The threads; they start with the first step.

    Args:
        count: how many.
        deferred: the actions that must run without a lock.
    """

    def __init__(self, count: int, deferred: DeferredActions) -> None:
        self._deferred = deferred
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="licorne-stepping")

    def run(self, partitions: Sequence[Partition], step: Callable[[Partition], int]) -> list[int]:
        """Run a step of each partition and wait for all; then run their deferred actions in order.

        Raises:
            LicorneError: the calling thread runs a step itself, and would wait for itself.
            Exception: the error of the first partition whose step failed.
        """
        if self._deferred.is_open:
            raise LicorneError(
                "a step from inside a predicate is refused: the step that asked it waits for it"
            )
        collected: list[list[Action]] = [[] for _ in partitions]
        steps = [
            self._pool.submit(self._run_one, step, partition, actions)
            for partition, actions in zip(partitions, collected, strict=True)
        ]
        wait(steps)
        for actions in collected:
            for action in actions:
                action()
        return [each.result() for each in steps]

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _run_one(
        self, step: Callable[[Partition], int], partition: Partition, collected: list[Action]
    ) -> int:
        with self._deferred.collected_in(collected):
            return step(partition)


@final
class SchedulingThreads:
    """The threads, and the partitions that want one.

    Args:
        count: how many threads; they start with the first partition that wants one.
        work: works for a partition for a slice, or helps threads that do, and returns whether there is more
            to do; does not raise.
    """

    def __init__(self, count: int, work: Callable[[GuardedPartition, bool], bool]) -> None:
        self.count = count
        self._work = work
        self._changed = Condition(name="scheduling")
        self._wanting: deque[GuardedPartition] = deque()
        self._calling: deque[GuardedPartition] = deque()
        """Partitions that have a thread and can use another one; partitions without a thread come first."""
        self._workers: dict[GuardedPartition, int] = {}
        """How many threads work for a partition."""
        self._wanted_since: set[GuardedPartition] = set()
        """Partitions that asked for a thread while an earlier one still worked for them."""
        self._threads: list[threading.Thread] = []
        self.closed = False
        """Whether the threads are to end; set once."""

    @excludes()
    def want(self, partition: GuardedPartition) -> None:
        """Have a thread work for a partition soon, also if one works for it now."""
        with self._changed:
            if self.closed:
                return
            new = [] if self._threads else self._make_threads()
            if partition not in self._workers:
                self._queue(self._wanting, partition)
            else:
                self._wanted_since.add(partition)
                if partition.waits_for_slow_predicate:
                    self._call(partition)
        for thread in new:
            thread.start()

    @excludes()
    def call(self, partition: GuardedPartition) -> None:
        """Have a free thread help a partition."""
        with self._changed:
            if not self.closed:
                self._call(partition)

    @excludes()
    def close(self) -> None:
        """End the threads after their current slices.

        Raises:
            LicorneError: the calling thread is one of them, and cannot wait for its own end.
        """
        self.check_may_close()
        with self._changed:
            self.closed = True
            self._wanting.clear()
            self._calling.clear()
            self._changed.notify_all()
            threads = list(self._threads)
        for thread in threads:
            if thread.ident is not None:
                thread.join()

    @excludes()
    def check_may_close(self) -> None:
        """Raise if the calling thread is one of these threads.

        Raises:
            LicorneError: it is, and cannot wait for its own end.
        """
        with self._changed:
            threads = self._threads
        if threading.current_thread() in threads:
            raise LicorneError("a scheduling thread cannot stop its own scheduler")

    @excludes()
    def load(self) -> tuple[int, int, int]:
        """Return how many threads there are, how many are idle, and how many partitions want one."""
        with self._changed:
            idle = len(self._threads) - sum(self._workers.values())
            return len(self._threads), idle, len(self._wanting) + len(self._calling)

    def _make_threads(self) -> list[threading.Thread]:
        self._threads = [
            threading.Thread(target=self._run, name=f"licorne-scheduling-{number}", daemon=True)
            for number in range(self.count)
        ]
        return self._threads

    def _call(self, partition: GuardedPartition) -> None:
        if self.count > 1:
            self._queue(self._calling, partition)

    def _queue(self, queue: deque[GuardedPartition], partition: GuardedPartition) -> None:
        if partition not in queue:
            queue.append(partition)
            self._changed.notify()

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            partition, helps = taken
            more = self._work(partition, helps)
            with self._changed:
                self._workers[partition] -= 1
                if not self._workers[partition]:
                    del self._workers[partition]
                if not self.closed and (more or partition in self._wanted_since):
                    self._wanted_since.discard(partition)
                    self._queue(self._wanting, partition)

    def _take(self) -> tuple[GuardedPartition, bool] | None:
        """Wait for a partition that wants a thread or help; `None` when the threads are to end."""
        with self._changed:
            while not (self._wanting or self._calling or self.closed):
                self._changed.wait()
            if self.closed:
                return None
            helps = not self._wanting
            partition = (self._calling if helps else self._wanting).popleft()
            self._workers[partition] = self._workers.get(partition, 0) + 1
            return partition, helps

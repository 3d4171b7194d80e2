"""The resource managers that have registered, with their links; partitions are made here, too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter_ns
from typing import Final, cast, final

from .....actors.engines.engine import Engine
from .....actors.services.clocks import RealClock, VirtualClock
from .....actors.services.rm_link import Buffer, RmLink
from .....lockcheck import excludes
from .....model.configuration.schema import PartitionConfig
from .....model.errors import RequestError
from .....model.partition import Partition
from .....model.policies.policies import GivenPolicies
from .....model.predicates.node_checks import Predicates, many_questions, one_question
from .....model.queues.use_order import NO_KEPT_USE, KeptUse
from .....model.state.host import PartitionHost, RetryAsks, TimerAction, TimerKey
from .....model.values.allocation import PlacementHalt, RefusalReason
from .....model.values.events import EventRecord
from .....model.values.messages import Announcement, short_partition_name
from ....si.api import Connected, DeferredPredicates, ResourceManagerCallback
from ....si.older_generation import Delivery, EventsHappened, Generation, InGeneration
from ....si.writing import callback_for
from ...events.log import EventLog, Receiver, takes_events
from ...metrics.figures import ManagerCounts, ManagerFigures, Metrics
from ...recording.observer import NewPartition, Observer
from ...resolvers.partition_resolvers import PartitionResolver
from ...resolvers.resolver import UserResolver
from .callbacks import (
    CallbackFailures,
    CallbackThreads,
    Outbox,
    announcement_fields,
    dispatcher_for,
    summariser,
)
from .extra_configurations import ExtraConfigurations
from .manager_life import ManagerLife, ManagerStatus
from .predicates import AnswerWait, CallbackQuestions, DeferredCalls, predicates_of

_CONGESTED: Final = PlacementHalt(reason=RefusalReason.CONGESTED)


@dataclass(frozen=True, slots=True)
class Manager:
    """One registered RM. Replaced, never changed."""

    rm_id: str
    callback: ResourceManagerCallback
    life: ManagerLife
    link: RmLink[Delivery] | None
    """Its thread; `None` in a stepped scheduler, whose caller delivers."""
    announce: Callable[[Delivery], None]
    flush: Callable[[], None]
    predicates: Predicates | DeferredCalls | None
    generation: Generation
    """The generation of `si.v1` that it uses; set by the thread that asks, read by the one that answers."""
    observer: Observer
    counts: ManagerCounts
    silenced: threading.Event
    """Set when another one has taken its place: its callback hears nothing more."""
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    resolvers: Mapping[str, PartitionResolver] = field(default_factory=dict)
    build_information: Mapping[str, str] = field(default_factory=dict)
    """The description of its program in its registration."""

    def resolver(self, partition: str) -> UserResolver | None:
        """Return the resolver of the groups of users in a partition, if it has one."""
        chosen = self.resolvers.get(partition)
        return None if chosen is None else chosen.resolver

    def announce_now(self, announcement: Announcement) -> None:
        """Deliver an announcement to the RM that comes from no partition."""
        self.observer.answer(self.rm_id, announcement, self.announce, older=self.generation.is_older)
        self.flush()

    def send_events(self, records: Sequence[EventRecord]) -> None:
        """Queue records for the RM's callback `send_event`."""
        self.announce(EventsHappened(records))
        self.flush()

    def close(self) -> None:
        """Deliver the queued callbacks of the RM, then stop calling it; callbacks do not wait for that."""
        if self.link is not None:
            self.link.close()

    def close_nowait(self) -> None:
        """Deliver the queued callbacks of the RM, then stop calling it; do not wait for that."""
        if self.link is not None:
            self.link.close_nowait()

    def cancel(self) -> None:
        """Drop the link of an RM that could not register."""
        if self.link is not None:
            self.link.cancel()

    def placement_halt(self) -> PlacementHalt | None:
        """Return why nothing new is placed for the RM now: it is not there, or far behind with callbacks."""
        halt = self.life.halt
        if halt is None and self.link is not None and self.link.is_congested():
            return _CONGESTED
        return halt

    def check_serves(self, request: str) -> None:
        """Refuse a request of an RM that has stopped.

        Raises:
            RequestError: it has.
        """
        if self.life.has_stopped:
            why = f": {self.life.status.reason}" if self.life.status.reason else ""
            raise RequestError(f"received {request}, but RM {self.rm_id!r} has stopped{why}; register again")

    def status(self) -> ManagerStatus:
        """Return the state of the RM, with its partitions."""
        callback = self.callback
        connection = callback.connected_by if isinstance(callback, Connected) else ""
        partitions = tuple(sorted(map(short_partition_name, self.partitions)))
        return replace(self.life.status, partitions=partitions, connection=connection)


def _nothing() -> None:
    """Do nothing, by default."""


@final
class Managers:
    """The table of managers; it also makes partitions for them.

    The thread that registers replaces the table as a whole; other threads read the old one or the new one.
    """

    def __init__(
        self,
        engine: Engine,
        outbox: Outbox | None,
        extra: ExtraConfigurations,
        failures: CallbackFailures,
        *,
        clock: VirtualClock | RealClock,
        incarnations: Incarnations,
        observer: Observer,
        metrics: Metrics,
        reservations_on: bool,
        answer_timeout_ns: int,
        answer_wait: AnswerWait | None,
        events: EventLog,
        kept_use: Mapping[str, KeptUse],
        policies: GivenPolicies,
    ) -> None:
        self.events = events
        """The events in the partitions."""
        self._engine = engine
        self.failures: Final = failures
        """Reports failing callbacks."""
        self.extra = extra
        self._outbox = outbox
        self.reservations_on = reservations_on
        self.observer = observer
        """Makes the partitions."""
        self.metrics = metrics
        self.kept_use = kept_use
        """The use with which new partitions start, by their full names or those within their RM."""
        self.policies = policies
        """Of which each partition gets objects."""
        self.when_policy_fails: Callable[[], None] = _nothing
        """Called with each failure of a policy."""
        self._table: Mapping[str, Manager] = {}
        self._clock = clock
        self._incarnations = incarnations
        self._answer_timeout_ns = answer_timeout_ns
        self._answer_wait = answer_wait
        self._channels: dict[str, CallbackQuestions] = {}
        """The questions of the partitions whose RM answers its predicates later, by their incarnations."""
        self.callback_threads = CallbackThreads()

    # -------------------------------------------------------------------------------------- the table

    def get(self, rm_id: str, request: str) -> Manager:
        """Return an RM that has registered.

        Raises:
            RequestError: it has not.
        """
        manager = self._table.get(rm_id)
        if manager is None:
            raise RequestError(f'received {request}, but RmID="{rm_id}" not registered')
        return manager

    def serving(self, rm_id: str, request: str) -> Manager:
        """Return an RM that may make requests.

        Raises:
            RequestError: it has not registered, or has stopped.
        """
        manager = self.get(rm_id, request)
        manager.check_serves(request)
        return manager

    def find(self, rm_id: str) -> Manager | None:
        """Return an RM, `None` if none of that id has registered."""
        return self._table.get(rm_id)

    def event_receivers(self) -> list[Receiver]:
        """Return the RMs that get events: not those whose callback ignores them."""
        return [
            Receiver(manager.rm_id, manager.send_events)
            for manager in self._table.values()
            if takes_events(manager.callback) and not manager.life.has_stopped
        ]

    def statuses(self) -> tuple[ManagerStatus, ...]:
        """Return the states of all RMs, sorted by id."""
        return tuple(manager.status() for manager in self.registered())

    def lost(self) -> list[str]:
        """Return which RMs are lost, and why, sorted by id."""
        lives = (manager.life.status for manager in self.registered())
        return [f"{each.rm_id}: {each.reason}" for each in lives if each.is_lost]

    def life_of(self, rm_id: str) -> ManagerStatus | None:
        """Return the state of an RM without its partitions and its connection, `None` for one not known."""
        manager = self._table.get(rm_id)
        return None if manager is None else manager.life.status

    def registered(self) -> tuple[Manager, ...]:
        """Return all RMs, sorted by id."""
        return tuple(manager for _, manager in sorted(self._table.items()))

    def running_first(self, partitions: Sequence[Partition]) -> list[Partition]:
        """Return partitions in their order, those of RMs that have stopped last."""
        return sorted(partitions, key=lambda partition: self._has_stopped(partition.rm_id))

    def _has_stopped(self, rm_id: str) -> bool:
        manager = self._table.get(rm_id)
        return manager is not None and manager.life.has_stopped

    def figures(self) -> dict[str, ManagerFigures]:
        """Return the figures of all RMs that have ever registered, sorted by id."""
        figures = {}
        for rm_id, counts in self.metrics.managers().items():
            manager = self._table.get(rm_id)
            link = None if manager is None else manager.link
            waiting, failed = (0, 0) if link is None else (link.backlog, link.failures)
            state = None if manager is None else manager.life.status.state
            figures[rm_id] = ManagerFigures(counts.figures(), waiting, failed, state)
        return figures

    def only_id(self) -> str:
        """Return the id of the one RM that has registered.

        Raises:
            RequestError: no RM is registered, or more than one.
        """
        ids = sorted(self._table)
        if len(ids) != 1:
            raise RequestError(f"name a resource manager; registered are: {', '.join(ids) or 'none'}")
        return ids[0]

    def join(self, rm_id: str, callback: ResourceManagerCallback) -> Manager:
        """Make the link of an RM that is about to register; it begins when the one before it has ended."""
        generation = Generation()
        before = self._table.get(rm_id)
        counts = self.metrics.of_manager(rm_id)
        life = ManagerLife(rm_id, self._clock.now_ns, before=None if before is None else before.life)
        note = partial(self.failures.note, rm_id)
        threads = self.callback_threads
        silenced = threading.Event()
        tell = dispatcher_for(callback)

        def deliver(delivery: Delivery) -> None:
            if silenced.is_set():
                return
            announcement, older = _settled(delivery, generation)
            counts.count(announcement)
            before = threads.enter_callback(rm_id)
            try:
                tell(announcement, callback, older=older)
            except BaseException as error:
                note(callback_for(announcement), error)
                bound = log.bind(**announcement_fields(announcement))
                bound.exception("callback of RM {} failed on {}", rm_id, announcement)
                raise
            finally:
                threads.leave_callback(before)

        log = self.extra.log("core.rmproxy", rm_id)
        around = (self._engine.blocking, self.callback_threads, note, generation)
        predicates: Predicates | DeferredCalls | None
        if isinstance(callback, DeferredPredicates):
            predicates = DeferredCalls(callback, *around)
        else:
            predicates = predicates_of(callback, *around, times=counts.predicates)
        if self._outbox is None:
            link = RmLink(
                rm_id,
                deliver,
                lambda: self._congestion_ended(rm_id),
                after=None if before is None else before.link,
                buffer=cast("Buffer", callback) if hasattr(callback, "begin_burst") else None,
            )
            return Manager(
                *(rm_id, callback, life, link, link.announce, link.flush),
                *(predicates, generation, self.observer, counts, silenced),
            )
        announcer = self._outbox.announcer(deliver)
        return Manager(
            *(rm_id, callback, life, None, announcer, _nothing, predicates, generation),
            *(self.observer, counts, silenced),
        )

    def tell_replaced(self, manager: Manager, hook: Callable[[str], object], reason: str) -> None:
        """Tell an RM that another one has taken its place; what it raises is reported."""
        before = self.callback_threads.enter_callback(manager.rm_id)
        try:
            hook(reason)
        except BaseException as error:  # noqa: BLE001 - it is reported
            self.failures.note(manager.rm_id, "replaced", error)
        finally:
            self.callback_threads.leave_callback(before)

    def enter(self, manager: Manager) -> None:
        """Put a manager into the table, instead of the one with its id."""
        self._table = {**self._table, manager.rm_id: manager}

    def leave(self, rm_id: str) -> None:
        """Take an RM out of the table, and what is kept of it elsewhere."""
        self._table = {name: manager for name, manager in self._table.items() if name != rm_id}
        self.extra.forget(rm_id)
        self.events.forget(rm_id)
        self.metrics.forget(rm_id)

    def close(self) -> None:
        """Deliver what is queued for the RMs, and end their links."""
        for channel in list(self._channels.values()):
            channel.close()
        links = [manager.link for manager in self._table.values() if manager.link is not None]
        for link in links:
            link.close_nowait()
        for link in links:
            link.close()

    def _congestion_ended(self, rm_id: str) -> None:
        manager = self._table.get(rm_id)
        if manager is not None:
            self.look_again(manager)

    def look_again(self, manager: Manager) -> None:
        """Make an RM's partitions schedule again."""
        for partition in manager.partitions.values():
            with suppress(RequestError):  # It has ended meanwhile.
                self._engine.tell(partition, "on_timer", RetryAsks())

    # ---------------------------------------------------------------------------------- partitions

    def make(self, manager: Manager, name: str, config: PartitionConfig) -> Partition:
        """Make a partition for an RM that registers or is registered."""
        clock, rm_id = self._clock, manager.rm_id
        incarnation = self._incarnations.new_name(name)

        def call_at(due_ns: int, action: TimerAction) -> None:
            clock.call_at(due_ns, incarnation, action)

        def cancel(key: TimerKey) -> None:
            clock.cancel(incarnation, key)

        def policy_failed(policy: str, subject: str, error: Exception) -> None:
            self.failures.note(rm_id, policy, error, subject)
            self.when_policy_fails()

        # In steps times are those of the virtual clock, so that equal inputs have equal figures.
        stopwatch_ns = perf_counter_ns if self._outbox is None else clock.now_ns
        channel, predicates = None, manager.predicates
        if isinstance(predicates, DeferredCalls):
            wake = partial(self._incarnations.fire, incarnation, RetryAsks())
            channel, predicates = CallbackQuestions(name, predicates, wake, self._answer_wait), None
        host = PartitionHost(
            now_ns=clock.now_ns,
            call_at=call_at,
            cancel=cancel,
            announce=manager.announce,
            flush=manager.flush,
            placement_halt=manager.placement_halt,
            predicates=predicates,
            question_channel=channel,
            answer_timeout_ns=self._answer_timeout_ns,
            kept_use=self._kept_use_of(name),
            open_questions_max=many_questions if self._answer_wait is None else one_question,
            adopt_node=self._engine.adopt_node,
            adopt_application=self._engine.adopt_application,
            release=self._engine.release,
            reservations_on=self.reservations_on,
            stopwatch_ns=stopwatch_ns,
            policies=self.policies.make(
                policy_failed,
                now_ns=clock.now_ns,
                stopwatch_ns=stopwatch_ns,
                thread=self.callback_threads,
            ),
            events=self.events.new_sink(rm_id),
            summarise=summariser(rm_id, self.extra.log("core.scheduler.application.usage", rm_id)),
        )
        partition = self._engine.adopt_partition(
            self.observer.make_partition(
                NewPartition(
                    *(incarnation, name, rm_id, config, self._engine.adapt_host(host), manager.generation)
                )
            )
        )
        self._incarnations.enter(incarnation, partition)
        if channel is not None:
            self._channels[incarnation] = channel
        return partition

    def _kept_use_of(self, name: str) -> KeptUse:
        """Return the use that a partition continues from."""
        kept = self.kept_use
        return kept.get(name) or kept.get(short_partition_name(name)) or NO_KEPT_USE

    def forget_timers(self, partition: Partition) -> list[str]:
        """Cancel the timers of a partition for good, also those that it will set, and stop asking for it.

        Returns:
            Its names.
        """
        incarnations = self._incarnations.leave(partition)
        for incarnation in incarnations:
            self._clock.forget(incarnation)
            channel = self._channels.pop(incarnation, None)
            if channel is not None:
                channel.close()
        return incarnations

    def partition(self, incarnation: str) -> Partition | None:
        """Return a partition by the name that is used once, `None` if it has ended."""
        return self._incarnations.find(incarnation)

    @excludes()
    def retire(self, partition: Partition) -> None:
        """Stop a partition that is no longer in the table; late requests are refused, since it has ended."""
        incarnations = self.forget_timers(partition)
        self._engine.retire(partition)
        for incarnation in incarnations:
            self.observer.retired(incarnation)


def _settled(delivery: Delivery, generation: Generation) -> tuple[Announcement | EventsHappened, bool]:
    """Return what a resource manager gets, and whether in the older generation.

    That is the generation which it uses by now, unless it was decided before.
    """
    if isinstance(delivery, InGeneration):
        return delivery.announcement, delivery.is_older
    return delivery, generation.is_older


@final
class Incarnations:
    """Sends timers that are due to their partitions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._partitions: dict[str, Partition] = {}
        self._named = 0

    def new_name(self, partition_name: str) -> str:
        """Return the name of a partition that is about to be made."""
        self._named += 1
        return f"{partition_name}#{self._named}"

    def enter(self, incarnation: str, partition: Partition) -> None:
        """Send timers to a partition from now on."""
        self._partitions[incarnation] = partition

    def find(self, incarnation: str) -> Partition | None:
        """Return a partition by the name that is used once, `None` if it has ended."""
        return self._partitions.get(incarnation)

    def leave(self, partition: Partition) -> list[str]:
        """Stop sending timers to a partition, and return its names."""
        names = [name for name, known in list(self._partitions.items()) if known is partition]
        for name in names:
            del self._partitions[name]
        return names

    def fire(self, incarnation: str, action: TimerAction) -> None:
        """Send a timer that is due to its partition, if the partition is still there."""
        partition = self._partitions.get(incarnation)
        if partition is not None:
            with suppress(RequestError):  # It has ended meanwhile.
                self._engine.tell(partition, "on_timer", action)

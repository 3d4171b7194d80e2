"""The resource managers that have registered: their links, and the partitions that are made for them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

from ..actors.rm_link import RmLink
from ..lockcheck import excludes
from ..model.errors import RequestError
from ..model.partition import Partition
from ..model.surroundings import LookAgain, Surroundings
from .application_summaries import summariser
from .judging import Judging
from .predicates import predicates_of
from .si.older_answers import Generation
from .si.writing import dispatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..actors.engine import Engine
    from ..actors.real_clock import RealClock
    from ..model.clock import VirtualClock
    from ..model.configuration.schema import PartitionConfig, SchedulerConfig
    from ..model.messages import Announcement
    from ..model.surroundings import Predicates, TimerAction
    from .extra_configurations import ExtraConfigurations
    from .outbox import Outbox
    from .resolvers.partition_resolvers import PartitionResolver, ResolverMaker
    from .resolvers.resolver import UserResolver
    from .si.api import ResourceManagerCallback

__all__ = ["Manager", "Managers"]


@dataclass(frozen=True, slots=True)
class Manager:
    """One registered RM. Replaced, never changed."""

    rm_id: str
    link: RmLink | None
    """Its thread; `None` in a stepped scheduler, which delivers when it is told to."""
    announce: Callable[[Announcement], None]
    flush: Callable[[], None]
    predicates: Predicates | None
    generation: Generation
    """Which one it speaks; set by the thread that asks, read by the one that answers."""
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    resolvers: Mapping[str, PartitionResolver] = field(default_factory=dict)

    def resolver(self, partition: str) -> UserResolver | None:
        """Return what finds the groups of users in a partition, `None` if nobody is asked."""
        chosen = self.resolvers.get(partition)
        return None if chosen is None else chosen.resolver

    def say(self, announcement: Announcement) -> None:
        """Tell the RM something on behalf of no partition."""
        self.announce(announcement)
        self.flush()

    def is_congested(self) -> bool:
        """Tell whether the RM is far behind with its callbacks."""
        return self.link is not None and self.link.is_congested()


def _nothing() -> None:
    """Flush nothing: a stepped scheduler delivers when it is told to."""


@final
class Managers:
    """The table of managers, and what makes partitions for them.

    The table is replaced as a whole by the one thread that registers; others read whichever they find.
    """

    def __init__(
        self,
        engine: Engine,
        outbox: Outbox | None,
        extra: ExtraConfigurations,
        *,
        reservations_on: bool,
    ) -> None:
        self._engine = engine
        self.extra = extra
        self._outbox = outbox
        self._reservations_on = reservations_on
        self._table: Mapping[str, Manager] = {}
        self._incarnations: dict[str, Partition] = {}
        """Partitions by a name that is never used again: a timer does not outlive its partition."""
        self._made = 0
        self._ended: list[Partition] = []
        self._joining: dict[str, Manager] = {}
        self.judging = Judging()
        self._prepared: dict[str, Mapping[str, PartitionResolver]] = {}
        """The resolvers of a configuration that is about to be taken, by RM."""
        self.clock: VirtualClock | RealClock
        self.resolver_maker: ResolverMaker

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

    def only_id(self) -> str:
        """Return the id of the one RM that has registered.

        Raises:
            RequestError: there is none, or more than one.
        """
        ids = sorted(self._table)
        if len(ids) != 1:
            raise RequestError(f"name a resource manager; registered are: {', '.join(ids) or 'none'}")
        return ids[0]

    def join(self, rm_id: str, callback: ResourceManagerCallback) -> Manager:
        """Make the link of an RM that is about to register; it begins when the one before it has ended."""
        generation = Generation()

        def deliver(announcement: Announcement) -> None:
            dispatch(announcement, callback, older=generation.is_older)

        log = self.extra.log("core.rmproxy", rm_id)
        predicates = predicates_of(callback, self._engine.blocking, self.judging, log)
        if self._outbox is None:
            before = self._table.get(rm_id)
            link = RmLink(
                rm_id,
                deliver,
                lambda: self._relieved(rm_id),
                after=None if before is None else before.link,
                log=log,
            )
            manager = Manager(rm_id, link, link.announce, link.flush, predicates, generation)
        else:
            door = self._outbox.door(deliver, log)
            manager = Manager(rm_id, None, door, _nothing, predicates, generation)
        self._joining[rm_id] = manager
        return manager

    def leave(self, manager: Manager) -> Manager:
        """Forget a manager that could not register, and return it."""
        self._prepared.pop(manager.rm_id, None)
        return self._joining.pop(manager.rm_id)

    def enter(self, manager: Manager, partitions: Mapping[str, Partition]) -> Manager | None:
        """Have a manager in the table with its partitions; return the one whose place it takes."""
        before = self._table.get(manager.rm_id)
        resolvers = self._prepared.pop(manager.rm_id, manager.resolvers)
        entered = replace(manager, partitions=partitions, resolvers=resolvers)
        self._joining.pop(manager.rm_id, None)
        self._table = {**self._table, manager.rm_id: entered}
        return before if before is not None and before.link is not manager.link else None

    def all(self) -> list[Manager]:
        """Return the managers in order of their ids."""
        return [self._table[name] for name in sorted(self._table)]

    def _relieved(self, rm_id: str) -> None:
        manager = self._table.get(rm_id)
        if manager is not None:
            self.look_again(manager)

    def look_again(self, manager: Manager) -> None:
        """Have an RM's partitions look for something to do."""
        for partition in manager.partitions.values():
            with suppress(RequestError):  # It has ended meanwhile.
                self._engine.tell(partition, "on_timer", LookAgain())

    def fire(self, incarnation: str, action: TimerAction) -> None:
        """Tell a partition that a timer is due; one that is gone has no use for it."""
        partition = self._incarnations.get(incarnation)
        if partition is not None:
            with suppress(RequestError):  # It has ended meanwhile.
                self._engine.tell(partition, "on_timer", action)

    # ---------------------------------------------------------------------------------- partitions

    def prepare(self, rm_id: str, config: SchedulerConfig) -> None:
        """Make the resolvers that a configuration asks for; an RM that registers starts with new ones.

        Raises:
            ConfigurationError: one cannot be made.
        """
        manager = self._joining.get(rm_id) or self._table[rm_id]
        self._prepared[rm_id] = self.resolver_maker.make(rm_id, config, manager.resolvers)

    def make(self, name: str, rm_id: str, config: PartitionConfig) -> Partition:
        """Make a partition for an RM that registers or is registered."""
        manager = self._joining.get(rm_id) or self._table[rm_id]
        clock = self.clock
        self._made += 1
        incarnation = f"{name}#{self._made}"

        def call_at(due_ns: int, action: TimerAction) -> None:
            clock.call_at(due_ns, incarnation, action)

        around = Surroundings(
            now_ns=clock.now_ns,
            call_at=call_at,
            announce=manager.announce,
            flush=manager.flush,
            is_congested=manager.is_congested,
            predicates=manager.predicates,
            adopt_node=self._engine.adopt_node,
            adopt_application=self._engine.adopt_application,
            release=self._engine.release,
            reservations_on=self._reservations_on,
            summarise=summariser(rm_id, self.extra.log("core.scheduler.application.usage", rm_id)),
        )
        partition = self._engine.adopt_partition(
            Partition(name, rm_id, config, self._engine.surround(around))
        )
        self._incarnations[incarnation] = partition
        return partition

    def release(self, partition: Partition) -> None:
        """Let a partition go, once nobody is sent to it any more; until then it answers that it has ended."""
        self._ended.append(partition)

    @excludes()
    def dismiss_ended(self) -> None:
        """Let the partitions go that have ended and are no longer in the table."""
        ended, self._ended = self._ended, []
        for partition in ended:
            self._engine.retire(partition)
        gone = {id(partition) for partition in ended}
        for name, partition in list(self._incarnations.items()):
            if id(partition) in gone:
                del self._incarnations[name]

"""Engines: what a reference from one object to another is, and what runs it.

`direct`: the object itself. One thread, the caller's. For simulation, replay, tests, what-if.
`actors`: a handle to an actor that owns the object, see `licorne.actors.engines.handles`.
`threads`: a guard, the object behind a read/write lock, see `licorne.actors.locks.threads_engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol, final

from ...model.applications.application import Application
from ...model.cluster import Cluster
from ...model.errors import RequestError
from ...model.nodes.node import Node
from ...model.partition import Partition
from ...model.state.host import PartitionHost
from ..runtime.dispatcher import Dispatcher
from ..runtime.errors import ActorEndedError
from ..runtime.mailbox import entries_of
from ..runtime.pool import on_request_thread
from ..runtime.reference import Invocation
from ..services.interrupts import Uninterrupted
from ..services.log import Log
from .handles import adopt, message_function, reference_of
from .partition_actor import PartitionActor, PartitionRef


class Engine(Protocol):
    """Makes handles and releases them."""

    def adapt_host(self, host: PartitionHost) -> PartitionHost:
        """Return what a partition is given, as this engine lets partitions use it."""

    def adopt_cluster(self, cluster: Cluster) -> Cluster:
        """Make a handle of a cluster."""

    def adopt_partition(self, partition: Partition) -> Partition:
        """Make a handle of a partition."""

    def adopt_application(self, application: Application) -> Application:
        """Make a handle of an application."""

    def adopt_node(self, node: Node) -> Node:
        """Make a handle of a node."""

    def release(self, handle: object) -> None:
        """Release an entity that is no longer used."""

    def retire(self, partition: Partition) -> None:
        """End a partition, and wait until it has carried out all that was sent to it before."""

    def tell(self, partition: Partition, method: str, *args: object, may_wait: bool = False) -> None:
        """Have a partition run a method; where the engine has another thread for it, do not wait.

        Args:
            partition: the partition.
            method: a marked method of it.
            *args: the arguments of the method.
            may_wait: the call may wait for a while if the partition is behind with its messages.
        """

    def step_each(self, partitions: Sequence[Partition], step: Callable[[Partition], int]) -> list[int]:
        """Have each partition of a stepped scheduler make a step; return what they give, in their order."""

    def check_may_close(self) -> None:
        """Raise if the calling thread runs something of the engine, which it would wait for.

        Raises:
            LicorneError: it does.
        """

    def blocking(self) -> AbstractContextManager[None]:
        """Mark a block in which the thread waits for something outside, such as a predicate of an RM."""

    def load(self, partitions: Sequence[Partition]) -> EngineLoad:
        """Return how busy it is, with the messages that wait for each of these partitions."""

    def close(self) -> None:
        """End everything that the engine runs."""


@final
class DirectEngine:
    """A handle is the object itself."""

    def adapt_host(self, host: PartitionHost) -> PartitionHost:
        """Return them unchanged."""
        return host

    def adopt_cluster(self, cluster: Cluster) -> Cluster:
        """Return the cluster."""
        return cluster

    def adopt_partition(self, partition: Partition) -> Partition:
        """Return the partition."""
        return partition

    def adopt_application(self, application: Application) -> Application:
        """Return the application."""
        return application

    def adopt_node(self, node: Node) -> Node:
        """Return the node."""
        return node

    def release(self, handle: object) -> None:
        """Do nothing: the entity is gone when nothing refers to it."""

    def retire(self, partition: Partition) -> None:
        """Do nothing: it has carried out all that was sent to it."""

    def tell(
        self,
        partition: Partition,
        method: str,
        *args: object,
        may_wait: bool = False,  # noqa: ARG002 - nothing waits here
    ) -> None:
        """Call the method."""
        with Uninterrupted():
            getattr(partition, method)(*args)

    def step_each(self, partitions: Sequence[Partition], step: Callable[[Partition], int]) -> list[int]:
        """Let one make its step after the other."""
        return [step(partition) for partition in partitions]

    def check_may_close(self) -> None:
        """Do nothing: there is nothing to wait for."""

    def blocking(self) -> AbstractContextManager[None]:
        """Do nothing: there is no other thread."""
        return nullcontext()

    def load(self, partitions: Sequence[Partition]) -> EngineLoad:  # noqa: ARG002 - nothing waits here
        """Return that nothing waits."""
        return IDLE

    def close(self) -> None:
        """Do nothing: nothing runs."""


@final
class ActorsEngine:
    """A handle is a reference to an actor.

    Args:
        workers: threads that run actors that no caller waits for; 0 for a scheduler that is stepped.
        automatic: partitions schedule by themselves when something has changed.
        check_direction: refuse asks that go up or sideways; for tests.
        log: gets what happens to the actors.
    """

    def __init__(
        self,
        *,
        workers: int = 2,
        automatic: bool = True,
        check_direction: bool = False,
        log: Log | None = None,
    ) -> None:
        self.dispatcher = Dispatcher(
            workers=workers, name="licorne", check_direction=check_direction, log=log
        )
        self._automatic = automatic

    def adapt_host(self, host: PartitionHost) -> PartitionHost:
        """Return them unchanged: an actor that waits holds no lock."""
        return host

    def adopt_cluster(self, cluster: Cluster) -> Cluster:
        """Start the actor of a cluster."""
        return adopt(cluster, self.dispatcher)

    def adopt_partition(self, partition: Partition) -> Partition:
        """Start the actor of a partition, which schedules by itself if the engine is automatic."""
        return adopt(partition, self.dispatcher, PartitionActor if self._automatic else None)

    def adopt_application(self, application: Application) -> Application:
        """Start the actor of an application."""
        return adopt(application, self.dispatcher)

    def adopt_node(self, node: Node) -> Node:
        """Start the actor of a node."""
        return adopt(node, self.dispatcher)

    def release(self, handle: object) -> None:
        """Stop an actor after what it has to do; an idle one, as most are, is stopped at once."""
        reference_of(handle).stop()

    def retire(self, partition: Partition) -> None:
        """Stop an actor after what it has to do, and wait for that."""
        reference_of(partition).stop()

    def tell(self, partition: Partition, method: str, *args: object, may_wait: bool = False) -> None:
        """Send a message without waiting; a stepped engine runs it at once, so that steps are whole.

        Raises:
            RequestError: the partition has ended.
        """
        ref = reference_of(partition)
        run = message_function(partition, method)
        try:
            if isinstance(ref, PartitionRef):
                if may_wait:
                    ref.inflow.wait_for_room()
                entries = entries_of(args)
                with Uninterrupted():
                    ref.inflow.add(entries)
                    ref.tell(Invocation(run, args, {}, entries), here=on_request_thread())
            else:
                with Uninterrupted():
                    ref.call(run, *args)
        except ActorEndedError as error:
            raise RequestError(f"partition {partition.name} has ended") from error

    def step_each(self, partitions: Sequence[Partition], step: Callable[[Partition], int]) -> list[int]:
        """Let one make its step after the other, on the thread that calls."""
        return [step(partition) for partition in partitions]

    def check_may_close(self) -> None:
        """Raise if the calling thread runs an actor.

        Raises:
            LicorneError: it does.
        """
        self.dispatcher.check_may_shut_down()

    def blocking(self) -> AbstractContextManager[None]:
        """Have a stand-in work for the others meanwhile, if the thread is a worker."""
        return self.dispatcher.blocking()

    def load(self, partitions: Sequence[Partition]) -> EngineLoad:
        """Return how busy the workers are, and what waits in mailboxes."""
        threads, waiting, queued = self.dispatcher.load()
        inboxes = {partition.name: reference_of(partition).actor_inbox for partition in partitions}
        return EngineLoad(
            threads, waiting, queued, {name: inbox.waiting() for name, inbox in inboxes.items()}
        )

    def close(self) -> None:
        """Stop all actors, then the workers."""
        self.dispatcher.shutdown()


class EngineLoad(NamedTuple):
    """The load of an engine at one moment."""

    threads: int
    """Threads that run partitions, those that wait included."""
    threads_waiting: int
    """Those of them that wait: for work, an answer or a predicate."""
    queued: int
    """Mailboxes, or partitions, that wait for a thread."""
    messages: Mapping[str, int]
    """How many messages wait for each partition, by its full name."""


IDLE = EngineLoad(0, 0, 0, {})
"""An engine without threads: it has nothing that could wait."""

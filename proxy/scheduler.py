"""The scheduler to embed: one object with the calls of `si.v1`, on the engine of your choice."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, final

from ..actors.engine import ActorsEngine, DirectEngine
from ..actors.real_clock import RealClock
from ..model.clock import VirtualClock
from ..model.cluster import Cluster
from ..model.errors import LicorneError, RequestError
from ..model.messages import (
    AllocationRejection,
    AllocationsRejected,
    ApplicationsAnswered,
    NodeAction,
    NodesAnswered,
    Rejection,
)
from ..model.user_resolution import NoResolver
from .managers import Managers
from .outbox import Outbox
from .si import reading
from .si import si_pb2 as si
from .snapshots import snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from ..actors.engine import Engine
    from ..model.messages import AllocationSubmission, ApplicationSubmission, NodeUpdate
    from ..model.user_resolution import UserResolver
    from ..model.views import Document
    from .managers import Manager
    from .si.api import ResourceManagerCallback

__all__ = ["ENGINES", "EngineName", "Scheduler"]

EngineName: TypeAlias = Literal["actors", "direct"]
ENGINES: Final[tuple[EngineName, ...]] = ("actors", "direct")
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_ALL_CYCLES: Final = 2**31
_SECOND_NS: Final = 1_000_000_000


@final
class Scheduler:
    """A scheduler core in this process; two of them do not know of each other.

    With the engine `actors` it schedules by itself: calls return when the request is queued, callbacks
    come in order on a thread of the scheduler, never on the caller's. With `direct`, or with
    `stepped=True`, it is single-threaded on a virtual clock: a call does what it asks before it returns,
    and callbacks come inside `deliver`, `run_until_idle` and `advance_to`.

    Args:
        engine: `actors` or `direct`.
        stepped: also step the `actors` engine; `direct` always is.
        resolver: finds the groups of users that come without any; one for all partitions.
        check_direction: refuse asks between actors that go up or sideways; for tests.

    Raises:
        LicorneError: the engine is unknown.
    """

    def __init__(
        self,
        *,
        engine: EngineName = "actors",
        stepped: bool = False,
        resolver: UserResolver | None = None,
        check_direction: bool = False,
    ) -> None:
        if engine not in ENGINES:
            raise LicorneError(f"engine {engine!r} is unknown, there are {', '.join(ENGINES)}")
        self.stepped = stepped or engine == "direct"
        self._engine = _make_engine(engine, stepped=self.stepped, check_direction=check_direction)
        self._outbox = Outbox() if self.stepped else None
        self._managers = Managers(
            self._engine,
            self._outbox,
            resolver or NoResolver(),
            reservations_on=os.environ.get("DISABLE_RESERVATION", "") not in _TRUE,
        )
        fire = self._managers.fire
        self._clock: VirtualClock | RealClock = VirtualClock(fire) if self.stepped else RealClock(fire)
        self._managers.clock = self._clock
        self._registering = threading.Lock()
        """One registration or configuration at a time; nobody calls back while it is held."""
        self._reader = reading.RequestReader()
        self._stopped = False
        self._cluster = self._engine.adopt_cluster(Cluster(self._managers))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # -------------------------------------------------------------------------------- SchedulerAPI

    def register(
        self,
        rm_id: str,
        callback: ResourceManagerCallback,
        *,
        configuration: str = "",
    ) -> None:
        """Register a resource manager with its queue configuration, as YAML text.

        Raises:
            RequestError: the registration is refused; the text says why, each error with its position.
        """
        request = si.RegisterResourceManagerRequest(rmID=rm_id, policyGroup="queues", config=configuration)
        self.register_resource_manager(request, callback)

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback,
    ) -> si.RegisterResourceManagerResponse:
        """Make a resource manager known, with its queues; one that is known already starts afresh.

        Raises:
            RequestError: the registration is refused, and nothing has changed.
        """
        registration = reading.registration(request)
        with self._registering:
            self._check_running()
            manager = self._managers.join(registration.rm_id, callback)
            refusal: LicorneError | None = None
            try:
                leaver = self._managers.enter(manager, self._cluster.register(registration))
            except LicorneError as error:
                leaver = self._managers.leave(manager)
                refusal = error
        self._managers.dismiss_ended()
        if leaver is not None and leaver.link is not None:
            leaver.link.close()  # Not under the lock: its callback may be waiting for that.
        if refusal is not None:
            raise RequestError(f"registration of RM failed: {refusal}") from refusal
        return si.RegisterResourceManagerResponse()

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Replace the configuration of a resource manager while it runs.

        Raises:
            RequestError: the configuration is refused, and nothing has changed.
        """
        with self._registering:
            self._check_running()
            try:
                partitions = self._cluster.update_configuration(
                    request.rmID,
                    request.config,
                    dict(request.extraConfig),
                )
            except LicorneError as error:
                raise RequestError(f"update of configuration failed: {error}") from error
            manager = self._managers.get(request.rmID, "UpdateConfigurationRequest")
            self._managers.enter(manager, partitions)
        self._managers.dismiss_ended()
        if not self.stepped:
            self._managers.look_again(self._managers.get(request.rmID, "UpdateConfigurationRequest"))

    def update_node(self, request: si.NodeRequest) -> None:
        """Take new and changed nodes.

        Raises:
            RequestError: the request is refused as a whole, and nothing has changed.
        """
        manager = self._manager(request.rmID, "NodeRequest")
        for name, updates in self._reader.node_updates(request).items():
            partition = manager.partitions.get(name)
            if partition is None:
                _refuse_nodes(manager, name, updates)
            else:
                self._engine.tell(partition, "update_nodes", updates)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Take new and removed applications.

        Raises:
            RequestError: the request is refused as a whole, and nothing has changed.
        """
        manager = self._manager(request.rmID, "ApplicationRequest")
        submissions = self._reader.application_submissions(request)
        removals = reading.application_removals(request)
        names = dict.fromkeys([entry.partition for entry in submissions])
        names.update(dict.fromkeys([entry.partition for entry in removals]))
        for name in names:
            new = tuple(entry for entry in submissions if entry.partition == name)
            partition = manager.partitions.get(name)
            if partition is None:
                _refuse_applications(manager, name, new)
                continue
            gone = tuple(entry for entry in removals if entry.partition == name)
            self._engine.tell(partition, "update_applications", new, gone)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Take asks, existing allocations and releases.

        Raises:
            RequestError: the request is refused as a whole, and nothing has changed.
        """
        manager = self._manager(request.rmID, "AllocationRequest")
        submissions = self._reader.allocation_submissions(request)
        releases = reading.releases(request)
        names = dict.fromkeys([entry.partition for entry in submissions])
        names.update(dict.fromkeys([entry.partition for entry in releases]))
        for name in names:
            single = len(names) == 1
            new = submissions if single else [entry for entry in submissions if entry.partition == name]
            partition = manager.partitions.get(name)
            if partition is None:
                _refuse_allocations(manager, name, new)
                continue
            gone = releases if single else tuple(entry for entry in releases if entry.partition == name)
            self._engine.tell(partition, "update_allocations", new, gone)

    def stop(self) -> None:
        """End all scheduling and every thread; to stop twice is to stop once."""
        with self._registering:
            if self._stopped:
                return
            self._stopped = True
        try:
            self._engine.close()
        except LicorneError:
            self._stopped = False  # Called from inside an actor, which cannot end itself: nothing has ended.
            raise
        if isinstance(self._clock, RealClock):
            self._clock.close()
        for manager in self._managers.all():
            if manager.link is not None:
                manager.link.close()

    def _manager(self, rm_id: str, request: str) -> Manager:
        self._check_running()
        return self._managers.get(rm_id, request)

    def _check_running(self) -> None:
        if self._stopped:
            raise RequestError("the scheduler has been stopped")

    # ----------------------------------------------------------------------------------- stepping

    def now_ns(self) -> int:
        """Return the scheduler's time, nanoseconds since 1970."""
        return self._clock.now_ns()

    def deliver(self) -> int:
        """Deliver what the scheduler has to say; return how many callbacks that took."""
        return self._stepped_outbox().deliver()

    def schedule(self, cycles: int | None = None) -> int:
        """Run cycles until one gives no result in any partition, at most so many; return how many did."""
        self._stepped_outbox()
        partitions = self._cluster.partitions()
        for done in range(_ALL_CYCLES if cycles is None else cycles):
            if not sum([partition.run_cycles(1) for partition in partitions]):
                return done
        return _ALL_CYCLES if cycles is None else cycles

    def run_until_idle(self) -> int:
        """Deliver and schedule until nothing more happens; return how many cycles gave a result."""
        outbox = self._stepped_outbox()
        results = 0
        while True:
            delivered = outbox.deliver()
            done = sum([partition.settle() for partition in self._cluster.partitions()])
            results += done
            if not done and not delivered and not outbox.deliver():
                return results

    def next_deadline_ns(self) -> int | None:
        """Return when something is due next on the virtual clock, `None` if nothing is."""
        due = [self._virtual().next_due_ns()]
        due += [partition.next_look_ns() for partition in self._cluster.partitions()]
        return min((time_ns for time_ns in due if time_ns is not None), default=None)

    def next_timer_ns(self) -> int | None:
        """Return when the next timer is due on the virtual clock, `None` if none runs."""
        return self._virtual().next_due_ns()

    def fire_next(self) -> None:
        """Move the virtual clock to the next timer and fire it, without delivering what follows."""
        due_ns = self._virtual().next_due_ns()
        if due_ns is not None:
            self._virtual().advance_to(due_ns)

    def advance_to(self, time_ns: int) -> None:
        """Move the virtual clock, firing everything that is due on the way, and deliver after each."""
        clock = self._virtual()
        while clock.advance_to(time_ns):
            self._stepped_outbox().deliver()

    def inspect_outstanding(self) -> None:
        """Look for asks that wait for room in the cluster, and tell the RMs of them."""
        for partition in self._cluster.partitions():
            partition.inspect_outstanding()

    def preempt_over_quota(self) -> None:
        """Enforce maxima that were lowered and are due, where a partition is configured to."""
        for partition in self._cluster.partitions():
            partition.preempt_over_quota()

    def _virtual(self) -> VirtualClock:
        if not isinstance(self._clock, VirtualClock):
            raise LicorneError("this scheduler runs by itself: it has no virtual clock, and is not stepped")
        return self._clock

    def _stepped_outbox(self) -> Outbox:
        if self._outbox is None:
            raise LicorneError("this scheduler runs by itself: it is not stepped")
        return self._outbox

    # --------------------------------------------------------------------------------------- views

    def snapshot(self) -> Document:
        """Return the documents of everything, as the REST interface shows them."""
        return snapshot(self._cluster.partitions())

    def validate(self) -> None:
        """Assert every invariant of every partition."""
        for partition in self._cluster.partitions():
            partition.validate()


def _make_engine(engine: EngineName, *, stepped: bool, check_direction: bool) -> Engine:
    if engine == "direct":
        return DirectEngine()
    return ActorsEngine(workers=0 if stepped else 2, automatic=not stepped, check_direction=check_direction)


def _refuse_nodes(manager: Manager, partition: str, updates: Sequence[NodeUpdate]) -> None:
    creations = [
        update for update in updates if update.action in (NodeAction.CREATE, NodeAction.CREATE_DRAIN)
    ]
    rejections = tuple(
        Rejection(
            update.node_id,
            f"failed to find partition {partition} for new node {update.node_id}",
        )
        for update in creations
    )
    manager.say(NodesAnswered((), rejections))


def _refuse_applications(
    manager: Manager,
    partition: str,
    submissions: Sequence[ApplicationSubmission],
) -> None:
    rejections = tuple(
        Rejection(
            entry.application_id,
            f"Failed to add application {entry.application_id} to partition {partition}, "
            "partition doesn't exist",
        )
        for entry in submissions
    )
    manager.say(ApplicationsAnswered((), rejections))


def _refuse_allocations(
    manager: Manager,
    partition: str,
    submissions: Sequence[AllocationSubmission],
) -> None:
    rejections = tuple(
        AllocationRejection(
            entry.allocation_key,
            entry.application_id,
            f"Failed to find partition {partition}, for application {entry.application_id} and "
            f"allocation {entry.allocation_key}",
        )
        for entry in submissions
    )
    manager.say(AllocationsRejected(rejections))

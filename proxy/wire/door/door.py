"""The door: a scheduler whose partitions run on workers, each partition on its own worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar, final

from ....model.errors import LicorneError, ReplacedError, RequestError
from ....model.queues.use_order import KeptUse
from ....model.values.documents import Json
from ...core.metrics.figures import Metrics
from ...core.scheduler.answering.questions import QuestionSide
from ...core.scheduler.calling import CallingSide, check_registration
from ...core.scheduler.managers.callbacks import CallbackFailures, CallbackThreads, ErrorHook
from ...core.scheduler.prepared_configuration import PreparedConfiguration
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.api import ResourceManagerCallback
from ...si.arguments import check_seconds, replaced_hook, rm_id_of
from ..client.remote_life import RemoteSteps
from .answers import DoorAnswers
from .link import PartitionLink
from .linked_manager import (
    DoorChange,
    DoorUse,
    LinkedManager,
    ManagerTable,
    at_each,
    start_worker,
    wait_until_started,
)
from .routing import (
    allocations_by_partition,
    applications_by_partition,
    check_size,
    nodes_by_partition,
    partition_names,
    short_name,
)
from .session import STEPS, WorkerConnector
from .workers import Launcher, PartitionPlace, WorkerTable

_Request = TypeVar("_Request", si.NodeRequest, si.ApplicationRequest, si.AllocationRequest)

_START_SECONDS: Final = 60.0
"""The time limit for the start of the workers of a registration."""


@final
class Door(CallingSide, QuestionSide, RemoteSteps):
    """A scheduler whose partitions run on workers: ordinary `licorne serve` processes.

    It has the calls and questions of `Scheduler`. A lost worker is replaced, and the new worker gets the
    state of the partition. In the meantime that partition places nothing, and the others continue.

    Args:
        launcher: Starts the workers of partitions, and replaces them.
        token: The bearer token for workers that have no token of their launcher, if they require one.
        root_certificates: A PEM file with the certificate authorities of the workers; it turns TLS on.
        certificate: A PEM file with a client certificate; it needs `key`.
        key: The PEM file with the key of the certificate.
        on_error: As for `Scheduler`; it also gets the refusals of workers, and the reason why a worker was
            lost.
        kept_use: As for `Scheduler`.
        start_timeout_seconds: How long a registration waits for its workers.
        policies: Must be empty: the workers ask policies.

    Raises:
        LicorneError: Policies were given, or the time is not above 0.
    """

    stepped: Final = False
    works_elsewhere: Final = True
    """Whether a call may wait for other processes, see `WorksElsewhere`."""

    def __init__(
        self,
        launcher: Launcher,
        *,
        token: str | None = None,
        root_certificates: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
        on_error: ErrorHook | None = None,
        kept_use: Mapping[str, KeptUse] | None = None,
        start_timeout_seconds: float = _START_SECONDS,
        policies: None = None,
    ) -> None:
        if policies is not None:
            raise LicorneError(
                "policies: expected None, since workers ask the policies: `licorne serve --policy` for each"
            )
        check_seconds("start_timeout_seconds", start_timeout_seconds)
        self._launcher = launcher
        self._workers = WorkerTable(launcher)
        self._failures = CallbackFailures(on_error)
        self._threads = CallbackThreads()
        self._connect = WorkerConnector(token, (root_certificates, certificate, key), self._failures.note)
        self._start_timeout_seconds = start_timeout_seconds
        self._managers = ManagerTable()
        self._use = DoorUse(kept_use or {})
        self._changes = count(1)
        """The numbers of prepared configurations."""
        self.metrics = Metrics()
        """The counts of configurations that were refused before a worker got them."""
        self.one_caller: AbstractContextManager[object] = nullcontext()
        self.answers = DoorAnswers(self._managers, self._use)
        """The object that answers questions."""

    # -------------------------------------------------------------------------------- SchedulerAPI

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback,
        *,
        partitions: Collection[str] | None = None,
    ) -> si.RegisterResourceManagerResponse:
        """Register a resource manager with its queues; a registered one loses its whole state first.

        The call returns when each of its partitions has a worker.

        Raises:
            RequestError: The configuration is refused, and nothing has changed; or a partition cannot have a
                worker, and the resource manager is not registered.
            UnavailableError: A partition has no worker in time, and the resource manager is not registered.
        """
        check_registration(request, callback, partitions)
        self._threads.refuse("a registration")
        wanted = None if partitions is None else [short_name(name, request.rmID) for name in partitions]
        names = partition_names(request.config, "registration of RM", wanted)
        with self._managers.turn(request.rmID):
            self._managers.check_running()
            manager = LinkedManager(
                request,
                callback,
                None if partitions is None else frozenset(names),
                threads=self._threads,
                failures=self._failures,
                use=self._use,
                on_replaced=self._give_up,
                now_ns=time.time_ns,
                before=self._managers.find(request.rmID),
            )
            before = self._managers.begin(manager)
            if before is not None:
                before.close("the resource manager has registered again")
                if (hook := replaced_hook(before.callback, callback)) is not None:
                    before.call(hook, f"RM {request.rmID!r} has registered again")
            try:
                manager.links = {name: self._linked(manager, name) for name in names}
                for link in manager.links.values():  # All are in the table: a concurrent stop finds them.
                    link.start()
                self._wait_until_started(manager.links.values(), "registration of RM")
                self._managers.complete(manager)
            except BaseException:
                manager.close("the registration has failed")
                raise
            finally:
                self._managers.end_registration(manager)
        return si.RegisterResourceManagerResponse()

    def _linked(self, manager: LinkedManager, name: str) -> PartitionLink:
        return PartitionLink(manager, name, self._workers, self._connect, time.time_ns)

    def _wait_until_started(self, links: Iterable[PartitionLink], what: str) -> None:
        wait_until_started(links, what, self._start_timeout_seconds)

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Replace the configuration of a running resource manager; at all its workers or at none.

        Raises:
            RequestError: The configuration is refused, and nothing has changed.
        """
        self._threads.refuse("an update of the configuration")
        with self._managers.turn(rm_id_of(request, si.UpdateConfigurationRequest)):
            change = self._prepared(request)
            new = self._committed(change)
        self._wait_until_started(new, "update of configuration")

    def prepare_configuration(self, request: si.UpdateConfigurationRequest) -> PreparedConfiguration:
        """Check all that `update_configuration` may refuse, at each worker, without changing anything yet.

        See `Scheduler.prepare_configuration`.

        Raises:
            RequestError: The configuration is refused, and nothing has changed.
        """
        self._threads.refuse("a preparation of a configuration")
        with self._managers.turn(rm_id_of(request, si.UpdateConfigurationRequest)):
            change = self._prepared(request)
            number = next(self._changes)

        def commit() -> None:
            with self._managers.turn(request.rmID):
                new = self._committed(change)
            self._wait_until_started(new, "update of configuration")

        return PreparedConfiguration(request.rmID, number, commit, change.abandon)

    def _committed(self, change: DoorChange) -> list[PartitionLink]:
        """Commit a change; return the links to new partitions."""
        before = dict.fromkeys(link.partition for link in self._managers.links())
        new = change.commit()
        self._end_unused(before)
        return new

    def _end_unused(self, before: Collection[str]) -> None:
        """End the workers of those of some partitions that no resource manager uses any longer."""
        used = {link.partition for link in self._managers.links()}
        for name in before:
            if name not in used:
                self._workers.end(name)

    def _prepared(self, request: si.UpdateConfigurationRequest) -> DoorChange:
        """Return a change that each worker has prepared; called in the turn of the resource manager.

        Raises:
            RequestError: The change is refused, or a new partition has no worker.
        """
        manager = self._managers.running(request.rmID, "UpdateConfigurationRequest")
        names = partition_names(request.config, "update of configuration", None, refuse_rules=True)
        if manager.partitions is not None:
            names = [name for name in names if name in manager.partitions]
        for name in names:
            if name not in manager.links:
                seconds = self._start_timeout_seconds
                start_worker(self._workers, name, self._managers.stopped, "update of configuration", seconds)
        change = DoorChange(manager, request, names, lambda name: self._linked(manager, name))
        change.prepare()
        return change

    def update_node(self, request: si.NodeRequest) -> None:
        """Process new and changed nodes.

        Raises:
            RequestError: The request is refused as a whole, and nothing has changed.
        """
        manager = self._managers.running(rm_id_of(request, si.NodeRequest), "NodeRequest")
        self._hand_over(manager, nodes_by_partition(request), PartitionLink.update_node)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Process new and removed applications.

        Raises:
            RequestError: The request is refused as a whole, and nothing has changed.
        """
        manager = self._managers.running(rm_id_of(request, si.ApplicationRequest), "ApplicationRequest")
        self._hand_over(manager, applications_by_partition(request), PartitionLink.update_application)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Process asks, existing allocations and releases.

        Raises:
            RequestError: The request is refused as a whole, and nothing has changed.
        """
        manager = self._managers.running(rm_id_of(request, si.AllocationRequest), "AllocationRequest")
        self._hand_over(manager, allocations_by_partition(request), PartitionLink.update_allocation)

    def _hand_over(
        self,
        manager: LinkedManager,
        parts: Mapping[str, _Request],
        update: Callable[[PartitionLink, _Request], None],
    ) -> None:
        """Give each partition its part of a request; then wait if one of them has no room for more requests.

        Raises:
            RequestError: A part, or an entry, is larger than the limit of a recovery.
        """
        for part in parts.values():
            check_size(part)
        taken = []
        for name, part in parts.items():
            link = manager.links.get(name)
            if link is None:
                manager.any_link().pass_on(part)
            else:
                update(link, part)
                taken.append(link)
        self._wait_for_room(taken)

    def request_reconsideration(self, request: v1.Reconsideration) -> None:
        """Try again the nodes that the predicates of a resource manager have refused; see `reconsider`.

        Raises:
            RequestError: The resource manager has not registered, or does not have the partition.
        """
        manager = self._managers.running(request.rm_id, "reconsideration")
        links = [*manager.links.values()]
        if request.partition_name:
            name = short_name(request.partition_name, request.rm_id)
            if name not in manager.links:
                raise RequestError(
                    f"reconsideration: RM {request.rm_id!r} has no partition {request.partition_name!r}"
                )
            links = [manager.links[name]]
        for link in links:
            link.pass_on(request)

    def take_kept_use(self, rm_id: str, usage: Json) -> None:
        """Let partitions continue from an earlier use when they get a worker; see `Scheduler`."""
        self._use.take(rm_id, usage)

    def _wait_for_room(self, links: Iterable[PartitionLink]) -> None:
        """Wait while too many requests wait for a worker, unless a worker may wait for this thread."""
        if self._threads.may_wait:
            for link in links:
                link.wait_for_room()

    # ----------------------------------------------------------------------------------- life cycle

    def pause_manager(
        self, rm_id: str, reason: str, *, callback: ResourceManagerCallback | None = None
    ) -> bool:
        """Place nothing new for a resource manager whose connection is lost, until it registers again.

        See `Scheduler.pause_manager`.

        Raises:
            RequestError: The resource manager has not registered, or a predicate calls.
        """
        self._threads.refuse("a pause of a resource manager")
        return self._halt(rm_id, "pause", reason, callback)

    def stop_manager(
        self, rm_id: str, reason: str, *, callback: ResourceManagerCallback | None = None
    ) -> bool:
        """End the timers of a resource manager, and refuse its requests, until it registers again.

        See `Scheduler.stop_manager`.

        Raises:
            RequestError: As for `pause_manager`.
        """
        self._threads.refuse("a stop of a resource manager")
        return self._halt(rm_id, "stop", reason, callback)

    def _halt(self, rm_id: str, change: str, reason: str, callback: ResourceManagerCallback | None) -> bool:
        with self._managers.turn(rm_id):
            self._managers.check_running()
            manager = self._managers.known(rm_id, f"a {change}")
            if callback is not None and callback is not manager.callback:
                return False
            advance = manager.life.pause if change == "pause" else manager.life.stop
            if not advance(reason):
                return False
            if manager.life.has_stopped:
                manager.prepared = None
        at_each([*manager.links.values()], lambda link: link.halt(change, reason))
        return True

    def _give_up(self, manager: LinkedManager, partition: str, error: ReplacedError) -> None:
        """Stop a resource manager that another door has taken over, as one of its workers reports."""
        manager.note_failure(f"partition {partition!r}", ReplacedError(f"given up: {error}"))
        with self._managers.turn(manager.rm_id):
            if self._managers.find(manager.rm_id) is not manager or self._managers.stopped.is_set():
                return  # The registration fails with the error, or there is a newer one.
            manager.life.stop(str(error))
            manager.close(str(error))
        if (hook := replaced_hook(manager.callback)) is not None:
            manager.call(hook, str(error))

    def forget_manager(self, rm_id: str) -> None:
        """Forget a stopped resource manager, with its partitions and all its counts.

        Raises:
            RequestError: The resource manager has not stopped, or has not registered.
        """
        self._threads.refuse("the end of a resource manager")
        with self._managers.turn(rm_id):
            self._managers.check_running()
            manager = self._managers.known(rm_id, "the end of a resource manager")
            if not manager.life.has_stopped:
                state = manager.life.status.state.value
                raise RequestError(f"RM {rm_id!r} is {state}: only one that has stopped can be forgotten")
            self._managers.forget(rm_id)
        manager.close("the resource manager is forgotten")
        self._end_unused(manager.links)

    def stop(self) -> None:
        """End the links and the workers of this door; deliver the queued callbacks."""
        self._threads.refuse("a stop")
        managers = self._managers.stop()
        if managers is None:
            return
        for manager in managers:
            manager.close("the door has been stopped")
        self._launcher.stop()

    def _call(self, message: v1.ManagerMessage) -> v1.Answer:
        """Carry out a step on each running worker.

        Raises:
            LicorneError: The step is only for stepped schedulers.
        """
        self._managers.check_running()
        method = message.step.method
        if method == v1.Step.NOW:
            return v1.Answer(number=time.time_ns())
        step = STEPS.get(method)
        if step is None:
            raise LicorneError("the door is not stepped")
        for link in self._managers.links():
            with suppress(RequestError):  # The partition is without a worker now.
                step(link.scheduler())
        return v1.Answer()

    # ------------------------------------------------------------------------------------ questions

    def places(self) -> tuple[PartitionPlace, ...]:
        """Return where each partition runs, and its state, in the order of the registrations."""
        return tuple(link.place for link in self._managers.links())

    def _question(self, question: v1.Question) -> Any:
        self._threads.refuse("a question")
        return self.answers.answer(question)

"""The embedded scheduler: one object with the calls of `si.v1`, on the engine that the program chooses."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar, final

from ....actors.runtime.errors import ActorEndedError
from ....actors.services.clocks import RealClock
from ....actors.services.interrupts import Uninterrupted, run_uninterrupted
from ....model.errors import RequestError
from ....model.partition import Partition
from ....model.policies.policies import PolicyFactory
from ....model.queues.use_order import KeptUse
from ....model.state.host import ANSWER_TIMEOUT_NS
from ....model.values.documents import Json
from ....model.values.messages import full_partition_name
from ...si import licorne_v1_pb2 as v1
from ...si import reading
from ...si import si_pb2 as si
from ...si.api import ResourceManagerCallback
from ...si.arguments import check_type, rm_id_of
from ...si.older_generation import ask_terms
from ..recording.recording import Recording
from ..resolvers.partition_resolvers import LDAP_FOLDER
from ..resolvers.resolver import UserResolver, with_groups
from .answering.answers import Answers
from .answering.monitoring import Monitoring
from .answering.questions import QuestionSide, StoppedError
from .answering.views import Views
from .calling import CallingSide, Stopping, check_registration
from .engine_names import EngineName
from .managers.callbacks import ErrorHook
from .managers.manager_life import LifeSide
from .managers.managers import Manager
from .managers.missing_partitions import refuse_allocations, refuse_applications, refuse_nodes
from .managers.registrations import CheckedUpdate, Registrations
from .parts import SchedulerParts, SchedulerSettings
from .prepared_configuration import PreparedConfiguration
from .stepping import Stepping

T = TypeVar("T")


@final
class Scheduler(CallingSide, Stepping, QuestionSide, LifeSide):
    """A scheduler core in this process; two of them do not affect each other.

    With the engine `actors` it works in the background: calls return when the request is queued, callbacks
    come in order on a thread of the scheduler, never on the caller's. The engine `threads` does the same, but
    a call returns when the request has been carried out. With `direct`, or with `stepped=True`, nothing
    happens without a call, and the clock is virtual: a request is carried out before the call returns, and
    callbacks come inside `deliver`, `run_until_idle` and `advance_to`.

    Args:
        engine: `actors`, `direct` or `threads`.
        stepped: also step the engine `actors` or `threads`; `direct` always is.
        threads: how many threads of the engine `threads` schedule; by default 2, stepped 1. A
            stepped scheduler steps as many partitions at once, with the same outcome.
        share_partitions: whether several of these threads place in one partition at once, each in
            another leaf; off by default, since it is slower.
        resolver: finds the groups of users, instead of `usergroupresolver`; called by several threads.
        ldap_folder: the settings of the directory server, for `usergroupresolver: {type: ldap}`.
        check_direction: refuse asks between actors that go up or sideways; for tests.
        on_error: called with each callback that raises, and each predicate that fails rather than refuses.
            Without it the first one of each kind is logged by `logging`, so that it is seen.
        record: where all that happens is recorded as a transcript, see `docs/transcripts.md`: a folder, below
            which the scheduler makes its own folder, or a `licorne.Recording`; not with the engine `threads`.
        predicate_timeout_seconds: how long a resource manager has for a predicate that it answers later.
        kept_use: what the queues and users of partitions have used before, as `licorne serve --usage-file`
            keeps it; by the full name of the partition, or the one that it has within its resource manager.
        policies: the policies that configurations may name as `policy/NAME`, see `docs/policies.md`: a class
            or another factory for each name. Each partition gets an object of each.

    Raises:
        LicorneError: the engine is unknown, or cannot have that many threads or share partitions; or nothing
            can be recorded with it, or in this folder; or the timeout is not above 0; or a policy is not
            valid.
    """

    def __init__(
        self,
        *,
        engine: EngineName = "actors",
        stepped: bool = False,
        threads: int | None = None,
        share_partitions: bool = False,
        resolver: UserResolver | None = None,
        ldap_folder: Path | str = LDAP_FOLDER,
        check_direction: bool = False,
        on_error: ErrorHook | None = None,
        record: Recording | Path | str | None = None,
        predicate_timeout_seconds: float = ANSWER_TIMEOUT_NS / 1e9,
        kept_use: Mapping[str, KeptUse] | None = None,
        policies: Mapping[str, PolicyFactory] | None = None,
    ) -> None:
        settings = SchedulerSettings(
            engine=engine,
            stepped=stepped,
            threads=threads,
            share_partitions=share_partitions,
            resolver=resolver,
            ldap_folder=ldap_folder,
            check_direction=check_direction,
            on_error=on_error,
            record=record,
            predicate_timeout_seconds=predicate_timeout_seconds,
            kept_use=kept_use,
            policies=policies,
        )
        parts = SchedulerParts(settings)
        self.stepped = settings.is_stepped
        self.engine_name = engine
        self.events = parts.events
        """The events in all partitions."""
        self.metrics = parts.metrics
        self._extra = parts.extra
        self._engine = parts.engine
        self._outbox = parts.outbox
        self._answer_wait = parts.answer_wait
        self._clock = parts.clock
        self._observer = parts.observer
        self._managers = parts.managers
        self._event_delivery = parts.event_delivery
        self._cluster = parts.cluster
        self._reader = reading.RequestReader()
        self._stopped = False
        self._process = os.getpid()
        self._registrations = Registrations(
            self._cluster,
            self._managers,
            self._extra,
            parts.resolvers,
            check_running=self._check_running,
            log=parts.log,
        )
        self.one_caller: AbstractContextManager[object] = threading.RLock() if self.stepped else nullcontext()
        """Held by each thread that uses a stepped scheduler, where several do: it is for one at a time."""
        self.views = Views(self._ask_all_alone, self._cluster, self._managers, self._clock.now_ns())
        """The views for readers, in pieces of bounded size."""
        self.monitoring = Monitoring(
            self._ask_all_alone, self._engine, self._managers, self._extra, self._clock.now_ns
        )
        """The monitoring: figures, health and history."""
        folder = self._observer.folder
        self.answers = Answers(
            ask_all=self._ask_all,
            check_running=self._check_running,
            cluster=self._cluster,
            engine=self._engine,
            managers=self._managers,
            reader=self._reader,
            extra=self._extra,
            monitoring=self.monitoring,
            recorded_in=None if folder is None else str(folder),
        )
        """The answers to questions in messages, as a server gets them."""
        self._stopping = Stopping(self._halt, self._managers.close, on_thread=not self.stepped)

    # -------------------------------------------------------------------------------- SchedulerAPI

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback,
        *,
        partitions: Collection[str] | None = None,
    ) -> si.RegisterResourceManagerResponse:
        """Register a resource manager with its queues; one that is registered already loses all it had.

        With `partitions`, see `register`, only these of the configuration are made.

        Raises:
            RequestError: the registration is refused, and nothing has changed.
        """
        check_registration(request, callback, partitions)
        registration = reading.registration(request, partitions)
        callback_threads = self._managers.callback_threads
        callback_threads.refuse("a registration")
        waits_for = self._managers.find(registration.rm_id)
        if waits_for is not None and callback_threads.callback_of not in (None, registration.rm_id):
            raise RequestError(
                f"a registration of RM {registration.rm_id!r} inside a callback of RM "
                f"{callback_threads.callback_of!r} "
                f"is refused: it would wait for callbacks of {registration.rm_id!r}, which may do the same"
            )
        self._uninterrupted(lambda: self._registrations.register(registration, callback))
        if not self.stepped:
            self._event_delivery.start()
            self.monitoring.wake()
        return si.RegisterResourceManagerResponse()

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Replace the configuration of a resource manager while it runs.

        Raises:
            RequestError: the configuration is refused, and nothing has changed.
        """
        rm_id = rm_id_of(request, si.UpdateConfigurationRequest)
        self._managers.callback_threads.refuse("an update of the configuration")
        extra = dict(sorted(request.extraConfig.items()))
        self._uninterrupted(lambda: self._registrations.update(rm_id, request.config, extra))
        if not self.stepped:
            self._look_again(rm_id)

    def prepare_configuration(self, request: si.UpdateConfigurationRequest) -> PreparedConfiguration:
        """Check all that `update_configuration` may refuse, and change nothing yet; scheduling goes on.

        `commit` of what it returns makes the change, which is quick and takes no second look at the text.
        One that was prepared for the resource manager before can no longer be committed.

        Raises:
            RequestError: the configuration is refused, and nothing has changed.
        """
        rm_id = rm_id_of(request, si.UpdateConfigurationRequest)
        self._managers.callback_threads.refuse("a preparation of a configuration")
        extra = dict(sorted(request.extraConfig.items()))
        update = self._uninterrupted(lambda: self._registrations.prepare(rm_id, request.config, extra))
        return PreparedConfiguration(update.rm_id, update.number, lambda: self._commit(update))

    def _commit(self, update: CheckedUpdate) -> None:
        self._managers.callback_threads.refuse("a commit of a configuration")
        self._uninterrupted(lambda: self._registrations.commit(update))
        if not self.stepped:
            self._look_again(update.rm_id)

    def _look_again(self, rm_id: str) -> None:
        """Have an RM watched and scheduled by the configuration that it has now."""
        self.monitoring.wake()
        self._managers.look_again(self._managers.get(rm_id, "UpdateConfigurationRequest"))

    def update_node(self, request: si.NodeRequest) -> None:
        """Take new and changed nodes.

        Raises:
            RequestError: the request is refused as a whole, and nothing has changed.
        """
        manager = self._manager(rm_id_of(request, si.NodeRequest), "NodeRequest")
        for name, updates in self._reader.node_updates(request, manager.generation).items():
            partition = manager.partitions.get(name)
            if partition is None:
                refuse_nodes(manager, name, updates)
            else:
                self._tell(partition, "update_nodes", updates)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Take new and removed applications; it may wait while the groups of their users are looked up.

        Raises:
            RequestError: the request is refused as a whole, and nothing has changed.
        """
        manager = self._manager(rm_id_of(request, si.ApplicationRequest), "ApplicationRequest")
        submissions = self._reader.application_submissions(request)
        removals = reading.application_removals(request)
        names = dict.fromkeys([entry.partition for entry in submissions])
        names.update(dict.fromkeys([entry.partition for entry in removals]))
        for name in names:
            new = tuple(entry for entry in submissions if entry.partition == name)
            partition = manager.partitions.get(name)
            if partition is None:
                refuse_applications(manager, name, new)
                continue
            gone = tuple(entry for entry in removals if entry.partition == name)
            new = with_groups(
                new, manager.resolver(name), self._engine.blocking, self._extra.log("core.security")
            )
            self._tell(partition, "update_applications", new, gone)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Take asks, existing allocations and releases.

        Raises:
            RequestError: the request is refused as a whole, and nothing has changed.
        """
        manager = self._manager(rm_id_of(request, si.AllocationRequest), "AllocationRequest")
        generation = manager.generation
        submissions = self._reader.allocation_submissions(request, generation)
        releases = reading.releases(request, generation)
        terms = ask_terms(request) if request.asks else ()
        names = dict.fromkeys([entry.partition for entry in submissions])
        names.update(dict.fromkeys([entry.partition for entry in releases]))
        for name in names:
            single = len(names) == 1
            new = submissions if single else [entry for entry in submissions if entry.partition == name]
            partition = manager.partitions.get(name)
            if partition is None:
                refuse_allocations(manager, name, new)
                continue
            gone = releases if single else tuple(entry for entry in releases if entry.partition == name)
            wanted = tuple(entry for entry in terms if entry.partition == name)
            self._tell(partition, "update_allocations", new, gone, wanted)

    def request_reconsideration(self, request: v1.Reconsideration) -> None:
        """Try again what the predicates of a resource manager have refused; see `reconsider`.

        Raises:
            RequestError: It has not registered, or has no such partition.
        """
        manager = self._manager(request.rm_id, "reconsideration")
        partitions = [*manager.partitions.values()]
        if request.partition_name:
            name = full_partition_name(request.partition_name, request.rm_id)
            if name not in manager.partitions:
                raise RequestError(
                    f"reconsideration: RM {request.rm_id!r} has no partition {request.partition_name!r}"
                )
            partitions = [manager.partitions[name]]
        named = (tuple(request.allocation_keys), tuple(request.node_ids), tuple(request.predicate_classes))
        for partition in partitions:
            self._tell(partition, "reconsider", *named)

    def take_kept_use(self, rm_id: str, usage: Json) -> None:
        """Let partitions continue from an earlier use; those that are made from now on do.

        Args:
            rm_id: The resource manager; partitions of others are left unchanged.
            usage: A result of `kept_use` for queues and users; for each partition the later one is kept.

        Raises:
            RequestError: It is not that; or all that happens is recorded, and a replay would not have it.
        """
        check_type("rm_id", rm_id, str)
        from .answering.state_documents import taken_use  # noqa: PLC0415 - it needs Pydantic

        if self._observer.folder is not None:
            raise RequestError("an earlier use cannot be taken: a replay of the recording would not have it")
        self._managers.kept_use = taken_use(self._managers.kept_use, rm_id, usage)

    def deliver_events(self) -> None:
        """Queue events for the resource managers' callbacks now; otherwise that is done every two seconds.

        A stepped scheduler queues them by this call alone.
        """
        self._check_running()
        self._event_delivery.deliver()

    def stop(self) -> None:
        """End all scheduling and every thread; a second call waits for the same end.

        Inside a callback it returns when scheduling has ended; queued announcements are delivered.
        In a process that was forked from that of the scheduler it does nothing.

        Raises:
            LicorneError: called from inside an actor or a predicate, which cannot end itself.
        """
        if self._is_left_behind:
            return
        self._managers.callback_threads.refuse("a stop")
        self._engine.check_may_close()
        self._stopped = True
        self._stopping.wait(inside_callback=self._managers.callback_threads.callback_of is not None)

    def _halt(self) -> None:
        """End all scheduling and the clock."""
        self._registrations.wait()
        self.monitoring.close()
        self._engine.close()
        self._event_delivery.close()
        self.events.close()
        self._observer.close()
        if isinstance(self._clock, RealClock):
            self._clock.close()

    def _uninterrupted(self, function: Callable[[], T]) -> T:
        """Run a function that an interrupt must not stop half-way; in a stepped scheduler, on this thread."""
        if not self.stepped:
            return run_uninterrupted(function)
        with Uninterrupted():
            return function()

    def _manager(self, rm_id: str, request: str) -> Manager:
        self._check_running()
        if self.stepped:  # Otherwise the partition gets a message, which it handles after its decision.
            self._managers.callback_threads.refuse(f"the {request} to a stepped scheduler")
        return self._managers.serving(rm_id, request)

    def _check_step(self) -> None:
        self._check_running()
        self._managers.callback_threads.refuse("a step")

    def _tell(self, partition: Partition, method: str, *args: object) -> None:
        self._engine.tell(partition, method, *args, may_wait=self._managers.callback_threads.may_wait)

    def _check_running(self) -> None:
        if self._stopped:
            raise StoppedError("the scheduler has been stopped")
        if self._is_left_behind:
            raise StoppedError(
                f"the scheduler is in process {self._process}, from which this one was forked without its "
                "threads: make another one here"
            )

    @property
    def _is_left_behind(self) -> bool:
        """Whether its threads are in the process from which this one was forked."""
        return not self.stepped and os.getpid() != self._process

    # ----------------------------------------------------------------------------------- questions

    def _question(self, question: v1.Question) -> Any:
        return self.answers.answer(question)

    def _ask_all(self, question: str, answer: Callable[[Sequence[Partition]], T]) -> T:
        """Put a question to all partitions.

        Raises:
            RequestError: the scheduler has been stopped, or a predicate asks.
        """
        self._check_running()
        self._managers.callback_threads.refuse(question)
        try:
            return self._uninterrupted(
                lambda: answer(self._managers.running_first(self._cluster.partitions()))
            )
        except ActorEndedError as error:
            self._check_running()
            raise RequestError(f"{question} met what has just ended: {error}") from error

    def _ask_all_alone(self, question: str, answer: Callable[[Sequence[Partition]], T]) -> T:
        """Put a question to all partitions, from any thread."""
        with self.one_caller:
            return self._ask_all(question, answer)

    def record_history(self) -> None:
        """Add to the history how many applications run now, and how many allocations there are."""
        self.monitoring.record_history()

    def _note_loss(self) -> None:
        if not self.stepped:
            self.monitoring.check_soon()

"""Registrations and reloads of a scheduler: each happens as a whole, or changes nothing.

First all that may be refused is read and made: texts, files, partitions, the link to the resource manager
(RM). Then the tables are replaced, under one lock. Then parts that are no longer needed end; failures at this
point are logged, since the change has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Final, final

from .....actors.runtime.errors import ActorEndedError
from .....actors.services.log import Log
from .....lockcheck import Lock, excludes
from .....model.cluster import Cluster, Reconfigured, check_manager_id
from .....model.configuration.extra import ExtraConfig, parse_extra_config
from .....model.configuration.problems import ConfigurationError
from .....model.configuration.reader import DEFAULT_CONFIGURATION, load, policy_problems
from .....model.configuration.schema import PartitionConfig, SchedulerConfig
from .....model.errors import LicorneError, RequestError
from .....model.partition import Partition
from .....model.values.documents import Document
from .....model.values.messages import Registration
from .....model.values.states import ManagerEvent
from ....base.process import collect_garbage_later
from ....si.api import Connected, ResourceManagerCallback
from ....si.arguments import replaced_hook
from ...resolvers.partition_resolvers import PartitionResolver, PrefetchedSettings, ResolverMaker
from ..prepared_configuration import commit_refused
from .extra_configurations import ExtraConfigurations
from .managers import Manager, Managers

_UPDATE: Final = "update of configuration"
_REGISTERED_AGAIN: Final = "the RM has registered again since"
_UPDATED: Final = "the configuration has been updated since"


@final
class Registrations:
    """Registers RMs with one scheduler, and changes their configurations.

    Args:
        cluster: Has the partitions of all RMs.
        managers: The table of the RMs.
        extra: The settings of the RMs that are not in their queues.
        resolver_maker: Makes the resolvers of the groups of users.
        check_running: Raises `RequestError` when the scheduler has been stopped.
        log: Gets which RM has registered, and what failed afterwards.
    """

    def __init__(
        self,
        cluster: Cluster,
        managers: Managers,
        extra: ExtraConfigurations,
        resolver_maker: ResolverMaker,
        *,
        check_running: Callable[[], None],
        log: Log,
    ) -> None:
        self._cluster = cluster
        self._managers = managers
        self._extra = extra
        self._resolver_maker = resolver_maker
        self._check_running = check_running
        self._log = log
        self._lock = Lock("registration")
        """One registration or reload at a time; no callback runs while it is held."""
        self._numbers = count(1)
        self._prepared: dict[str, int | str] = {}
        """The number of the update that is prepared for an RM, or why it is no longer prepared."""

    @excludes()
    def register(self, registration: Registration, callback: ResourceManagerCallback) -> None:
        """Register an RM; one that is registered already loses all it had.

        Raises:
            RequestError: the registration is refused, and nothing has changed.
        """
        with self._counting(registration.rm_id):
            self._register(registration, callback)

    @contextmanager
    def _counting(self, rm_id: str) -> Iterator[None]:
        """Count a configuration as accepted or refused."""
        counts = self._managers.metrics.configurations
        try:
            yield
        except LicorneError as error:
            counts.refuse(rm_id, str(error))
            raise
        counts.accepted += 1

    def _register(self, registration: Registration, callback: ResourceManagerCallback) -> None:
        rm_id = registration.rm_id
        settings = self._read(registration.configuration, registration.extra_configuration)
        joining: Manager | None = None
        change: _Transaction | None = None
        self._check_running()
        with _refusing("registration of RM"):
            check_manager_id(rm_id)
            with collect_garbage_later():
                config = load(registration.configuration or DEFAULT_CONFIGURATION)
        try:
            with self._lock:
                self._check_running()
                leaver = self._managers.find(rm_id)
                hook = None if leaver is None else replaced_hook(leaver.callback, callback)
                joined = self._managers.join(rm_id, callback)
                joining = replace(joined, build_information=registration.build_information)
                joining.life.advance(ManagerEvent.REGISTER)  # It is not in the table yet.
                change = self._change(settings, joining)
                recorded = self._managers.observer.change(
                    "register", rm_id, registration.configuration, registration.partitions
                )
                with _refusing("registration of RM"), recorded, collect_garbage_later():
                    done = self._cluster.register(registration, change, config)
                self._prepared[rm_id] = _REGISTERED_AGAIN
        except BaseException:
            self._abandon(change, joining)
            raise
        if leaver is not None and hook is not None:
            leaver.silenced.set()
        self._attempt(partial(self._finish, change, done, leaver))
        if leaver is not None and hook is not None:
            how = callback.connected_by if isinstance(callback, Connected) else "another callback"
            reason = f"RM {rm_id!r} has registered again: {how}"
            self._attempt(partial(self._managers.tell_replaced, leaver, hook, reason))
        before = None if leaver is None else leaver.life.status
        how = "" if before is None else f" again: it was {before.state.value.lower()} before"
        self._attempt(partial(self._log.bind(rm_id=rm_id).info, "RM {!r} has registered{}", rm_id, how))

    @excludes()
    def update(self, rm_id: str, configuration: str, extra_configuration: Mapping[str, str]) -> None:
        """Replace the configuration of an RM while it runs.

        Raises:
            RequestError: the configuration is refused, and nothing has changed.
        """
        with self._counting(rm_id):
            self._apply(self._read_update(rm_id, configuration, extra_configuration))

    @excludes()
    def prepare(
        self, rm_id: str, configuration: str, extra_configuration: Mapping[str, str]
    ) -> CheckedUpdate:
        """Check all that `update` checks, and change nothing; `commit` makes the change.

        An update that was prepared for the RM before can no longer be committed.

        Raises:
            RequestError: the configuration is refused; what was prepared before still can be committed.
        """
        update = self._read_update(rm_id, configuration, extra_configuration)
        with self._lock:
            change = self._begin(update)
            with _refusing(_UPDATE), collect_garbage_later():
                config = self._cluster.check_update(rm_id, configuration, change, update.config)
            number = self._prepared[rm_id] = next(self._numbers)
        return replace(update, config=config, resolvers=change.resolvers, number=number)

    @excludes()
    def commit(self, update: CheckedUpdate) -> None:
        """Make the change that was prepared.

        Raises:
            RequestError: something else has changed the RM since, and nothing has changed now.
        """
        with self._counting(update.rm_id):
            self._apply(update)

    def _read_update(
        self, rm_id: str, configuration: str, extra_configuration: Mapping[str, str]
    ) -> CheckedUpdate:
        """Read all texts of an update; no lock is held.

        Raises:
            RequestError: they are refused, or the scheduler has been stopped.
        """
        settings = self._read(configuration, extra_configuration)
        config: SchedulerConfig | None = None
        text = configuration or DEFAULT_CONFIGURATION
        self._check_running()
        known, is_new = self._managers.find(rm_id), True
        with suppress(ActorEndedError):  # The scheduler is being stopped, which is reported below.
            is_new = text != self._cluster.configuration_text(rm_id)
        if is_new and known is not None and not known.life.has_stopped:
            with _refusing(_UPDATE), collect_garbage_later():
                config = load(text)
        return CheckedUpdate(rm_id, configuration, settings, config)

    def _begin(self, update: CheckedUpdate) -> _Transaction:
        """Begin an update, with the lock.

        Raises:
            RequestError: the RM has stopped, or something else has changed it since the update was prepared.
        """
        self._check_running()
        manager = self._managers.find(update.rm_id)
        if manager is not None:
            manager.check_serves("UpdateConfigurationRequest")
        valid = self._prepared.get(update.rm_id)
        if update.number and valid != update.number:
            why = valid if isinstance(valid, str) else "another one has been prepared since"
            if manager is None:
                why = "the RM has been forgotten since"
            raise commit_refused(update.rm_id, why)
        return self._change(update.settings, manager, update.resolvers)

    def _apply(self, update: CheckedUpdate) -> None:
        """Apply an update to an RM."""
        rm_id, configuration = update.rm_id, update.configuration
        change: _Transaction | None = None
        try:
            with self._lock:
                change = self._begin(update)
                recorded = self._managers.observer.change("configuration", rm_id, configuration)
                with _refusing(_UPDATE), recorded, collect_garbage_later():
                    done = self._cluster.update_configuration(rm_id, configuration, change, update.config)
                self._prepared[rm_id] = _UPDATED
        except BaseException:
            self._abandon(change, None)
            raise
        self._attempt(partial(self._finish, change, done, None))

    @excludes()
    def pause(self, rm_id: str, reason: str, callback: ResourceManagerCallback | None) -> bool:
        """Pause an RM; return whether that is new, and the callback is the one that it has, if one is given.

        Raises:
            RequestError: the RM has not registered, or the scheduler has been stopped.
        """
        with self._lock:
            manager = self._registered_with(rm_id, callback, "a pause")
            if manager is None or not manager.life.pause(reason):
                return False
            self._note_life(manager)
        log = self._log.bind(rm_id=rm_id)
        self._attempt(partial(log.warning, "RM {!r} is paused, nothing is placed for it: {}", rm_id, reason))
        return True

    @excludes()
    def stop(self, rm_id: str, reason: str, callback: ResourceManagerCallback | None) -> bool:
        """Stop an RM; return as `pause` does.

        Raises:
            RequestError: as for `pause`.
        """
        with self._lock:
            manager = self._registered_with(rm_id, callback, "a stop")
            if manager is None or not manager.life.stop(reason):
                return False
            self._note_life(manager)
            for partition in manager.partitions.values():
                self._managers.forget_timers(partition)
        manager.close_nowait()
        self._attempt(partial(self._log.bind(rm_id=rm_id).info, "RM {!r} has stopped: {}", rm_id, reason))
        return True

    @excludes()
    def forget(self, rm_id: str) -> None:
        """Forget an RM that has stopped.

        Raises:
            RequestError: It has not, no such one has registered, or the scheduler has been stopped.
        """
        with self._lock:
            self._check_running()
            manager = self._managers.get(rm_id, "the end of a resource manager")
            if not manager.life.has_stopped:
                state = manager.life.status.state.value
                raise RequestError(f"RM {rm_id!r} is {state}: only one that has stopped can be forgotten")
            partitions = self._cluster.forget(rm_id)
            self._managers.leave(rm_id)
            self._prepared.pop(rm_id, None)
        for partition in partitions:
            self._attempt(partition.shut_down)
            self._attempt(partial(self._managers.retire, partition))
        self._attempt(partial(self._log.bind(rm_id=rm_id).info, "RM {!r} is forgotten", rm_id))

    @excludes()
    def wait(self) -> None:
        """Wait for the registration or reload that is under way."""
        with self._lock:
            pass

    def _read(self, configuration: str, extra_configuration: Mapping[str, str]) -> _Settings:
        """Read the settings that are not in the queues, also from files; no lock is held."""
        prefetched = self._resolver_maker.prefetch(configuration)
        return _Settings(prefetched, *parse_extra_config(extra_configuration))

    def _registered_with(
        self, rm_id: str, callback: ResourceManagerCallback | None, what: str
    ) -> Manager | None:
        """Return an RM, `None` if it has registered with another callback than the one that is given."""
        self._check_running()
        manager = self._managers.get(rm_id, what)
        return manager if callback is None or callback is manager.callback else None

    def _note_life(self, manager: Manager) -> None:
        """Note in a recording that an RM is paused or stopped."""
        status = manager.life.status
        said: Document = {"rmID": status.rm_id, "state": status.state.value, "reason": status.reason}
        self._managers.observer.note({"at": status.since_ns, "manager": said})

    def _change(
        self,
        settings: _Settings,
        manager: Manager | None,
        resolvers: Mapping[str, PartitionResolver] | None = None,
    ) -> _Transaction:
        change = _Transaction(self._managers, self._extra, self._resolver_maker, settings, manager)
        change.resolvers = resolvers
        return change

    def _abandon(self, change: _Transaction | None, joining: Manager | None) -> None:
        """End the partitions and the link that were made for a change that does not happen."""
        if change is not None and change.is_known:
            self._managers.events.forget_held(change.rm_id)
        for partition in () if change is None else change.dropped:
            self._attempt(partial(self._managers.retire, partition))
        if joining is not None:
            self._attempt(joining.cancel)

    def _finish(self, change: _Transaction, done: Reconfigured, leaver: Manager | None) -> None:
        """End what a change has replaced, and log its warnings."""
        self._attempt(partial(self._managers.events.configure, change.rm_id, change.settings.extra))
        ended = done.ended if self._managers.observer.ends_partitions else ()
        for partition in ended:
            self._attempt(partition.shut_down)
        for partition in ended:
            self._attempt(partial(self._managers.retire, partition))
        if leaver is not None:
            self._attempt(leaver.close)  # Not under the lock: its callback may be waiting for it.
        self._attempt(partial(self._extra.warn, change.rm_id, done.warnings, change.settings.warnings))

    def _attempt(self, step: Callable[[], object]) -> None:
        """Do one of the last steps; a failure is logged, and the next step is done."""
        try:
            step()
        except ActorEndedError:
            pass  # The scheduler is being stopped.
        except BaseException:  # noqa: BLE001 - it is logged, and there is nothing left to take back
            self._log.exception("a step at the end of a registration or reload failed, please report")


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Begin the error with what has failed if the cluster refuses something."""
    try:
        yield
    except LicorneError as error:
        raise RequestError(f"{what} failed: {error}") from error


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings of a registration or reload that are not in its queues."""

    prefetched: PrefetchedSettings
    extra: ExtraConfig
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckedUpdate:
    """An update of the configuration of an RM: its original texts, and the result of the checks."""

    rm_id: str
    configuration: str
    settings: _Settings
    config: SchedulerConfig | None
    """The configuration, `None` if it is in effect already."""
    resolvers: Mapping[str, PartitionResolver] | None = None
    """The resolvers that it needs, `None` if none have been made yet."""
    number: int = 0
    """Counts the updates that are prepared in a scheduler, from 1; 0 for one that is not."""


@final
class _Transaction:
    """One registration or reload: it makes the partitions, and enters them in the tables.

    The manager has its earlier partitions, if any. The reload of an RM that is not registered has no
    manager: the cluster refuses it before it needs one.
    """

    def __init__(
        self,
        managers: Managers,
        extra_configurations: ExtraConfigurations,
        resolver_maker: ResolverMaker,
        settings: _Settings,
        manager: Manager | None,
    ) -> None:
        self._managers = managers
        self._extra_configurations = extra_configurations
        self._resolver_maker = resolver_maker
        self.settings = settings
        self._manager = manager
        self.resolvers: Mapping[str, PartitionResolver] | None = None
        """The resolvers that it needs, `None` as long as none have been made."""
        self.dropped: list[Partition] = []
        """Partitions that were made and are not used."""

    @property
    def rm_id(self) -> str:
        """The id of the RM."""
        return self._known().rm_id

    @property
    def is_known(self) -> bool:
        """Whether there is a manager."""
        return self._manager is not None

    def prepare(self, config: SchedulerConfig) -> None:
        """Make the resolvers that the configuration asks for; an RM that registers starts with new ones.

        Raises:
            ConfigurationError: one cannot be made, or the configuration names a policy that was not given.
        """
        refused = policy_problems(config, self._managers.policies.points)
        if refused:
            raise ConfigurationError(refused)
        if self.resolvers is None:
            manager = self._known()
            self.resolvers = self._resolver_maker.make(
                manager.rm_id, config, manager.resolvers, self.settings.prefetched
            )

    def make(self, name: str, config: PartitionConfig) -> Partition:
        """Make a partition for the RM."""
        return self._managers.make(self._known(), name, config)

    def commit(self, partitions: Mapping[str, Partition]) -> None:
        """Enter the RM in the tables with its partitions; requests go there from now on."""
        manager = self._known()
        resolvers = manager.resolvers if self.resolvers is None else self.resolvers
        entered = replace(manager, partitions=partitions, resolvers=resolvers)
        before = self._extra_configurations.of(manager.rm_id)
        self._extra_configurations.replace(manager.rm_id, self.settings.extra)
        try:
            self._managers.enter(entered)
        except BaseException:
            self._extra_configurations.replace(manager.rm_id, before)
            raise

    def drop(self, partition: Partition) -> None:
        """Note a partition that must be ended when the change has been undone."""
        self.dropped.append(partition)

    def _known(self) -> Manager:
        assert self._manager is not None, "the change of an RM that is not known: please report"
        return self._manager

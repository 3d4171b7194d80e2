"""Between the cluster and the scheduler: the start as a recovery, then the messages of both sides.

It has no threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

from .... import __version__
from ....actors.services.log import Log
from ....model.errors import LicorneError
from ...si import si_pb2 as si
from ...wire.client.recovery import Recovery
from ...wire.client.recovery_parts import RecoveryState
from ..client.api_calls import ApiCalls
from ..client.list_watch import Read, WatchChange
from ..mapping.asks import node_info
from ..mapping.pod_groups import GROUP_KINDS
from ..mapping.settings import ConfigMapError, ConfigMapsRead, KubernetesSettings, is_placeholder
from ..mapping.user_signatures import UserAndGroups
from ..objects import (
    ConfigMap,
    KubernetesNode,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    StorageClass,
)
from ..predicates.preference_policy import CurrentCluster, preference_policies
from ..storage_objects import CsiDriver, CsiStorageCapacity
from .cache import ClusterCache, ClusterConfiguration
from .cluster_events import ClusterEvents
from .event_loop import Entry, EventLoop, RequestBatch
from .figures import PodFigures
from .left_out import LeftOut
from .life import APPLICATION_TABLE, TASK_TABLE, PodLife
from .manager import PodManager, Reconsidering
from .pod_actions import PodActions
from .reporting import Reporter
from .shared_parts import SharedParts
from .task_effects import why_blocked
from .tasks import PodTask
from .waiting_reports import WaitingReports

if TYPE_CHECKING:
    from ...core.scheduler.scheduler import Scheduler
    from ...wire.client.remote_scheduler import RemoteScheduler

CLUSTER_KINDS: Final[tuple[tuple[type[Any], str], ...]] = (
    (Namespace, "/api/v1/namespaces"),
    (PriorityClass, "/apis/scheduling.k8s.io/v1/priorityclasses"),
    (StorageClass, "/apis/storage.k8s.io/v1/storageclasses"),
    (CsiDriver, "/apis/storage.k8s.io/v1/csidrivers"),
    (CsiStorageCapacity, "/apis/storage.k8s.io/v1/csistoragecapacities"),
    (PersistentVolume, "/api/v1/persistentvolumes"),
    (PersistentVolumeClaim, "/api/v1/persistentvolumeclaims"),
    *((each.kind, each.path) for each in GROUP_KINDS),
    (KubernetesNode, "/api/v1/nodes"),
    (Pod, "/api/v1/pods"),
)
"""The watched kinds of the whole cluster, in the order in which they are handled at the start."""
_WAITING_STATES: Final = (
    si.UpdateContainerSchedulingStateRequest.SKIPPED,
    si.UpdateContainerSchedulingStateRequest.FAILED,
)
_RETRY_SECONDS: Final = 10.0


@final
@dataclass(frozen=True, slots=True)
class PodSchedulerOptions:
    """The options of the command line.

    Args:
        namespace: The namespace of the configuration.
        defaults: The settings for keys that the configuration in the cluster lacks.
        queues: The queues if the cluster has no configuration, as YAML.
        identity: The name of this process among the candidates for the lead.
        waits_for_lead: Whether it schedules only when `lead` is called.
        is_real: Whether its calls change the cluster. Otherwise it does not know whose the placeholders are.
        current: Gets the known cluster, for the policies of the scheduler.
    """

    namespace: str = "default"
    defaults: KubernetesSettings = field(default_factory=KubernetesSettings)
    queues: str = ""
    identity: str = "licorne"
    waits_for_lead: bool = False
    is_real: bool = True
    current: CurrentCluster = field(default_factory=CurrentCluster)

    @property
    def policies(self) -> Mapping[str, Callable[[], object]]:
        """The policies for the scheduler, by name."""
        return preference_policies(self.current)


@final
class Coordinator:
    """Handles changes of the cluster and messages of the scheduler; used by one thread.

    Args:
        scheduler: The scheduler that places the pods.
        loop: The thread of all calls.
        calls: The API server.
        options: The options of the command line.
        log: The log for failures.
    """

    def __init__(
        self,
        scheduler: Scheduler | RemoteScheduler,
        loop: EventLoop,
        calls: ApiCalls,
        options: PodSchedulerOptions,
        log: Log,
    ) -> None:
        self._scheduler = scheduler
        self._log = log
        self._loop = loop
        self._calls = calls
        self._reporter = Reporter(
            self._loop, calls, options.defaults.scheduler_name, options.identity, self._log
        )
        self._actions = PodActions(self._loop, calls)
        self.figures = PodFigures()
        self._configuration = ClusterConfiguration(
            options.defaults, options.queues, self._log, self._report_configuration
        )
        self._current = options.current
        self._current.view = self._cache = ClusterCache()
        self._leads = not options.waits_for_lead
        self._is_real = options.is_real
        self._lists: dict[type[Any], dict[tuple[str, str], Any]] = {}
        """The objects of the cluster until it has begun, by kind, and by namespace and name."""
        self._missing: set[type[Any]] = set()
        """The kinds of groups that the cluster does not have."""
        self.start_failure = ""
        """Why the last attempt to begin failed; empty if none failed, or it has begun."""
        self._running: _RunningParts | None = None

    # ------------------------------------------------------------------------------------- start and end

    @property
    def is_ready(self) -> bool:
        """Whether it schedules: it leads, and the scheduler knows the whole cluster."""
        running = self._running
        recovery = None if running is None else running.recovery
        return recovery is not None and recovery.state is RecoveryState.RUNNING

    @property
    def left_out(self) -> Mapping[str, int]:
        """The number of objects that are left out as unreadable, by kind; from any thread."""
        running = self._running
        return {} if running is None else running.left_out.counts

    @property
    def is_listed(self) -> bool:
        """Whether it has the whole cluster, so that it could begin at once."""
        return self._running is not None or len(self._lists) > len(CLUSTER_KINDS)

    @property
    def tasks(self) -> Mapping[str, PodTask]:
        """Our pods that have not ended, by uid."""
        return {} if self._running is None else self._running.shared.tasks

    def why_blocked(self, task: PodTask) -> str:
        """Return why a task is not requested yet, apart from the scheduler; empty if nothing blocks it."""
        running = self._running
        return "" if running is None else why_blocked(task.pod, self._cache, running.shared.settings)

    def stop_acting(self) -> None:
        """Stop changing the cluster: another process schedules."""
        self._actions.may_act = False

    def lead(self) -> None:
        """Begin to lead: this process schedules from now on."""
        self._leads = True
        self._begin_if_possible()

    def _begin_if_possible(self) -> None:
        if self._running is None and self._leads and self.is_listed:
            try:
                self._begin()
            except Exception as error:  # noqa: BLE001 - any failure is tried again with the objects of that time
                self._running = None
                self._current.view = self._cache = ClusterCache()
                self.start_failure = str(error)
                if not isinstance(error, ConfigMapError):
                    self._log.error("the start has failed, and is tried again: {}", error, error=error)
                self._loop.later(_RETRY_SECONDS, self._begin_if_possible)

    def _begin(self) -> None:
        """Hand over the whole cluster to the scheduler as a recovery; the waiting pods follow.

        Raises:
            ConfigMapError: The configuration is refused; the refusal is reported.
            LicorneError: The scheduler refuses something else.
        """
        read = self._configuration.read()
        settings = read.settings
        if settings.separate_users and self._is_real:
            own = self._calls.own_user()
            settings = replace(settings, account=UserAndGroups(own.username, own.groups))
        running = self._running = self._parts(settings)
        for node in self._lists[KubernetesNode].values():
            if not running.left_out.has(node):
                self._cache.put_node(node)
        self._cache.groups.update((each.kind, {}) for each in GROUP_KINDS if each.kind not in self._missing)
        for kind, _ in CLUSTER_KINDS:
            items = () if kind is KubernetesNode else self._lists[kind].values()
            self._each(running.events.seen, sorted(items, key=_rank_at_start))
        running.shared.has_begun = True
        entries = running.shared.requests.take()
        recovery = Recovery(
            self._scheduler,
            _registration(read),
            PodManager(self._cache, lambda what, message: self._loop.post(self._said, what, message)),
            nodes=[
                node_info(state.node, si.NodeInfo.CREATE, settings) for state in self._cache.nodes.values()
            ],
            applications=[entry for entry in entries if isinstance(entry, si.AddApplicationRequest)],
            allocations=[entry for entry in entries if isinstance(entry, si.Allocation)],
            forces_applications=False,
        )
        _start(recovery, self._configuration)
        running.recovery = running.shared.requests.target = recovery
        self._log.info("scheduling: {} nodes, {} pods", len(self._cache.nodes), len(self._cache.pods))
        self._calls.limit_rate(settings.queries_per_second, settings.query_burst)
        self._lists.clear()
        self.start_failure = ""

    # ------------------------------------------------------------------------------------- the API server

    def listed(self, kind: type[Any], items: Sequence[Read[Any]] | None) -> None:
        """Handle the list of all objects of a kind; `None` for groups that the cluster does not have."""
        if items is None:
            items = ()
            self._missing.add(kind)
            self._cache.groups.pop(kind, None)
            if self._running is not None:
                self._running.life.groups_changed()
                return
        elif kind in self._missing:
            self._missing.remove(kind)
            self._cache.groups[kind] = {}
        if kind is ConfigMap and self._configuration.replace(list(items)):
            self._configuration.reload(self._update_configuration)
        if self._running is None:
            self._lists[kind] = {_full_name(item): item for item in items}
            self._begin_if_possible()
        elif kind is not ConfigMap:
            gone = self._running.events.not_among(kind, items)
            self._each(self._running.events.gone, gone)
            self._each(self._running.events.seen, items)

    def changed(self, kind: type[Any], changes: Sequence[tuple[WatchChange, Read[Any]]]) -> None:
        """Handle the changes since the list."""
        if kind is ConfigMap:
            self._configuration_changed(changes)
        elif self._running is None:
            there = self._lists.get(kind, {})
            for change, item in changes:
                there.pop(_full_name(item), None)
                if change is not WatchChange.DELETED:
                    there[_full_name(item)] = item
        else:
            self._each(lambda entry: self._take_change(*entry), changes)

    def _take_change(self, change: WatchChange, item: Any) -> None:
        if self._running is not None:
            events = self._running.events
            (events.gone if change is WatchChange.DELETED else events.seen)(item)

    def _each(self, take: Callable[[Any], None], items: Iterable[Any]) -> None:
        """Handle items one by one; a failure does not hold back the others."""
        for item in items:
            try:
                take(item)
            except Exception as error:  # noqa: BLE001 - as above
                self.note_error(error)

    def _configuration_changed(self, changes: Sequence[tuple[WatchChange, Read[ConfigMap]]]) -> None:
        has_changed = [
            self._configuration.remove(item.metadata.name)
            if change is WatchChange.DELETED
            else self._configuration.put(item)
            for change, item in changes
        ]
        if any(has_changed):
            self._configuration.reload(self._update_configuration)
            self._begin_if_possible()

    def _update_configuration(self, read: ConfigMapsRead) -> None:
        settings = read.settings
        self._scheduler.update_configuration(
            si.UpdateConfigurationRequest(
                rmID=settings.rm_id,
                policyGroup=settings.policy_group,
                config=read.queue_yaml,
                extraConfig=read.extra_config,
            )
        )

    def _report_configuration(self, item: ConfigMap, reason: str) -> None:
        self._reporter.event(item, "ConfigurationRejected", "Reloading", reason, is_warning=True)

    # ------------------------------------------------------------------------------------- the scheduler

    def _said(self, what: str, message: Any) -> None:
        """Handle a message of the scheduler."""
        running = self._running
        if running is None:
            return
        match what:
            case "allocations":
                self._take_allocations(running, message)
            case "applications":
                self._take_applications(running, message)
            case "scheduling state":
                if message.state in _WAITING_STATES:
                    running.waiting.waits(message.allocationKey)
            case "nodes":
                for rejection in message.rejected:
                    state = self._cache.nodes.get(rejection.nodeID)
                    if state is not None:
                        self._reporter.event(
                            state.node, "NodeRejected", "Registering", rejection.reason, is_warning=True
                        )

    def _take_allocations(self, running: _RunningParts, response: si.AllocationResponse) -> None:
        self._each(running.life.placed, response.new)
        self._each(running.life.rejected, response.rejectedAllocations)
        self._each(running.life.released, response.released)
        running.waiting.preempted(response.released)

    def _take_applications(self, running: _RunningParts, response: si.ApplicationResponse) -> None:
        for accepted in response.accepted:
            running.life.application_accepted(accepted.applicationID)
        for rejected in response.rejected:
            running.life.application_rejected(rejected.applicationID, rejected.reason, rejected.code)
        for change in response.updated:
            running.life.application_changed(change.applicationID, change.state, change.message)

    def flush(self) -> None:
        """Send the pending requests to the scheduler."""
        if self._running is not None:
            self._running.shared.requests.flush()

    def _note_refused(self, entry: Entry, error: LicorneError) -> None:
        self._log.error("the scheduler refuses {}: {}", type(entry).__name__, error)
        if self._running is not None:
            self._running.life.refused(entry, str(error))

    def note_error(self, error: Exception) -> None:
        """Log the error of a call."""
        self._log.error("what has happened cannot be carried out: {}", error, error=error)

    def _parts(self, settings: KubernetesSettings) -> _RunningParts:
        """Return the parts that exist after the settings are known."""
        loop, reporter = self._loop, self._reporter
        self._actions.evicts = settings.evict_preempted
        requests = RequestBatch(settings.rm_id, self._note_refused)
        parts = SharedParts(
            settings,
            self._cache,
            loop,
            requests,
            self._calls,
            self._actions,
            reporter,
            Reconsidering(loop, self._reconsider),
            self.figures,
            TASK_TABLE,
            APPLICATION_TABLE,
        )
        life = PodLife(parts)
        left_out = LeftOut(settings, reporter, self._log)
        waiting = WaitingReports(loop, reporter, parts.tasks, self._scheduler.explain_ask, self._cache)
        parts.on_asked = waiting.asked
        return _RunningParts(
            shared=parts,
            life=life,
            events=ClusterEvents(parts, life, left_out),
            left_out=left_out,
            waiting=waiting,
        )

    def _reconsider(self, node_ids: Sequence[str], keys: Sequence[str]) -> None:
        """Make the scheduler ask again; during a recovery it has not asked yet."""
        running = self._running
        if running is None or not self.is_ready:
            return
        running.shared.requests.flush()
        rm_id = running.shared.settings.rm_id
        if node_ids or not keys:
            self._scheduler.reconsider(rm_id, node_ids=node_ids)
        if keys:
            self._scheduler.reconsider(rm_id, allocation_keys=keys)


@final
@dataclass(slots=True)
class _RunningParts:
    """The parts that exist after the settings are known."""

    shared: SharedParts
    life: PodLife
    events: ClusterEvents
    left_out: LeftOut
    waiting: WaitingReports
    recovery: Recovery | None = None


def _start(recovery: Recovery, configuration: ClusterConfiguration) -> None:
    """Begin a recovery; the configuration is bad if the scheduler refuses the registration.

    Raises:
        ConfigMapError: The configuration is bad.
        LicorneError: The scheduler refuses something else.
    """
    try:
        recovery.start()
    except LicorneError as error:
        if recovery.state is not RecoveryState.NEW:
            raise
        configuration.refused(error)
        raise ConfigMapError(str(error)) from error


def _rank_at_start(item: Any) -> tuple[bool, str]:
    """Return the rank of an object at a start: the oldest first, and placeholders last.

    The first pod of an application decides its user and its gang. A placeholder may be as old as that pod,
    since times are whole seconds.
    """
    return isinstance(item, Pod) and is_placeholder(item), item.metadata.creation_timestamp


def _full_name(item: Any) -> tuple[str, str]:
    return item.metadata.namespace, item.metadata.name


def _registration(read: ConfigMapsRead) -> si.RegisterResourceManagerRequest:
    settings = read.settings
    return si.RegisterResourceManagerRequest(
        rmID=settings.rm_id,
        version=__version__,
        policyGroup=settings.policy_group,
        config=read.queue_yaml,
        extraConfig=read.extra_config,
    )

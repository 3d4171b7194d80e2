"""The state of a partition, and its applications.

Queue tree, node order, entries of applications, user limits and counters belong together: each change of an
application returns an `Answer`, and `licorne.model.state.applying.apply` brings all of them up to date.
Placements are counted by `licorne.model.state.charges`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, final

from ..applications.application import Application
from ..applications.effects import ApplicationFacts, ApplicationState, StateEntered, TimerSet
from ..applications.handle import ApplicationHandle
from ..applications.life import view_of_ask
from ..configuration.schema import PartitionConfig
from ..limits.user_limits import UserLimits
from ..nodes.class_orders import ClassOrders, OrderedNodes, class_orders
from ..nodes.entry import NodeEntry
from ..nodes.node_orders import node_order
from ..nodes.order import NodeOrder
from ..nodes.topology import Topology
from ..nodes.windows import Windows
from ..placement.placement import usable_rules
from ..placement.rules import RuleOutcome
from ..predicates.avoided_nodes import AvoidedNodes
from ..predicates.node_checks import NodeChecks
from ..predicates.node_filters import FilteredNodes
from ..queues.application_entry import ApplicationEntry, wake
from ..queues.queue import Queue
from ..queues.sleep import Sleep, Stamp
from ..queues.tree import QueueTree
from ..queues.waiting import ClosedGangs
from ..resources.comparisons import prune
from ..resources.resource import EMPTY, Resource, add, subtract
from ..values.allocation import Allocation, Ask
from ..values.events import ChangeDetail, ChangeType
from ..values.facts import EventReports, LeftFact
from ..values.states import ObjectState
from .applying import Expiries
from .ask_parts import AskParts
from .claims import PreemptionClaims, ReservedAsks
from .counters import CycleTimes, EndedApplication, Endings, PlacedCounts, Setbacks
from .dependencies import Dependencies
from .expected_ends import ExpectedEnds
from .host import ApplicationTimer, PartitionHost, PartitionTimers, checks_of
from .preemption_log import DisruptionLog, PreemptionLog
from .rates import EventRates, FailedAttempts
from .refusal_notes import RefusalNotes

_BOUND_MIN: Final = 4096
"""At how many keys unused ones are searched for; then again at twice as many as are used."""


@final
class KeyClaims:
    """The allocation keys of a partition, each with the application that uses it, or has used it.

    Args:
        used_among: Given an application and some keys, returns those of the keys that it uses now.
    """

    def __init__(self, used_among: Callable[[str, Sequence[str]], Sequence[str]]) -> None:
        self._used_among = used_among
        self._claimants: dict[str, str] = {}
        self._bound = _BOUND_MIN

    def claim(self, allocation_key: str, application_id: str) -> None:
        """Note the application of a key; at times, forget the keys that applications no longer use."""
        self._claimants[allocation_key] = application_id
        if len(self._claimants) > self._bound:
            self._forget_unused()
            self._bound = max(_BOUND_MIN, 2 * len(self._claimants))

    def claimant_of(self, allocation_key: str) -> str:
        """Return the application that has last claimed a key, whether or not it uses it still."""
        return self._claimants.get(allocation_key, "")

    def owner_of(self, allocation_key: str) -> str:
        """Return the application that uses a key now, else the empty text."""
        name = self._claimants.get(allocation_key, "")
        return name if name and self._used_among(name, (allocation_key,)) else ""

    def _forget_unused(self) -> None:
        keys: dict[str, list[str]] = {}
        for key, name in self._claimants.items():
            keys.setdefault(name, []).append(key)
        # One question an application instead of one a key.
        self._claimants = {
            key: name for name, candidates in keys.items() for key in self._used_among(name, candidates)
        }


class RejectedApplication(NamedTuple):
    """A rejected application, and the outcomes of the placement rules, if they were asked."""

    serial: int
    application: ApplicationHandle
    rules: tuple[RuleOutcome, ...]


class TerminatedApplication(NamedTuple):
    """An application that has terminated, and the name of the state that it stays in until it expires."""

    application: ApplicationHandle
    state: str


@final
class PartitionState:
    """The state of one partition. Owned by the partition; handles lead to its applications and nodes."""

    named_resource: Resource = EMPTY
    """The last size whose types were found to have names that are allowed; equal sizes are one object."""
    policies_reviewed_ns: int = 0
    """When the policies were last asked for all keys because of time alone."""
    class_orders: ClassOrders | None = None
    """The orders of nodes by classes of asks, `None` if the policy of nodes has none."""
    node_changes: int = 0
    """Counts what may make a node reservable."""
    nodes_removed: int = 0
    local_changes: int = 0
    """Counts what has ended, which may turn a refusal on its own path or for its user into a placement."""

    def __init__(self, name: str, rm_id: str, config: PartitionConfig, host: PartitionHost) -> None:
        self.name = name
        self.rm_id = rm_id
        self.config = config
        self.host = host
        self.state = ObjectState.ACTIVE
        self.state_since_ns = host.now_ns()
        self.events = EventReports(host.events, rm_id, host.now_ns)
        self.tree = QueueTree(
            *(config.root, host.instrument(Queue), self.events, host.now_ns, host.kept_use),
            policies=host.policies,
        )
        self.rules = usable_rules(config.placement_rules)
        self.limits = host.instrument(UserLimits)(self.events)
        self.limits.update(config.root)
        self.nodes = host.instrument(NodeOrder)(
            node_order(config.node_sort_policy.word, host.policies, config.topology),
            config.node_sort_policy.resource_weights,
        )
        self.class_orders = class_orders(self.nodes, config.node_sort_policy.word, host.policies)
        self.topology, self.windows = Topology(config.topology), Windows(config.windows)
        self.capacity = EMPTY
        self.entries: dict[str, ApplicationEntry] = {}
        self.serials: dict[str, int] = {}
        self.completed: dict[int, TerminatedApplication] = {}
        """Terminated applications by serial, until they expire."""
        self.rejected: dict[str, RejectedApplication] = {}
        """The latest rejected application of each id, until it expires."""
        self.timers = PartitionTimers(host, self.state_since_ns)
        self.expiries = Expiries(host)
        self.foreign: dict[str, Allocation] = {}
        self.keys = KeyClaims(self._keys_used_among)
        self.parts = AskParts(self._keys_used_among)
        self.placed = host.instrument(PlacedCounts)()
        self.times = CycleTimes(host.stopwatch_ns)
        self.endings = Endings()
        self.setbacks = Setbacks()
        self.reserved = ReservedAsks()
        self.changes = 0
        """Counts what may turn any refusal into a placement, other than a node that gains room."""
        self.reserved_sleep: Sleep | None = None
        """Why the reserved asks need not be tried now."""
        self.preemptions = PreemptionLog()
        self.failed_preemptions = FailedAttempts()
        self.closed_gangs = ClosedGangs()
        self.disruption = DisruptionLog()
        self.quarantine = Quarantine()
        self.dependencies = Dependencies(self.tree)
        self.node_checks: NodeChecks | None = checks_of(host, self.nodes, config.policies.filters)
        """Filters, the RM's predicates, and the nodes that asks avoid; `None` if every node is taken."""
        self.event_rates = EventRates()
        self.notes = RefusalNotes(kept=self.node_checks is not None)
        self.claims = PreemptionClaims()
        self.ends = ExpectedEnds(host.policies, is_on=_backfills(self.tree))
        """Running work with its expected ends: kept where a queue backfills."""
        self._serial = 0

    # -------------------------------------------------------------------------------------- settings

    @property
    def reservations(self) -> int:
        """The number of reservations."""
        return len(self.reserved)

    @property
    def stamp(self) -> Stamp:
        """The counts of changes that may give something to what was tried without result."""
        return self.changes, self.node_changes, self.local_changes, self.nodes.gains

    @property
    def preemption_enabled(self) -> bool:
        """Whether asks may preempt across queues."""
        return self.config.preemption.enabled is not False

    @property
    def quota_preemption_enabled(self) -> bool:
        """Whether a lowered maximum is enforced by preemption."""
        return self.config.preemption.quota_preemption_enabled is True

    @property
    def whole_jobs_first(self) -> bool:
        """Whether a gang ends as a whole before others lose members too."""
        return self.config.preemption.whole_jobs

    def now_ns(self) -> int:
        """Return the time, nanoseconds since 1970."""
        return self.host.now_ns()

    def nodes_for(self, ask: Ask) -> OrderedNodes:
        """Return the nodes in the order for an ask."""
        if self.class_orders is None:
            return self.nodes
        return self.class_orders.order_for(view_of_ask(ask), self.now_ns())

    def avoided_nodes(self) -> AvoidedNodes:
        """Return the checks by which asks may not get some nodes; there are some from now on."""
        if not isinstance(self.node_checks, AvoidedNodes):
            self.node_checks = AvoidedNodes(self.node_checks)
        return self.node_checks

    # ---------------------------------------------------------------------------------- applications

    def add_entry(
        self, application: Application, handle: ApplicationHandle, facts: ApplicationFacts, queue: Queue
    ) -> ApplicationEntry:
        """Add the entry of a new application to a leaf."""
        entry = ApplicationEntry(handle, application.application_id, application.user, queue, facts)
        self._serial += 1
        self.serials[entry.application_id] = self._serial
        self.entries[entry.application_id] = entry
        queue.entries.add(entry)
        wake(queue)
        self.events.note(
            ChangeType.ADD, ChangeDetail.QUEUE_APP, queue.path, reference_id=entry.application_id
        )
        return entry

    def remove_entry(self, entry: ApplicationEntry) -> None:
        """Remove an entry; the application has nothing left that is counted."""
        queue = entry.queue
        self.limits.decrease(queue.path, entry.application_id, entry.user, EMPTY, remove_application=True)
        del self.entries[entry.application_id]
        self.timers.stop_all(self.serials.pop(entry.application_id))
        for level in queue.above:
            level.forget_accepted(entry.application_id)
        queue.entries.remove(entry)
        self.tree.refresh(queue)
        self.dependencies.end(entry)
        self.local_changes += 1
        report = self.events.sink.report
        if report is not None:
            report(LeftFact(2, self.rm_id, self.now_ns(), entry.application_id, queue.path))
        if not queue.managed or queue.is_draining:
            self.timers.clean_later()

    def forget(self, entry: ApplicationEntry, serial: int) -> None:
        """Drop an application that the RM has removed."""
        if entry.application_id in self.entries:
            if entry.facts.state is ApplicationState.RUNNING:
                for level in entry.queue.above:
                    level.count_running(entry.application_id, -1)
            self.remove_entry(entry)
            self._note_ended(entry, "Removed", "it was removed by its resource manager")
        self.limits.drop_unused(entry.queue.path, entry.user)
        self.completed.pop(serial, None)
        self.expiries.forget(serial)
        self.host.release(entry.application)

    def _note_ended(self, entry: ApplicationEntry, state: str, reason: str) -> None:
        place = (entry.application_id, entry.user, entry.tags, entry.queue.path, state)
        self.endings.recent.add(EndedApplication(*place, entry.facts.submitted_at_ns, self.now_ns(), reason))

    def keep_terminated(self, entry: ApplicationEntry, reason: str) -> None:
        """Move an application to those that have terminated, until it expires."""
        ended_in = entry.facts.state
        self._note_ended(entry, ended_in.value, reason)
        self.completed[self.serials[entry.application_id]] = TerminatedApplication(
            entry.application, ended_in.value
        )
        self.endings.counts[entry.queue.path, ended_in] += 1
        self.remove_entry(entry)

    def keep_rejected(
        self,
        application: Application,
        handle: ApplicationHandle,
        reason: str,
        rules: tuple[RuleOutcome, ...],
    ) -> None:
        """Keep a rejected application for explanations until it expires."""
        name, now_ns = application.application_id, self.now_ns()
        before = self.rejected.get(name)
        if before is not None:
            self.expiries.forget(before.serial)
            self.host.release(before.application)
        self._serial += 1
        self.rejected[name] = RejectedApplication(self._serial, handle, rules)
        place = (name, application.user, application.tags, "", ApplicationState.REJECTED.value)
        self.endings.recent.add(EndedApplication(*place, now_ns, now_ns, reason))
        for effect in handle.reject(reason, now_ns).effects:
            if isinstance(effect, StateEntered):
                self.events.note(ChangeType.SET, ChangeDetail.APP_REJECT, name, message=reason)
            elif isinstance(effect, TimerSet):
                timer = ApplicationTimer(name, self._serial, effect.kind, effect.generation)
                self.expiries.add(effect.due_ns, timer)

    def _keys_used_among(self, application_id: str, allocation_keys: Sequence[str]) -> Sequence[str]:
        entry = self.entries.get(application_id)
        if entry is None:
            return allocation_keys if application_id in self.quarantine.applications else ()
        return entry.application.asks.known_among(allocation_keys)

    # --------------------------------------------------------------------------------------- changes

    def review_policies(self) -> None:
        """Ask the policies anew for all keys, and for all starts that they hold."""
        self.policies_reviewed_ns = self.now_ns()
        self.nodes.set_rule(self.nodes.rule, self.nodes.weights)
        self.reorder()

    @property
    def filtered(self) -> FilteredNodes | None:
        """The filters of nodes by policies, `None` if the program has given none."""
        checks = self.node_checks.checks if isinstance(self.node_checks, AvoidedNodes) else self.node_checks
        return checks if isinstance(checks, FilteredNodes) else None

    def reorder(self) -> None:
        """Bring all orders and filters up to date with a configuration, and have every leaf visited again."""
        if self.filtered is not None:
            self.filtered.use(self.config.policies.filters)
        self.class_orders = class_orders(self.nodes, self.config.node_sort_policy.word, self.host.policies)
        if self.topology.levels != self.config.topology:
            self.topology = Topology.of(self.config.topology, self.nodes)
        self.tree.limits_changed()
        backfilling = [queue for queue in self.tree if queue.settings.backfill is not None]
        keeping = {queue.path for queue in backfilling if promises_all(queue)}
        self.ends.switch(backfilling={queue.path for queue in backfilling}, keeping=keeping)
        for queue in self.tree:
            queue.entries.rebuild()
            self.tree.refresh(queue)
            wake(queue)
        self.changes += 1
        self.node_changes += 1

    def change_capacity(self, before: Resource, after: Resource) -> None:
        """Count a node's capacity for the partition and the root's maximum."""
        self.capacity = prune(subtract(add(self.capacity, after), before))
        root = self.tree.root
        maximum = root.maximum
        root.set_maximum_from_nodes(self.capacity)
        if root.maximum != maximum:
            self.events.note(ChangeType.SET, ChangeDetail.QUEUE_MAX, root.path, resource=root.maximum)
        self.tree.limits_changed()
        self.changes += 1
        self.node_changes += 1


def _backfills(tree: QueueTree) -> bool:
    """Return whether a queue promises starts."""
    return any(queue.settings.backfill is not None for queue in tree)


def promises_all(queue: Queue) -> bool:
    """Return whether all jobs below a queue are promised a start when they come."""
    return queue.settings.backfill is not None and queue.settings.backfill.keeps


class BrokenKind(Enum):
    """The broken entities."""

    APPLICATION = "application"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One broken object: which, since when in nanoseconds since 1970, and the error it broke with."""

    partition: str
    kind: BrokenKind
    name: str
    since_ns: int
    reason: str


@final
class Quarantine:
    """The broken objects of one partition. Owned by the partition."""

    __slots__ = ("applications", "entries", "nodes")

    def __init__(self) -> None:
        self.applications: dict[str, ApplicationEntry] = {}
        self.nodes: dict[str, NodeEntry] = {}
        self.entries: dict[tuple[BrokenKind, str], Quarantined] = {}

    def note(self, partition: str, kind: BrokenKind, name: str, reason: str, now_ns: int) -> None:
        """Record why and since when an object is quarantined."""
        self.entries[kind, name] = Quarantined(partition, kind, name, now_ns, reason)

    def reason(self, kind: BrokenKind, name: str) -> str:
        """Return why an object is quarantined, the empty text if it is not."""
        entry = self.entries.get((kind, name))
        return "" if entry is None else entry.reason

"""A partition: the queues, applications and nodes that are scheduled together.

Others call the marked methods; each runs to its end before the next begins. The work is done in the rooms
`requests`, `scheduling`, `preemption` and `explanation`, on what the room `state` holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from .applications.views import ShownApplication
from .configuration.schema import PartitionConfig
from .explanation.dry_run import DryRun, dry_run_application, dry_run_ask
from .explanation.explain import explain
from .explanation.values import Explanation
from .limits.limits import HolderKind
from .limits.user_limits import holder_names
from .marks import Marks
from .partition_monitor import PartitionMonitor
from .partition_views import (
    ListedApplications,
    PartitionValues,
    ShownNode,
    ShownPartition,
    listed_applications,
    node_ids,
    partition_values,
    shown_active,
    shown_completed,
    shown_nodes,
    shown_partition,
    shown_queue,
    shown_rejected,
)
from .placement.rules import PlacementRule
from .preemption.quota import preempt_over_quota
from .queues.views import ShownQueue
from .requests.allocations import submit_allocations
from .requests.applications import add_applications, remove_application
from .requests.nodes import remove_node, remove_quarantined_node, update_nodes
from .requests.older_asks import submit_with_terms
from .requests.quarantining import forget_quarantined, quarantine_application, quarantine_node
from .requests.reconfiguring import Savepoint, reconfigure
from .requests.releases import release_allocation
from .scheduling.concurrent_placing import ConcurrentOutcome, place_concurrently
from .scheduling.cycle import CycleOutcome, run_cycle
from .scheduling.outstanding import outstanding_asks
from .scheduling.timer_actions import carry_out, next_retry_ns, schedule_wakeups, watch_quotas
from .state.applying import apply
from .state.host import PartitionHost, TimerAction
from .state.invariants import validate_partition
from .state.partition_state import PartitionState
from .state.quarantine import BrokenKind, Quarantined
from .values.documents import Document
from .values.messages import (
    AllocationsRejected,
    AllocationSubmission,
    ApplicationRemoval,
    ApplicationSubmission,
    AskTerms,
    NodeUpdate,
    Release,
)
from .values.object_state import ObjectEvent, next_object_state

__all__ = ["Partition", "PartitionReports"]


class Partition:
    """One partition of one RM. `name` is its full name, `[rm]default`, and never changes.

    A class that extends it may watch what it is asked, and changes nothing of what it does.
    """

    MARKS: Final = Marks(
        writes=(
            "update_nodes",
            "update_applications",
            "update_allocations",
            "reconfigure",
            "restore",
            "shut_down",
            "cycle",
            "place_concurrently",
            "work",
            "run_until_idle",
            "watch_quotas",
            "schedule_wakeups",
            "inspect_outstanding",
            "preempt_over_quota",
            "next_retry_ns",
            "on_timer",
            "quarantine",
        )
    )

    def __init__(self, name: str, rm_id: str, config: PartitionConfig, host: PartitionHost) -> None:
        self.name = name
        self.rm_id = rm_id
        self._state = PartitionState(name, rm_id, config, host)
        self.reports = PartitionReports(self._state)
        self.monitor = PartitionMonitor(self._state)
        self.host = host
        """What it was given; never changes."""
        self._stopped = False

    # ---------------------------------------------------------------------------------- from the RM

    def update_nodes(self, updates: Sequence[NodeUpdate]) -> None:
        """Create, change, drain and remove nodes, in order; the RM is answered, see `requests.nodes`."""
        if self._state.node_checks is not None:
            created = frozenset(update.node_id for update in updates if update.action.creates)
            self._state.node_checks.forget(node_ids=created)
        answer = update_nodes(self._state, updates)
        if answer is not None:
            self.host.announce(answer)

    def update_applications(
        self,
        submissions: Sequence[ApplicationSubmission],
        removals: Sequence[ApplicationRemoval],
    ) -> None:
        """Add new applications, answer the RM about them, then remove applications."""
        if submissions:
            self.host.announce(add_applications(self._state, submissions))
        for removal in removals:
            remove_application(self._state, removal)

    def update_allocations(
        self,
        submissions: Sequence[AllocationSubmission],
        releases: Sequence[Release],
        terms: Sequence[AskTerms] = (),
    ) -> None:
        """Add asks and allocations, answer the RM about rejected ones, then end what it says has ended."""
        if self._state.node_checks is not None:
            self._state.node_checks.forget(keys=[submission.allocation_key for submission in submissions])
        if terms:
            rejections = submit_with_terms(self._state, submissions, terms)
        else:
            rejections = list(submit_allocations(self._state, submissions).values())
        refused = [release.rejection() for release in releases if release.refusal]
        if rejections or refused:
            self.host.announce(AllocationsRejected((*rejections, *refused)))
        for release in releases:
            if not release.refusal:
                release_allocation(self._state, release)

    # ------------------------------------------------------------------------------- configuration

    def reconfigure(self, config: PartitionConfig) -> Savepoint:
        """Apply a new configuration, which has been checked as a whole: nothing in it can be refused.

        Returns:
            What `restore` needs, if the other partitions cannot apply theirs.
        """
        return reconfigure(self._state, config)

    def restore(self, before: Savepoint) -> None:
        """Undo `reconfigure`, which has returned this."""
        before.restore(self._state)

    def shut_down(self) -> None:
        """End everything: applications fail, nodes go, and nothing is scheduled any more.

        An application or node that turns out to be broken prevents no other one from ending.
        """
        state = self._state
        self._stopped = True
        state.state = next_object_state(state.state, ObjectEvent.STOP)
        now_ns = state.now_ns()
        for entry in list(state.entries.values()):
            try:
                apply(state, entry, entry.application.fail("PartitionRemoved", now_ns))
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one, the others end
                quarantine_application(state, entry.application_id, repr(error))
        for node in state.nodes.by_name():
            try:
                remove_node(state, node)
            except Exception as error:  # noqa: BLE001 - likewise
                quarantine_node(state, node.node_id, repr(error))
        for node_id in list(state.quarantine.nodes):
            remove_quarantined_node(state, node_id)
        _release_all(state)

    # ----------------------------------------------------------------------------------- scheduling

    def cycle(self) -> CycleOutcome:
        """Run one cycle; return what it did."""
        return run_cycle(self._state)

    def place_concurrently(self) -> ConcurrentOutcome:
        """Place one ask while other threads do the same; concurrent calls need an engine that instruments."""
        return place_concurrently(self._state)

    def work(self, cycles_max: int) -> CycleOutcome:
        """Run a slice of cycles, `cycles_max` at most; return what the last one did.

        One that placed nothing ends the slice, so that requests do not wait for many reservations. Unless it
        did nothing at all there may be more to do.
        """
        outcome = CycleOutcome.RESULT
        for _ in range(cycles_max):
            outcome = run_cycle(self._state)
            if outcome is not CycleOutcome.RESULT:
                break
        if outcome is CycleOutcome.NOTHING:
            self.schedule_wakeups()
        return outcome

    def run_until_idle(self) -> int:
        """Run cycles until nothing more can be done; return how many gave a result."""
        results = 0
        while (outcome := run_cycle(self._state)) is not CycleOutcome.NOTHING:
            results += outcome is CycleOutcome.RESULT
        self.watch_quotas()
        return results

    def watch_quotas(self) -> None:
        """Set a timer for when a queue that is above its maximum is due for preemption."""
        watch_quotas(self._state)

    def schedule_wakeups(self) -> None:
        """Set a timer for when time alone may change an answer."""
        schedule_wakeups(self._state)

    def inspect_outstanding(self) -> None:
        """Report to the RM asks that fit every quota and wait for room in the cluster, each once."""
        if not self._stopped:
            outstanding_asks(self._state)

    def preempt_over_quota(self) -> None:
        """Enforce maxima that were lowered and are due; to be called every second."""
        if not self._stopped:
            preempt_over_quota(self._state)

    def next_retry_ns(self) -> int | None:
        """Return when time alone may let something be placed, `None` if only a change can.

        It also brings the orders of the queues up to date.
        """
        return next_retry_ns(self._state)

    def flush(self) -> None:
        """Have the announced messages delivered; for the owner, at the end of a turn."""
        self.host.flush()

    # --------------------------------------------------------------------------------------- timers

    def on_timer(self, action: TimerAction) -> None:
        """Do what is due."""
        if not self._stopped:
            carry_out(self._state, action)

    # ----------------------------------------------------------------------------------- quarantine

    def quarantine(self, kind: BrokenKind, name: str, reason: str) -> bool:
        """Exclude an application or node that broke from scheduling; return whether that is new."""
        if kind is BrokenKind.APPLICATION:
            return quarantine_application(self._state, name, reason)
        return quarantine_node(self._state, name, reason)


def _release_all(state: PartitionState) -> None:
    """Drop all applications, because the partition ends."""
    handles = [entry.application for entry in state.entries.values()]
    handles += [ended.application for ended in state.completed.values()]
    handles += [kept.application for kept in state.rejected.values()]
    for name in list(state.quarantine.applications):
        forget_quarantined(state, name)
    for entry in list(state.entries.values()):
        for record in entry.application.asks.waiting():
            entry.remove_pending(record.ask)
        state.remove_entry(entry)
    state.completed.clear()
    state.rejected.clear()
    for handle in handles:
        state.host.release(handle)


@final
class PartitionReports:
    """The reports of a partition; none of them changes anything."""

    MARKS: Final = Marks(
        reads=(
            "quarantined",
            "explain",
            "application_ids",
            "explain_ask",
            "dry_run_application",
            "dry_run_ask",
            "shown",
            "values",
            "queue",
            "node_ids",
            "nodes",
            "listed_applications",
            "active",
            "completed",
            "rejected",
            "placement_rules",
            "holder_names",
            "holders",
            "validate",
        )
    )

    def __init__(self, state: PartitionState) -> None:
        self._state = state

    def quarantined(self) -> tuple[Quarantined, ...]:
        """Return what has broken, the first one first."""
        return tuple(self._state.quarantine.entries.values())

    def explain(self, application_id: str) -> Explanation | None:
        """Explain why an application waits, `None` if it is unknown here; changes nothing."""
        return explain(self._state, application_id)

    def application_ids(self) -> tuple[str, ...]:
        """Return the ids of all applications that can be explained, sorted."""
        state = self._state
        ended = (ended.application.application_id for ended in state.completed.values())
        return tuple(sorted({*state.entries, *state.rejected, *ended}))

    def explain_ask(self, application_id: str, allocation_key: str) -> Explanation | None:
        """Explain one ask of an application alone."""
        return explain(self._state, application_id, only_key=allocation_key)

    def dry_run_application(
        self, submission: ApplicationSubmission, ask: AllocationSubmission | None
    ) -> DryRun:
        """Find out where a new application would go, and its first ask if one is given; changes nothing."""
        return dry_run_application(self._state, submission, ask)

    def dry_run_ask(self, submission: AllocationSubmission) -> DryRun | None:
        """Find out where a new ask would go, `None` if its application is not active; changes nothing."""
        return dry_run_ask(self._state, submission)

    def shown(self) -> ShownPartition:
        """Return what all documents of the partition are made of, as of one moment."""
        return shown_partition(self._state)

    def values(self) -> PartitionValues:
        """Return what the partition as a whole shows, as of one moment."""
        return partition_values(self._state)

    def queue(self, path: str, *, subtree: bool) -> tuple[ShownQueue, ...]:
        """Return what a queue and those above it show; nothing if there is no such queue.

        Args:
            path: The full path, such as `root.a`.
            subtree: Whether all queues below it are shown, too.
        """
        return shown_queue(self._state, path, subtree=subtree)

    def node_ids(self) -> tuple[str, ...]:
        """Return the ids of all nodes, sorted."""
        return node_ids(self._state)

    def nodes(self, names: Sequence[str]) -> tuple[ShownNode, ...]:
        """Return what some nodes show; those that are gone are left out."""
        return shown_nodes(self._state, names)

    def listed_applications(self) -> ListedApplications:
        """Return which applications there are: active, ended and rejected ones."""
        return listed_applications(self._state)

    def active(self, names: Sequence[str]) -> tuple[ShownApplication, ...]:
        """Return what some active applications show; those that are gone are left out."""
        return shown_active(self._state, names)

    def completed(self, serials: Sequence[int]) -> tuple[ShownApplication, ...]:
        """Return what some applications that have ended show, likewise."""
        return shown_completed(self._state, serials)

    def rejected(self, names: Sequence[str]) -> tuple[ShownApplication, ...]:
        """Return what some rejected applications show, likewise."""
        return shown_rejected(self._state, names)

    def placement_rules(self) -> tuple[PlacementRule, ...]:
        """Return the placement rules, in their order; each is a value."""
        return self._state.rules.all()

    def holder_names(self, kind: HolderKind) -> tuple[str, ...]:
        """Return the names of all users, or of all groups, that have limits or use something; sorted."""
        return tuple(sorted(holder_names(self._state.limits, kind)))

    def holders(self, *, users: Sequence[str] = (), groups: Sequence[str] = ()) -> list[Document]:
        """Return what some users and groups have and may have; those that are not known are left out."""
        return self._state.limits.user_views(users) + self._state.limits.group_views(groups)

    def validate(self) -> None:
        """Assert every invariant of the partition and of all that is in it."""
        validate_partition(self._state)

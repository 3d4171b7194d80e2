"""A partition: the queues, applications and nodes that are scheduled together.

Others call the marked methods; each runs to its end before the next begins. The work is done in the rooms
`requests`, `scheduling`, `preemption` and `explanation`, on what the room `state` holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Concatenate, Final, ParamSpec, TypeVar

from .configuration.schema import PartitionConfig
from .marks import Marks
from .preemption.quota import preempt_over_quota
from .requests.allocations import submit_allocations
from .requests.applications import add_applications
from .requests.nodes import remove_node, remove_quarantined_node, update_nodes
from .requests.older_asks import submit_with_terms
from .requests.quarantining import forget_quarantined, quarantine_application, quarantine_node
from .requests.reconfiguring import Savepoint, reconfigure
from .requests.releases import release_allocation, remove_application
from .scheduling.cycle import ConcurrentOutcome, CycleOutcome, is_idle, place_concurrently, run_cycle
from .scheduling.timer_actions import (
    carry_out,
    next_retry_ns,
    outstanding_asks,
    review_policies_when_due,
    schedule_wakeups,
    watch_quotas,
)
from .state.applying import apply
from .state.host import PartitionHost, TimerAction
from .state.node_windows import keep_windows
from .state.partition_state import BrokenKind, PartitionState
from .values.messages import (
    AllocationsRejected,
    AllocationSubmission,
    ApplicationRemoval,
    ApplicationSubmission,
    AskTerms,
    NodeAction,
    NodeUpdate,
    Release,
)
from .values.states import ObjectEvent, next_object_state

P = ParamSpec("P")
T = TypeVar("T")


class Partition:
    """One partition of one RM. `name` is its full name, `[rm]default`, and never changes.

    A class that extends it may watch what it is asked, and changes nothing of what it does.
    """

    MARKS: Final = Marks(
        writes=(
            "update_nodes",
            "update_applications",
            "update_allocations",
            "reconsider",
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
        ),
        reads=("read",),
    )

    def __init__(self, name: str, rm_id: str, config: PartitionConfig, host: PartitionHost) -> None:
        self.name = name
        self.rm_id = rm_id
        self._state = PartitionState(name, rm_id, config, host)
        keep_windows(self._state)
        self.host = host
        """The host that it was given; never changes."""
        self._stopped = False

    def read(
        self,
        function: Callable[Concatenate[PartitionState, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return what a function copies of the state; it changes nothing. `model.views` has most of them."""
        return function(self._state, *args, **kwargs)

    # ---------------------------------------------------------------------------------- from the RM

    def reconsider(
        self, allocation_keys: Collection[str], node_ids: Collection[str], classes: Collection[str]
    ) -> None:
        """Try asks again that the RM's predicates refused: these answers are out of date.

        Args:
            allocation_keys: The keys of asks.
            node_ids: Nodes.
            classes: Classes of asks; with none of the three, everything is meant, the policies included.
        """
        state = self._state
        if not (allocation_keys or node_ids or classes) and state.host.policies.by_name:
            state.review_policies()
        if state.node_checks is not None:
            state.node_checks.reconsider(keys=allocation_keys, node_ids=node_ids, classes=classes)
        state.changes += 1
        state.node_changes += 1

    def update_nodes(self, updates: Sequence[NodeUpdate]) -> None:
        """Create, change, drain and remove nodes, in order; the RM is answered, see `requests.nodes`."""
        if self._state.node_checks is not None:
            created = frozenset(update.node_id for update in updates if update.action.creates)
            gone = frozenset(each.node_id for each in updates if each.action is NodeAction.DECOMISSION)
            self._state.node_checks.forget(node_ids=created, gone=gone)
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
        """Add asks and allocations, answer the RM about rejected ones, then carry out its releases."""
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
            The argument of `restore`, if the other partitions cannot apply theirs.
        """
        return reconfigure(self._state, config)

    def restore(self, before: Savepoint) -> None:
        """Undo `reconfigure`, which has returned this."""
        before.restore(self._state)

    def shut_down(self) -> None:
        """End everything: applications fail, nodes go, and scheduling stops.

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
        if self._state.host.policies.by_name:
            review_policies_when_due(self._state)
        for _ in range(cycles_max):
            outcome = run_cycle(self._state)
            if outcome is not CycleOutcome.RESULT:
                break
        if self._state.node_checks is None and is_idle(self._state):
            outcome = CycleOutcome.NOTHING
        if outcome is CycleOutcome.NOTHING:
            self.schedule_wakeups()
        return outcome

    def run_until_idle(self) -> int:
        """Run cycles until nothing more can be done; return how many gave a result."""
        results = 0
        if self._state.host.policies.by_name:
            review_policies_when_due(self._state)
        while (outcome := run_cycle(self._state)) is not CycleOutcome.NOTHING:
            results += outcome is CycleOutcome.RESULT
        if self._state.quota_preemption_enabled:
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

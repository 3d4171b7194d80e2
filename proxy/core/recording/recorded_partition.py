"""A partition that has each of its turns recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, final

from ....model.configuration.schema import PartitionConfig
from ....model.partition import Partition
from ....model.requests.reconfiguring import Savepoint
from ....model.scheduling.cycle import CycleOutcome
from ....model.state.host import TimerAction
from ....model.state.partition_state import BrokenKind
from ....model.values.documents import Document
from ....model.values.messages import (
    AllocationSubmission,
    ApplicationRemoval,
    ApplicationSubmission,
    AskTerms,
    NodeUpdate,
    Release,
)
from .partition_turns import PartitionTurns
from .requests import (
    allocation_request,
    application_request,
    looked_up_groups,
    node_request,
    timer_document,
)

if TYPE_CHECKING:
    from .recorder import TurnRecorder

T = TypeVar("T")

STEPS: Final = (
    *("cycle", "run_until_idle", "watch_quotas", "schedule_wakeups", "next_retry_ns"),
    *("inspect_outstanding", "preempt_over_quota", "shut_down"),
)
"""The methods without arguments that a line `step` may name."""


@final
class RecordedPartition(Partition):
    """A partition each of whose turns becomes a line; it does what any other one does."""

    def __init__(
        self, name: str, rm_id: str, config: PartitionConfig, turns: PartitionTurns, recorder: TurnRecorder
    ) -> None:
        self._turns = turns
        self._recorder = recorder
        super().__init__(name, rm_id, config, turns.host)
        turns.watch(self._state)

    def update_nodes(self, updates: Sequence[NodeUpdate]) -> None:
        """Create, change, drain and remove nodes; a line `node`."""
        self._turns.run(
            lambda: {"node": node_request(self.rm_id, updates)},
            lambda: Partition.update_nodes(self, updates),
            may_hold=True,
        )

    def update_applications(
        self, submissions: Sequence[ApplicationSubmission], removals: Sequence[ApplicationRemoval]
    ) -> None:
        """Add and remove applications; a line `application`, with the groups that were looked up."""

        def describe() -> Document:
            line: Document = {"application": application_request(self.rm_id, submissions, removals)}
            groups = looked_up_groups(submissions)
            return line | {"groups": groups} if groups else line

        self._turns.run(
            describe, lambda: Partition.update_applications(self, submissions, removals), may_hold=True
        )

    def update_allocations(
        self,
        submissions: Sequence[AllocationSubmission],
        releases: Sequence[Release],
        terms: Sequence[AskTerms] = (),
    ) -> None:
        """Add asks and allocations, and end what has ended; a line `allocation`."""
        self._turns.run(
            lambda: {"allocation": allocation_request(self.rm_id, submissions, releases, terms)},
            lambda: Partition.update_allocations(self, submissions, releases, terms),
            may_hold=True,
        )

    def reconsider(
        self, allocation_keys: Collection[str], node_ids: Collection[str], classes: Collection[str]
    ) -> None:
        """Try again what the RM refused; a line `reconsider`."""

        def describe() -> Document:
            named = {"allocationKeys": allocation_keys, "nodeIds": node_ids, "predicateClasses": classes}
            lists: Document = {name: [*entries] for name, entries in named.items() if entries}
            return {"reconsider": {"rmId": self.rm_id, **lists}}

        self._turns.run(
            describe,
            lambda: Partition.reconsider(self, allocation_keys, node_ids, classes),
            may_hold=True,
        )

    def on_timer(self, action: TimerAction) -> None:
        """Do what is due; a line `timer`."""
        self._turns.run(
            lambda: {"timer": timer_document(action)},
            lambda: Partition.on_timer(self, action),
            may_hold=True,
        )

    def work(self, cycles_max: int) -> CycleOutcome:
        """Run cycles; a line `schedule`."""
        return self._turns.run(
            lambda: {"schedule": cycles_max}, lambda: Partition.work(self, cycles_max), may_hold=True
        )

    def quarantine(self, kind: BrokenKind, name: str, reason: str) -> bool:
        """Exclude what broke from scheduling; a line `quarantine`."""
        broken: Document = {"kind": kind.value, "name": name, "reason": reason}
        return self._turns.run(
            lambda: {"quarantine": broken}, lambda: Partition.quarantine(self, kind, name, reason)
        )

    def reconfigure(self, config: PartitionConfig) -> Savepoint:
        """Apply a new configuration, as a part of the change that has one line for all partitions."""
        at_ns = self._recorder.take_part(self._turns)
        return self._turns.run_in_change(at_ns, lambda: Partition.reconfigure(self, config))

    def restore(self, before: Savepoint) -> None:
        """Undo `reconfigure`; a change that does not happen has no line."""
        at_ns = self._recorder.take_part(self._turns)
        self._turns.run_in_change(at_ns, lambda: Partition.restore(self, before))

    def _run_step(self, name: str, step: Callable[[Partition], T]) -> T:
        return self._turns.run(lambda: {"step": name}, partial(step, self))


def _recorded(name: str, step: Callable[[Partition], T]) -> Callable[[RecordedPartition], T]:
    """Return a method that runs a step of the base class; a line `step`."""

    def run(partition: RecordedPartition) -> T:
        return partition._run_step(name, step)  # noqa: SLF001 - a method of it

    return run


for _name in STEPS:
    setattr(RecordedPartition, _name, _recorded(_name, getattr(Partition, _name)))

"""Scenes for tests of preemption: what runs where, who asks, and who has to go."""

from __future__ import annotations

from support.model.builders import TEN
from support.model.harness import PARTITION, Harness

from licorne.model.preemption.victims import Victim
from licorne.model.resources.resource import Resource
from licorne.model.state.preemption_log import PreemptionRecord
from licorne.model.values.allocation import REQUIRED_NODE_TAG
from licorne.model.values.messages import AllocationsReleased, AllocationSubmission, Release, TerminationType

__all__ = ["TWO_QUEUES", "Scene"]

TWO_QUEUES = """
    - name: a
      properties: {preemption.delay: 10s}
      resources: {guaranteed: {memory: 50}}
    - name: b
      resources: {guaranteed: {memory: 20}}
"""
"""A queue that is entitled to fifty, and one whose guarantee is twenty."""


class Scene(Harness):
    """A harness with words for preemption. Each queue has one application, called as the queue's path."""

    apart = False
    """Each ask is of a shape of its own: it names a task group that no other one names."""

    def runs(
        self,
        *keys: str,
        queue: str = "root.b",
        node: str = "n1",
        resource: Resource = TEN,
        priority: int = 0,
        willing: bool = True,
        originator: bool = False,
        required_node: str = "",
    ) -> None:
        """Have allocations that exist already, each a moment younger than the one before."""
        for key in keys:
            self._submit(
                key,
                queue,
                resource,
                priority,
                node_id=node,
                willing=willing,
                originator=originator,
                required_node=required_node,
            )

    def asks(
        self,
        *keys: str,
        queue: str = "root.a",
        resource: Resource = TEN,
        priority: int = 0,
        may_preempt: bool = True,
        required_node: str = "",
        willing: bool = True,
    ) -> None:
        """Have asks, each a moment younger than the one before."""
        for key in keys:
            self._submit(
                key,
                queue,
                resource,
                priority,
                may_preempt=may_preempt,
                required_node=required_node,
                willing=willing,
            )

    def _submit(
        self,
        key: str,
        queue: str,
        resource: Resource,
        priority: int,
        *,
        node_id: str = "",
        willing: bool = True,
        originator: bool = False,
        may_preempt: bool = False,
        required_node: str = "",
    ) -> None:
        if queue not in self.state.entries:
            rejection = self.submit(queue, queue)
            assert rejection is None, rejection
        submission = AllocationSubmission(
            allocation_key=key,
            application_id=queue,
            partition=PARTITION,
            resource=resource,
            priority=priority,
            tags={REQUIRED_NODE_TAG: required_node} if required_node else {},
            node_id=node_id,
            task_group_name=f"group of {key}" if self.apart else "",
            placeholder=False,
            originator=originator,
            allow_preempt_self=willing,
            allow_preempt_other=may_preempt,
        )
        self.partition.update_allocations([submission], [])
        self.validate()
        self.advance(milliseconds=10)

    def end(self, key: str, queue: str = "root.b", *, again: bool = False) -> None:
        """Confirm the end of one victim; with `again` its job asks for the same at once by another key."""
        allocation = self.application(queue).allocations.get(key)
        assert allocation is not None, f"{key} does not run"
        self.release(key, application_id=queue, termination=TerminationType.PREEMPTED_BY_SCHEDULER)
        if again:
            self.asks(f"{key}'", queue=queue, resource=allocation.ask.resource, may_preempt=False)
        self.run_until_idle()

    # ---------------------------------------------------------------------------------------- looks

    @property
    def preempted(self) -> list[str]:
        """The keys that the RM was asked to end to make room, in order."""
        return [key for key, kind in self.releases if kind is TerminationType.PREEMPTED_BY_SCHEDULER]

    @property
    def preemption_messages(self) -> list[tuple[Release, ...]]:
        """The messages with which the RM was asked to, in order."""
        return [
            entry.releases
            for entry in self.heard(AllocationsReleased)
            if entry.releases[0].termination is TerminationType.PREEMPTED_BY_SCHEDULER
        ]

    @property
    def record(self) -> PreemptionRecord:
        """The only preemption so far."""
        (record,) = self.state.preemptions
        return record

    def waits_with(self, key: str, queue: str = "root.a") -> list[str]:
        """Return the texts that were noted on an ask that waits."""
        record = self.application(queue).asks.record(key)
        assert record is not None, f"{key} does not wait"
        return sorted(record.log or {})

    def victim(self, key: str, queue: str = "root.b") -> Victim:
        """Return an allocation as a possible victim."""
        allocation = self.application(queue).allocations.get(key)
        assert allocation is not None, f"{key} does not run"
        return Victim(allocation, self.entry(queue))

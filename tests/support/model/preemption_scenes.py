"""Scenes for tests of preemption: what runs where, who asks, and who has to go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from support.model.builders import START_NS, TEN, FakePredicates, an_ask_submission, memory
from support.model.harness import Harness

from licorne.model.preemption.victims import Victim
from licorne.model.queues.application_entry import ApplicationEntry
from licorne.model.resources.resource import Resource
from licorne.model.state.preemption_log import PreemptionCause, PreemptionRecord, VictimRecord
from licorne.model.values.allocation import Allocation, Ask
from licorne.model.values.messages import AllocationsReleased, Release, TerminationType

TWO_QUEUES = """
    - name: a
      properties: {preemption.delay: 10s}
      resources: {guaranteed: {memory: 50}}
    - name: b
      resources: {guaranteed: {memory: 20}}
"""
"""A queue that is entitled to fifty, and one whose guarantee is twenty."""


HUNDRED = memory(100)


@dataclass(frozen=True)
class Running:
    """Allocations that exist when a test begins, in a row of a table: `Running("v1 v2", node="n2")`."""

    keys: str
    queue: str = "root.b"
    node: str = "n1"
    resource: Resource = TEN
    priority: int = 0
    willing: bool = True
    originator: bool = False
    required_node: str = ""


@dataclass
class JudgingPredicates(FakePredicates):
    """An RM with an opinion of its own on victims.

    Attributes:
        judge: gets the key of the ask, the keys of the victims and the index that is enough for room; returns
            the index that the RM answers.
    """

    judge: Callable[[str, tuple[str, ...], int | None], int | None] = field(kw_only=True)

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        """Answer as the test says."""
        index = super().preemption_index(allocation_key, node_id, victim_keys, start_index)
        return self.judge(allocation_key, victim_keys, index)


class Scene(Harness):
    """A harness with words for preemption. Each queue has one application, called as the queue's path."""

    apart = False
    """Each ask is of a shape of its own: it names a task group that no other one names."""

    def runs(self, *keys: str, queue: str = "root.b", node: str = "n1", **options: Any) -> None:
        """Have allocations that exist already, each a moment younger than the one before."""
        self._submit(keys, queue, node_id=node, **options)

    def start(self, running: Iterable[Running]) -> None:
        """Have the allocations of a row of a table, in its order."""
        for each in running:
            options = dict(vars(each))
            self.runs(*options.pop("keys").split(), **options)

    def asks(self, *keys: str, queue: str = "root.a", may_preempt: bool = True, **options: Any) -> None:
        """Have asks, each a moment younger than the one before."""
        self._submit(keys, queue, may_preempt=may_preempt, **options)

    def _submit(self, keys: tuple[str, ...], queue: str, *, willing: bool = True, **options: Any) -> None:
        for key in keys:
            if queue not in self.state.entries:
                rejection = self.submit(queue, queue)
                assert rejection is None, rejection
            if self.apart:
                options["task_group_name"] = f"group of {key}"
            submission = an_ask_submission(key, queue, willing=willing, **options)
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
        return sorted(self.ask_record(key, queue).log or {})

    def victim(self, key: str, queue: str = "root.b") -> Victim:
        """Return an allocation as a possible victim."""
        allocation = self.application(queue).allocations.get(key)
        assert allocation is not None, f"{key} does not run"
        return Victim(allocation, self.entry(queue))


@dataclass(frozen=True)
class Situation:
    """What an ask finds when it comes, and what it preempts, in a row of a table.

    By default it asks for ten in root.a.
    """

    running: Sequence[Running]
    queues: str = TWO_QUEUES
    nodes: Mapping[str, Resource] = field(default_factory=lambda: {"n1": HUNDRED})
    leaf: str = "root.a"
    asked: Resource = TEN
    preempted: Sequence[str] = ()

    def scene(self) -> Scene:
        """Build it, without the ask."""
        scene = Scene(self.queues)
        for node, capacity in self.nodes.items():
            scene.nodes(node, capacity=capacity)
        scene.start(self.running)
        return scene


@cache
def _an_entry() -> ApplicationEntry:
    scene = Scene(TWO_QUEUES)
    scene.submit("root.b", "root.b")
    return scene.entry("root.b")


def a_victim(
    key: str = "v",
    *,
    resource: Resource = TEN,
    willing: bool = True,
    originator: bool = False,
    priority: int = 0,
    age_ns: int = 0,
    required_node: str = "",
) -> Victim:
    """Return a possible victim in root.b; all of them are of one entry."""
    ask = Ask(
        allocation_key=key,
        application_id="app",
        resource=resource,
        created_at_ns=START_NS - age_ns,
        priority=priority,
        originator=originator,
        allow_preempt_self=willing,
        required_node=required_node,
    )
    return Victim(Allocation(ask, "node", START_NS), _an_entry())


def a_preemption(ask: str = "ask", *victims: str, taken_from: str = "other", **more: Any) -> PreemptionRecord:
    """Return the record of a preemption for an ask of `root.a`, to which victims of `root.b` give way."""
    ended = [
        VictimRecord(
            allocation_key=victim,
            application_id=taken_from,
            queue_path="root.b",
            node_id="n1",
            resource=TEN,
            reason="it is the youngest",
        )
        for victim in victims
    ]
    record = PreemptionRecord(
        time_ns=START_NS,
        cause=PreemptionCause.GUARANTEE,
        queue_path="root.a",
        allocation_key=ask,
        application_id="app",
        node_id="n1",
        reason=f"{ask} needs room",
        victims=tuple(ended),
    )
    return replace(record, **more)

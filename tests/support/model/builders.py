"""Builders of the things of the model, for tests: what a test does not care for has a default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from textwrap import dedent, indent
from typing import Any, Final

from licorne.actors.services.clocks import EPOCH_2000_NS
from licorne.model.applications.application import Application
from licorne.model.applications.gang import GangSettings
from licorne.model.configuration.reader import load
from licorne.model.configuration.schema import PartitionConfig
from licorne.model.nodes.entry import NodeEntry
from licorne.model.nodes.node import Node
from licorne.model.queues.queue import Queue
from licorne.model.queues.tree import QueueTree
from licorne.model.resources.resource import Resource
from licorne.model.state.host import PartitionHost
from licorne.model.values.allocation import CREATION_TIME_TAG, REQUIRED_NODE_TAG, Allocation, Ask
from licorne.model.values.messages import (
    AllocationSubmission,
    ApplicationSubmission,
    NodesAnswer,
    NumberedQuestion,
    PredicateAnswer,
    PredicateQuestion,
    User,
    VictimsAnswer,
)

PARTITION: Final = "[rm]default"
SECOND_NS: Final = 1_000_000_000
START_NS: Final = EPOCH_2000_NS


def a_resource(**quantities: int) -> Resource:
    """Return a resource: `a_resource(memory=10, vcore=500)`."""
    return Resource(quantities)


def memory(quantity: int) -> Resource:
    """Return a resource of one type."""
    return a_resource(memory=quantity)


TEN: Final = a_resource(memory=10)
"""What an ask wants and a node offers unless a test says otherwise."""

FIVE: Final = a_resource(memory=5)
TWENTY: Final = a_resource(memory=20)


def an_ask(
    allocation_key: str = "ask",
    *,
    application_id: str = "app",
    resource: Resource = TEN,
    created_at_ns: int = START_NS,
    priority: int = 0,
    task_group_name: str = "",
    placeholder: bool = False,
    required_node: str = "",
    originator: bool = False,
) -> Ask:
    """Return an ask."""
    return Ask(
        allocation_key=allocation_key,
        application_id=application_id,
        resource=resource,
        created_at_ns=created_at_ns,
        priority=priority,
        task_group_name=task_group_name,
        placeholder=placeholder,
        required_node=required_node,
        originator=originator,
    )


def an_allocation(
    allocation_key: str = "ask",
    node_id: str = "node",
    *,
    ask: Ask | None = None,
    resource: Resource = TEN,
    bound_at_ns: int = START_NS,
) -> Allocation:
    """Return an ask on a node."""
    return Allocation(ask or an_ask(allocation_key, resource=resource), node_id, bound_at_ns)


def a_node(
    node_id: str = "node",
    *,
    capacity: Resource = TEN,
    schedulable: bool = True,
    attributes: Mapping[str, str] | None = None,
) -> Node:
    """Return a node with nothing on it."""
    return Node(node_id, attributes or {}, capacity, schedulable=schedulable)


def a_node_entry(
    node_id: str, *, capacity: Resource = TEN, available: Resource | None = None, schedulable: bool = True
) -> NodeEntry:
    """Return the entry of a node, everything of which is available unless said otherwise."""
    node = a_node(node_id, capacity=capacity)
    entry = NodeEntry(
        *(node, node_id, node.instance_type, capacity), schedulable=schedulable, attributes=node.attributes
    )
    if available is not None:
        entry.available = available
    return entry


def an_application(
    application_id: str = "app",
    *,
    queue_path: str = "root.leaf",
    user: User = User("bob", ("dev",)),  # noqa: B008 - a value
    gang_settings: GangSettings = GangSettings(),  # noqa: B008 - a value
    submitted_at_ns: int = START_NS,
) -> Application:
    """Return an application that nothing has been asked for."""
    return Application(
        application_id,
        partition=PARTITION,
        queue_path=queue_path,
        user=user,
        tags={},
        submitted_at_ns=submitted_at_ns,
        gang_settings=gang_settings,
    )


def an_application_submission(
    application_id: str = "app",
    queue_name: str = "root.leaf",
    *,
    user: str = "bob",
    groups: tuple[str, ...] = ("dev",),
    tags: Mapping[str, str] | None = None,
    placeholder_ask: Resource | None = None,
    style: str = "",
    timeout_seconds: int = 0,
) -> ApplicationSubmission:
    """Return the submission of an application."""
    return ApplicationSubmission(
        application_id=application_id,
        queue_name=queue_name,
        partition=PARTITION,
        user=user,
        groups=groups,
        tags=tags or {},
        execution_timeout_ms=timeout_seconds * 1000,
        placeholder_ask=placeholder_ask,
        gang_scheduling_style=style,
    )


def an_ask_submission(
    allocation_key: str = "ask",
    application_id: str = "app",
    *,
    resource: Resource = TEN,
    priority: int = 0,
    node_id: str = "",
    task_group_name: str = "",
    placeholder: bool = False,
    required_node: str = "",
    created_at_seconds: int | None = None,
    tags: Mapping[str, str] | None = None,
    originator: bool = False,
    willing: bool = False,
    may_preempt: bool = False,
) -> AllocationSubmission:
    """Return the submission of an ask, or with `node_id` of an allocation that exists.

    One that is `willing` may be preempted.
    """
    all_tags = dict(tags or {})
    if required_node:
        all_tags[REQUIRED_NODE_TAG] = required_node
    if created_at_seconds is not None:
        all_tags[CREATION_TIME_TAG] = str(created_at_seconds)
    return AllocationSubmission(
        allocation_key=allocation_key,
        application_id=application_id,
        partition=PARTITION,
        resource=resource,
        priority=priority,
        tags=all_tags,
        node_id=node_id,
        task_group_name=task_group_name,
        placeholder=placeholder,
        originator=originator,
        allow_preempt_self=willing,
        allow_preempt_other=may_preempt,
    )


@lru_cache(maxsize=64)
def a_configuration(queues: str = "- name: leaf", *, root: str = "", partition: str = "") -> PartitionConfig:
    """Return a configuration: the queues below the root, and lines for the root and the partition.

    Everybody may submit to every queue.
    """
    text = "partitions:\n- name: default\n  queues:\n  - name: root\n    submitacl: '*'\n"
    text += _block(root, "    ")
    if queues:
        text += "    queues:\n" + _block(queues, "    ")
    text += _block(partition, "  ")
    (config,) = load(text).partitions
    return config


def _block(lines: str, margin: str) -> str:
    return indent(dedent(lines).strip("\n"), margin) + "\n"


def a_host(**changes: Any) -> PartitionHost:
    """Return the host of a partition that needs nothing from outside, but for what the test says."""
    host = PartitionHost(
        now_ns=lambda: START_NS,
        call_at=lambda *_: None,
        announce=lambda _: None,
        flush=lambda: None,
        placement_halt=lambda: None,
        predicates=None,
        adopt_node=lambda node: node,
        adopt_application=lambda application: application,
        release=lambda _: None,
    )
    return replace(host, **changes)


def a_queue_tree(queues: str = "- name: leaf", *, root: str = "") -> QueueTree:
    """Return the queues of a configuration, see `a_configuration`."""
    return QueueTree(a_configuration(queues, root=root).root)


def the(tree: QueueTree, path: str) -> Queue:
    """Return a queue that is there."""
    queue = tree.find(path)
    assert queue is not None, f"there is no queue {path}"
    return queue


@dataclass
class FakePredicates:
    """The judgement of an RM that refuses what the test says, and remembers what it was asked.

    Attributes:
        refused: (allocation key, node) -> why an allocation is refused.
        unreservable: (allocation key, node) -> why a reservation, or a swap in place, is refused.
        asked: (allocation key, node, whether for an allocation), in order.
    """

    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    unreservable: dict[tuple[str, str], str] = field(default_factory=dict)
    asked: list[tuple[str, str, bool]] = field(default_factory=list)

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return why the node is refused."""
        self.asked.append((allocation_key, node_id, allocate))
        texts = self.refused if allocate else self.unreservable
        return texts.get((allocation_key, node_id))

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        """Say that the first victims of the list are enough."""
        self.asked.append((allocation_key, node_id, True))
        return start_index if victim_keys else None


class FakeChannel:
    """The way to an RM whose predicates answer when the test says so.

    Attributes:
        predicates: what the RM thinks.
        batches: what was asked, batch by batch.
        open: what has not been answered, in order.
    """

    def __init__(self, predicates: Any = None) -> None:
        self.predicates = predicates or FakePredicates()
        self.batches: list[list[NumberedQuestion]] = []
        self.open: list[NumberedQuestion] = []
        self._answers: list[PredicateAnswer] = []

    def ask(self, questions: Sequence[NumberedQuestion]) -> None:
        """Keep questions."""
        self.batches.append(list(questions))
        self.open += questions

    def take(self) -> Sequence[PredicateAnswer]:
        """Return the answers since the last time."""
        answers, self._answers = self._answers, []
        return answers

    def add(self, *answers: PredicateAnswer) -> None:
        """Have answers come that the RM does not think."""
        self._answers += answers

    def answer(self, chosen: Callable[[NumberedQuestion], bool] = lambda _: True) -> int:
        """Answer the open questions that are chosen; return how many there were."""
        answered = [each for each in self.open if chosen(each)]
        self.open = [each for each in self.open if each not in answered]
        self._answers += [self._answer_to(each) for each in answered]
        return len(answered)

    def answer_for(self, *allocation_keys: str) -> None:
        """Answer the open questions about asks."""
        count = self.answer(lambda each: each.question.allocation_key in allocation_keys)
        assert count, f"nothing is asked about {allocation_keys}"

    @property
    def asked(self) -> list[str]:
        """The keys of the asks of all questions, in order."""
        return [each.question.allocation_key for batch in self.batches for each in batch]

    def _answer_to(self, each: NumberedQuestion) -> PredicateAnswer:
        question = each.question
        if not isinstance(question, PredicateQuestion):
            index = self.predicates.preemption_index(
                question.allocation_key, question.node_id, question.victim_keys, question.start_index
            )
            return VictimsAnswer(each.number, index)
        refused = {}
        for node_id in question.node_ids:
            reason = self.predicates.refuse(question.allocation_key, node_id, allocate=question.allocate)
            if reason is not None:
                refused[node_id] = reason
        return NodesAnswer(each.number, refused)

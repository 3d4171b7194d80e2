"""The scheduling cycle under whatever an RM may do: invariants, quotas, and that nothing is overlooked.

Each run is one seed: the same seed does the same things. The harness validates the partition after each.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final
from zlib import crc32

import pytest
from support.model.builders import FakeChannel, a_resource
from support.model.harness import Harness

from licorne.model.queues.application_entry import wake
from licorne.model.resources.resource import Resource, fits_undefined_unlimited
from licorne.model.scheduling.cycle import CycleOutcome, run_cycle
from licorne.model.values.messages import AllocationPlaced, NodeAction, TerminationType

CONFIGURATIONS: Final = (
    """
- name: a
  maxapplications: 2
  resources: {max: {memory: 40}}
- name: b
  resources: {guaranteed: {memory: 20}}
  properties: {application.sort.policy: fair, priority.offset: "1"}
- name: c
  parent: true
  childtemplate: {resources: {max: {memory: 15}}}
""",
    """
- name: a
  resources: {max: {memory: 60}}
- name: b
  properties: {application.unschedasks.backoff: "2", application.unschedasks.backoff.delay: 4s}
""",
)
LIMITS: Final = (
    "limits: [{limit: bob, users: [bob], maxresources: {memory: 30}, maxapplications: 3}]",
    "limits: [{limit: all, users: ['*'], maxresources: {memory: 50}}]",
)
RULES: Final = "placementrules: [{name: provided, create: true}]"
NODES: Final = tuple(f"node-{number}" for number in range(6))
APPLICATIONS: Final = tuple(f"app-{number}" for number in range(5))
SIX: Final = a_resource(memory=6)


class MoodyPredicates:
    """The judgement of an RM that likes four of five nodes for an ask, for reasons of its own."""

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Say no to every fifth pair, to an allocation as to a reservation."""
        del allocate
        return "mood" if crc32(f"{allocation_key} {node_id}".encode()) % 5 == 0 else None

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        """Take the victims for enough where the node is liked."""
        liked = self.refuse(allocation_key, node_id, allocate=True) is None
        return min(start_index, len(victim_keys) - 1) if liked else None


class RandomPartition:
    """A partition that anything may happen to that an RM may say.

    Args:
        seed: what happens.
        channel: the way to an RM that answers its predicates later, some after each step, in any order; in
            time if the seed is even.
    """

    def __init__(self, seed: int, channel: FakeChannel | None = None) -> None:
        self.channel = channel
        self.answers_in_time = seed % 2 == 0
        self.rng = random.Random(seed)  # noqa: S311 - dice, no secret
        self.serial = 0
        self.is_regular = True
        """Nothing but the scheduler itself has placed or resized anything, and no limit was lowered."""
        self.preemption = self.rng.random() < 0.5
        self.partition_lines = f"{RULES}\nnodesortpolicy: {{type: {self.pick('fair', 'binpacking')}}}"
        number = self.rng.randrange(2)
        self.h = Harness(
            CONFIGURATIONS[number],
            root=LIMITS[number],
            partition=self.partition_lines,
            predicates=MoodyPredicates() if self.rng.random() < 0.3 and channel is None else None,
            question_channel=channel,
        )
        self.h.nodes(*NODES[:3], capacity=a_resource(memory=20))
        for name in APPLICATIONS[:3]:
            self.submit(name)

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def size(self, low: int = 1, high: int = 12) -> Resource:
        return a_resource(memory=self.rng.randint(low, high))

    def keys(self, count: int) -> list[str]:
        self.serial += count
        return [f"key-{number}" for number in range(self.serial - count, self.serial)]

    def known(self) -> tuple[str, str] | None:
        """Return an application and a key that it waits for or has."""
        rows = []
        for name, entry in self.h.state.entries.items():
            application = entry.application
            keys = dict.fromkeys(entry.allocation.allocation_key for entry in application.allocations.all())
            keys.update(dict.fromkeys(record.ask.allocation_key for record in application.asks.waiting()))
            rows += [(name, key) for key in keys]
        return self.rng.choice(rows) if rows else None

    # ------------------------------------------------------------------------------------- steps

    def change_node(self) -> None:
        """Create, change, drain or remove a node, known or not."""
        action = self.rng.choice(list(NodeAction))
        if action is NodeAction.DECOMISSION and self.rng.random() < 0.5:
            action = NodeAction.CREATE
        self.h.update_node(self.pick(*NODES), action, self.size(8, 30))

    def change_foreign(self) -> None:
        """Have something foreign run on a node, move it, resize it, or end it."""
        key = self.pick("foreign-1", "foreign-2")
        if self.rng.random() < 0.3:
            self.h.release(key, application_id="")
            return
        node_id, tags = self.pick(*NODES), {"foreign": self.pick("default", "static")}
        self.h.ask(key, application_id="", node_id=node_id, resource=self.size(0, 6), tags=tags)

    def submit(self, name: str = "") -> None:
        """Submit an application; a gang asks for its placeholders at once."""
        name = name or self.pick(*APPLICATIONS)
        gang = self.rng.choice([0, 0, 2, 3])
        rejected = self.h.submit(
            name,
            self.pick("root.a", "root.b", "root.c.x"),
            user=self.pick("bob", "eve"),
            placeholder_ask=a_resource(memory=6 * gang) if gang else None,
            style=self.pick("Soft", "Hard"),
            timeout_seconds=20,
        )
        if rejected is None and gang:
            keys = self.keys(gang)
            self.h.ask(*keys, application_id=name, resource=SIX, task_group_name="g", placeholder=True)

    def withdraw(self) -> None:
        """Take an application away."""
        self.h.withdraw(self.pick(*APPLICATIONS))

    def ask(self) -> None:
        """Ask for something, maybe as members of the gang, maybe on one node."""
        self.h.ask(
            *self.keys(self.rng.randint(1, 3)),
            application_id=self.pick(*APPLICATIONS),
            resource=self.size(),
            priority=self.rng.randrange(3),
            task_group_name=self.pick("", "", "g"),
            required_node=self.pick("", "", "", "", *NODES[:2]),
            preemption=self.preemption,
        )

    def recover(self) -> None:
        """Say that something runs already, whatever the quotas."""
        self.is_regular = False
        placeholder = self.rng.random() < 0.2
        self.h.ask(
            *self.keys(1),
            application_id=self.pick(*APPLICATIONS),
            resource=self.size(),
            node_id=self.pick(*NODES),
            task_group_name="g",
            placeholder=placeholder,
        )

    def say_again(self) -> None:
        """Ask again for something that is known, with another size or on a node."""
        self.is_regular = False
        known = self.known()
        if known is not None:
            node_id = self.pick("", "", *NODES[:2])
            self.h.ask(known[1], application_id=known[0], resource=self.size(), node_id=node_id)

    def release(self) -> None:
        """End something that is known, for whatever reason."""
        known = self.known()
        if known is not None:
            termination = self.rng.choice([TerminationType.STOPPED_BY_RM, *TerminationType])
            self.h.release(known[1], application_id=known[0], termination=termination)

    def release_all(self) -> None:
        """End everything of an application."""
        self.h.release("", application_id=self.pick(*APPLICATIONS))

    def confirm(self) -> None:
        """Confirm what the scheduler has asked for."""
        self.h.confirm()

    def wait(self) -> None:
        """Let time pass."""
        if self.channel is not None and self.answers_in_time:
            self.channel.answer()
        self.h.advance(milliseconds=self.rng.choice([1, 1500, 1500, 2500, 2500, 21_000, 31_000]))

    def reload(self) -> None:
        """Load another configuration."""
        self.is_regular = False
        number = self.rng.randrange(2)
        self.h.reload(CONFIGURATIONS[number], root=LIMITS[number], partition=self.partition_lines)

    def run(self) -> None:
        """Run some cycles."""
        for _ in range(self.rng.randint(1, 3)):
            self.h.cycle()

    def run_until_idle(self) -> None:
        """Run cycles to the end: trying everything again gives no result either."""
        h = self.h
        self.settle()
        if self.channel is not None and not self.answers_in_time:
            h.advance(1)  # What was not answered in time is tried again.
            self.settle()
        for queue in h.state.tree:
            wake(queue)
            queue.entries.rebuild()  # No application rests.
        h.state.reserved_sleep = None
        h.state.nodes._lacking.clear()
        h.state.nodes.reserved_gains.update((node.node_id, node) for node in h.state.nodes if node.reserved)
        for block in h.state.nodes._blocks:
            block.room = None
        before = len(h.announcements)
        assert CycleOutcome.NOTHING is run_cycle(h.state)
        self.settle()
        assert before == len(h.announcements)

    def settle(self) -> None:
        """Run cycles until nothing more happens, and every question is answered."""
        self.h.run_until_idle()
        while self.channel is not None and self.channel.answer():
            self.h.run_until_idle()

    def answer_some(self) -> None:
        """Answer some of the open questions, in any order."""
        assert self.channel is not None
        self.rng.shuffle(self.channel.open)
        self.channel.answer(lambda _: self.rng.random() < 0.4)

    # -------------------------------------------------------------------------------- invariants

    def check_quotas(self) -> None:
        """What the scheduler has placed by itself is within the maximum of every queue below the root."""
        for queue in self.h.state.tree:
            if queue.parent is not None:
                assert fits_undefined_unlimited(queue.maximum, queue.allocated)

    def live(self, steps: int) -> None:
        """Do so many random things."""
        weighted: list[tuple[Callable[[], None], int]] = [
            (self.ask, 8),
            (self.run_until_idle, 6),
            (self.run, 5),
            (self.wait, 5),
            (self.release, 5),
            (self.confirm, 4),
            (self.change_node, 3),
            (self.submit, 3),
            (self.change_foreign, 2),
            (self.release_all, 1),
            (self.withdraw, 1),
        ]
        if self.rng.random() < 0.5:
            weighted += [(self.recover, 2), (self.say_again, 2), (self.reload, 1)]
        moves, weights = zip(*weighted, strict=True)
        for move in self.rng.choices(moves, weights, k=steps):
            move()
            if self.channel is not None:
                self.answer_some()
            if self.is_regular:
                self.check_quotas()


@pytest.mark.parametrize("seed", range(24))
def test_whatever_happens_invariants_and_quotas_hold(seed: int) -> None:
    """Nothing is lost or counted twice, no quota is passed, and rest hides nothing that could be placed."""
    RandomPartition(seed).live(120)


@pytest.mark.parametrize("seed", range(24))
def test_whatever_happens_while_the_rm_thinks_invariants_and_quotas_hold(seed: int) -> None:
    """Its answers come late and in any order, or not at all; what is placed, it has allowed."""
    moody = MoodyPredicates()
    partition = RandomPartition(seed, FakeChannel(moody))
    partition.live(120)
    for allocation in partition.h.heard(AllocationPlaced):
        ask = allocation.allocation.ask
        refused = moody.refuse(ask.allocation_key, allocation.allocation.node_id, allocate=True)
        # What the RM says that runs already is announced as well.
        assert refused is None or not partition.is_regular


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_whatever_happens_for_long_while_the_rm_thinks_invariants_hold(seed: int) -> None:
    """The same for many seeds, and longer."""
    RandomPartition(seed, FakeChannel(MoodyPredicates())).live(300)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_whatever_happens_for_long_invariants_and_quotas_hold(seed: int) -> None:
    """The same for many seeds, and longer."""
    RandomPartition(seed).live(300)


def test_the_same_seed_does_the_same() -> None:
    """Two runs tell the RM the same things in the same order."""
    reported = []
    for _ in range(2):
        partition = RandomPartition(7)
        partition.live(120)
        reported.append([repr(entry) for entry in partition.h.announcements])

    assert reported[0] == reported[1]

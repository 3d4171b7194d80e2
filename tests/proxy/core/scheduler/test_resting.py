"""Applications that rest are those that a walk would try without result: no decision depends on it.

Each seed is one story: queues with guarantees, asks of several sizes and priorities of which most may
preempt, releases, nodes that come and are drained, and time. It is told twice, the second time to a scheduler
that remembers nothing of what failed, so that each cycle tries all that wait.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Final

import pytest
from support.proxy.manager_requests import application_request, ask_request, node_request
from support.proxy.without_memories import forget_failures

from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si

SEEDS: Final = 40
STEPS: Final = 40
LEAVES: Final = ("root.owed", "root.more.fair", "root.more.plain", "root.rest")
CONFIGURATION: Final = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: owed, resources: {guaranteed: {memory: 50}}, properties: {preemption.delay: 1s}}
    - name: more
      resources: {guaranteed: {memory: 40}, max: {memory: 90}}
      queues:
      - name: fair
        resources: {guaranteed: {memory: 20}}
        properties: {application.sort.policy: fair, preemption.delay: 5s}
      - {name: plain, properties: {priority.offset: "1"}}
    - {name: rest, limits: [{limit: bob, users: [bob], maxresources: {memory: 60}}]}
"""


OWED: Final = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: owed, resources: {guaranteed: {memory: 10}}, properties: {preemption.delay: 5s}}
    - {name: rich, resources: {guaranteed: {memory: 20}}}
"""


class Listening(ResourceManager):
    """A resource manager that keeps what it is told, and what it has to confirm."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.running: dict[str, str] = {}
        self.ending: list[si.AllocationRelease] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for new in response.new:
            self.said.append((new.allocationKey, new.nodeID))
            self.running[new.allocationKey] = new.applicationID
        for released in response.released:
            self.said.append((released.allocationKey, released.message))
            self.ending.append(released)


class Story:
    """A random story, told to one scheduler."""

    def __init__(self, seed: int, scheduler: Scheduler) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the same story each time
        self.scheduler = scheduler
        self.manager = Listening()
        self.applications: list[str] = []
        self.keys = self.nodes = 0

    def tell(self) -> list[tuple[str, str]]:
        """Tell all of it; return what the resource manager was told."""
        self.scheduler.register("rm", self.manager, configuration=CONFIGURATION)
        for _ in range(6):
            self._add_node()
        for _ in range(STEPS):
            self._step()
            self.scheduler.run_until_idle()
            if self.random.random() < 0.8:
                self._confirm()
            self.scheduler.advance_to(
                self.scheduler.now_ns() + self.random.choice((1, 10, 30, 70, 160)) * 10**8
            )
            self.scheduler.run_until_idle()
        return self.manager.said

    def _step(self) -> None:
        chance = self.random.random()
        if chance < 0.35 or not self.applications:
            name = f"app-{len(self.applications)}"
            self.applications.append(name)
            self.scheduler.update_application(application_request(name, queue=self.random.choice(LEAVES)))
        if chance < 0.75:
            self._ask()
        elif chance < 0.88 and self.manager.running:
            key = self.random.choice(sorted(self.manager.running))
            self._release([(self.manager.running.pop(key), key, si.STOPPED_BY_RM)])
        elif chance < 0.92:
            self._add_node()
        else:
            request = si.NodeRequest(rmID="rm")
            action = self.random.choice((si.NodeInfo.DRAIN_NODE, si.NodeInfo.DRAIN_TO_SCHEDULABLE))
            request.nodes.add(nodeID=f"node-{self.random.randrange(self.nodes)}", action=action)
            self.scheduler.update_node(request)

    def _ask(self) -> None:
        count = self.random.choice((1, 1, 1, 2, 4))
        keys = [f"ask-{number}" for number in range(self.keys, self.keys + count)]
        self.keys += count
        application = self.random.choice(self.applications[-6:])
        request = ask_request(
            *keys, application=application, memory=self.random.choice((3, 5, 7, 10, 12, 20))
        )
        for ask in request.allocations:
            ask.priority = self.random.choice((0, 0, 0, 1, 2))
            ask.preemptionPolicy.allowPreemptOther = self.random.random() < 0.7
            ask.preemptionPolicy.allowPreemptSelf = True
        self.scheduler.update_allocation(request)

    def _add_node(self) -> None:
        size = self.random.choice((10, 20, 30))
        self.scheduler.update_node(node_request(f"node-{self.nodes}", memory=size))
        self.nodes += 1

    def _confirm(self) -> None:
        ending, self.manager.ending = self.manager.ending, []
        for released in ending:
            self.manager.running.pop(released.allocationKey, None)
        self._release(
            (released.applicationID, released.allocationKey, released.terminationType) for released in ending
        )
        self.scheduler.run_until_idle()

    def _release(self, rows: Iterable[tuple[str, str, si.TerminationType]]) -> None:
        request = si.AllocationRequest(rmID="rm")
        for application, key, termination in rows:
            request.releases.allocationsToRelease.add(
                applicationID=application, allocationKey=key, terminationType=termination
            )
        self.scheduler.update_allocation(request)


def told(seed: int) -> list[tuple[str, str]]:
    """Return what the resource manager is told in one story."""
    with Scheduler(engine="direct", stepped=True) as scheduler:
        return Story(seed, scheduler).tell()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_decided_otherwise_where_nothing_is_remembered(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is skipped would have been tried without result."""
    remembering = told(seed)
    forget_failures(monkeypatch)

    assert told(seed) == remembering


@pytest.mark.parametrize("seed", [2075, 2081, 2089, 2195])
def test_nor_where_no_node_is_reserved(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A placement may be the victim that an attempt did not find: no reservation wakes the ask then."""
    monkeypatch.setenv("DISABLE_RESERVATION", "true")
    remembering = told(seed)
    forget_failures(monkeypatch)

    assert told(seed) == remembering


def test_an_ask_preempts_what_was_placed_after_its_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second after the attempt, not fifteen: others may do so too since something has changed."""
    monkeypatch.setenv("DISABLE_RESERVATION", "true")
    manager = Listening()
    with Scheduler(engine="direct", stepped=True) as scheduler:
        scheduler.register("rm", manager, configuration=OWED)
        began_ns = scheduler.now_ns()
        scheduler.update_node(node_request("n1", memory=20))
        scheduler.update_node(node_request("n2", "n3", "n4", "n5", memory=9))
        scheduler.update_application(application_request("r", queue="root.rich"))
        scheduler.update_application(application_request("a1", "a2", queue="root.owed"))
        for time_ms, key, application, memory in (
            (0, "r1", "r", 10), (0, "r2", "r", 10), (0, "A1", "a1", 10), (100, "A2", "a2", 10),
            (5_500, "v1", "r", 9), (5_500, "v2", "r", 9), (7_000, "", "", 0),
        ):  # fmt: skip
            scheduler.advance_to(began_ns + time_ms * 1_000_000)
            scheduler.run_until_idle()
            if key:
                request = ask_request(key, application=application, memory=memory)
                request.allocations[0].preemptionPolicy.allowPreemptOther = application != "r"
                request.allocations[0].preemptionPolicy.allowPreemptSelf = True
                scheduler.update_allocation(request)
                scheduler.run_until_idle()

    assert ("r1", "preempting allocations to free up resources to run ask: A2") == manager.said[-1]


def test_the_stories_have_what_rests() -> None:
    """Most asks are placed, many preempt, and others wait."""
    rows = [row for seed in range(SEEDS) for row in told(seed)]
    preempted = [message for _, message in rows if message.startswith("preempting")]

    assert len(rows) > 20 * SEEDS
    assert len(preempted) > SEEDS

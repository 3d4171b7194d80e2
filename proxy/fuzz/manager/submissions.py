"""The submissions and reports of simulated managers: gangs, asks, tags for policies, nodes, foreign work.

Tags are drawn by separate dice, which depend on the names of applications and asks: so the other choices of a
seed are the same without them, and equal names have the same tags in a plan of fewer steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, final

from ....model.requests.submission_terms import (
    GANG_PLACING_TAG,
    GANG_SIZE_TAG,
    GANG_WAIT_TAG,
    TOPOLOGY_BALANCED_TAG,
    TOPOLOGY_PREFERRED_TAG,
    TOPOLOGY_REQUIRED_TAG,
    TOPOLOGY_SLICE_SIZE_TAG,
    TOPOLOGY_SLICE_TAG,
)
from ....model.values.allocation import WALLTIME_TAG
from ....model.values.dependencies import AFTER_TAGS, ARRAY_LIMIT_TAG, ARRAY_TAG
from ...si import si_pb2 as si
from ..configurations import GANGS, LEVELS, SPARE, node_size, task_size
from ..plans import one_of
from .cluster_record import ClusterRecord, KnownApplication, KnownNode, Size, Task

_WALLTIMES: Final = ("1ms", "20ms", "20ms", "1s", "1s", "10s", "10s", "1h", "1h", "2h", "soon")
"""The last one is invalid, and two hours exceed the limits of some queues."""
_WAITS: Final = ("20ms", "5s", "5s", "5s", "1m", "1m", "1m", "never")
_COMPLETE: Final = 0.6
"""How many gangs without placeholders have all their asks sent with the application."""
_OF_GANGS: Final = 0.3
"""How many applications use the leaf of entitled gangs, if it exists; as many use the leaf of their
victims."""
_FILLER: Final = {"memory": 15, "vcore": 150}
"""The request of tasks in the leaf of victims."""
_MEMBER: Final = {"memory": 10, "vcore": 100}
_STOPPED: Final = si.STOPPED_BY_RM
_NODES_MAX: Final = 12
_GROWING: Final = 0.7
"""How many of the resized nodes become larger."""
_ENDING: Final = 0.6
"""How many of others' tasks end, if they do not move."""


@final
class Submissions:
    """The submissions of one manager.

    Args:
        text: Decides the tags: many managers send none.
        new_name: Returns an unused name, for a kind of one letter.
    """

    def __init__(self, text: str, new_name: Callable[[str], str]) -> None:
        self._text = text
        self._new_name = new_name
        rng = self._dice("")
        self._walltimes = one_of(rng, (0.0, 0.0, 0.5))
        """How likely an application or an ask has a walltime."""
        self._gangs = one_of(rng, (0.0, 0.0, 0.5))
        """How likely an application states whether its gang is placed whole."""
        self._links = one_of(rng, (0.0, 0.0, 0.4))
        """How likely an application waits for another one, or for its turn in an array."""

    def queue(self, name: str, drawn: str, leaves: Sequence[str]) -> str:
        """Return the queue of a new application: the drawn one, or one for gangs and their victims."""
        place = self._dice(f"queue {name}").random() if GANGS in leaves else 1.0
        return GANGS if place < _OF_GANGS else SPARE if place < 2 * _OF_GANGS else drawn

    def begin(self, application: KnownApplication, rng: random.Random) -> list[Task]:
        """Perhaps make a new application a gang, and give it tags; return its first asks."""
        if rng.random() < 0.3:
            for group in ("tg1", "tg2")[: rng.randint(1, 2)]:
                application.gang[group] = (rng.randint(1, 3), task_size(rng))
            application.hard = rng.random() < 0.3
            application.timeout_ms = one_of(rng, (0, 2_000, 10_000))
        elif rng.random() < 0.1:
            application.timeout_ms = one_of(rng, (5_000, 20_000))
        if application.queue in (GANGS, SPARE) and not application.gang:
            is_gang, dice = application.queue == GANGS, self._dice(f"members {application.name}")
            count = dice.randint(2, 3) if is_gang else dice.randint(6, 14)
            application.tags |= {GANG_SIZE_TAG: str(count)} if is_gang else {}
            self._say_domains(application)
            count = int(application.tags.get(GANG_SIZE_TAG, count))
            return [self.task(application, dict(_MEMBER if is_gang else _FILLER)) for _ in range(count)]
        tasks = self._placeholders(application)
        walltime = self._walltime(application.name)
        if walltime:
            application.tags[WALLTIME_TAG] = walltime
        sizes = self._say_placing(application)
        self._say_domains(application)
        return tasks + [self.task(application, size) for size in sizes]

    def link(self, application: KnownApplication, others: Sequence[str]) -> None:
        """Perhaps have a new application wait for one of some others, or for its turn in an array."""
        rng, tags = self._dice(f"links {application.name}"), application.tags
        if others and rng.random() < self._links:
            tags[one_of(rng, sorted(AFTER_TAGS))] = one_of(rng, others)
        if rng.random() < self._links:
            tags |= {ARRAY_TAG: one_of(rng, "xy"), ARRAY_LIMIT_TAG: one_of(rng, ("0", "1", "2", "2", "3"))}

    def outcome(self, name: str) -> str:
        """Return how an application of this name ends, the empty text if its manager does not tell."""
        return one_of(self._dice(f"outcome {name}"), ("", "ok", "failed")) if self._links else ""

    def task(self, application: KnownApplication, size: Size, kind: str = "k") -> Task:
        """Return a new task of an application."""
        key = self._new_name(kind)
        return Task(key, application.name, application.partition, size, walltime=self._walltime(key))

    def lacking(self, application: KnownApplication, size: Size | None = None) -> list[Task]:
        """Return all missing members of a gang that is placed whole: some have ended, or were rejected.

        Args:
            application: Its application.
            size: The size of a member that waits.
        """
        count = int(application.tags.get(GANG_SIZE_TAG, "0"))
        tasks = [self.task(application, dict(size or _MEMBER)) for _ in range(count)]
        tasks += self._placeholders(application)
        for task in tasks:
            task.walltime = ""  # It may be a walltime that is refused.
        return tasks

    def _placeholders(self, application: KnownApplication) -> list[Task]:
        tasks = []
        for group, (count, size) in application.gang.items():
            for _ in range(count):
                task = self.task(application, size, "p")
                task.group, task.placeholder = group, True
                tasks.append(task)
        return tasks

    def _say_placing(self, application: KnownApplication) -> list[Size]:
        """Perhaps request that a gang is placed whole; return its members' sizes without placeholders."""
        tags = application.tags
        rng = self._dice(f"gang {application.name}")
        if rng.random() >= self._gangs:
            return []
        if rng.random() < 0.5:
            tags[GANG_WAIT_TAG] = one_of(rng, _WAITS)
        if application.gang:
            tags[GANG_PLACING_TAG] = one_of(rng, ("whole", "whole", "whole", "stepwise"))
            return []
        size = rng.randint(2, 5)
        tags[GANG_SIZE_TAG] = str(size)
        application.hard = rng.random() < 0.3
        sizes = [task_size(rng) for _ in range(rng.randint(1, 2))]
        return [one_of(rng, sizes) for _ in range(size)] if rng.random() < _COMPLETE else []

    def _say_domains(self, application: KnownApplication) -> None:
        """Perhaps request that a gang that is placed whole gets one domain of nodes."""
        tags, rng = application.tags, self._dice(f"domains {application.name}")
        if not (GANG_SIZE_TAG in tags or tags.get(GANG_PLACING_TAG) == "whole") or rng.random() < 0.5:
            return
        if rng.random() < 0.7:
            tags[TOPOLOGY_REQUIRED_TAG] = one_of(rng, LEVELS)
            if not application.hard:
                tags.pop(GANG_WAIT_TAG, None)
        if rng.random() < 0.5 or TOPOLOGY_REQUIRED_TAG not in tags:
            tags[TOPOLOGY_PREFERRED_TAG] = "rack"
        tags |= {TOPOLOGY_BALANCED_TAG: "true"} if rng.random() < 0.4 else {}
        if rng.random() < 0.5:
            self._say_slices(application)

    def _say_slices(self, application: KnownApplication) -> None:
        """Request that a gang of members of one size is placed in slices, as many racks as these may need."""
        tags = application.tags
        members = int(tags.get(GANG_SIZE_TAG, "0")) or sum(count for count, _ in application.gang.values())
        if members < 2 or len(application.gang) > 1:
            return
        if application.queue == GANGS and members == 2:
            members = 4
            tags[GANG_SIZE_TAG] = "4"
        tags |= {TOPOLOGY_SLICE_TAG: "rack", TOPOLOGY_SLICE_SIZE_TAG: str(2 if members % 2 == 0 else members)}
        if tags.get(TOPOLOGY_REQUIRED_TAG) == "rack":
            del tags[TOPOLOGY_REQUIRED_TAG]
        if not application.hard:
            tags.pop(GANG_WAIT_TAG, None)

    def _walltime(self, name: str) -> str:
        """Return the walltime of an application or an ask with this name, the empty text for none."""
        if not self._walltimes:
            return ""
        rng = self._dice(name)
        return one_of(rng, _WALLTIMES) if rng.random() < self._walltimes else ""

    def _dice(self, name: str) -> random.Random:
        return random.Random(f"tags {name} {self._text}")  # noqa: S311 - it plays, and keeps no secret


class NodeActions:
    """The actions of a manager by which its nodes arrive, change and leave."""

    record: ClusterRecord
    partitions: tuple[str, ...]

    def new_name(self, kind: str) -> str:
        """Return an unused name."""
        raise NotImplementedError

    def send(self, request: si.NodeRequest | si.AllocationRequest | si.ApplicationRequest) -> None:
        """Send a request."""
        raise NotImplementedError

    def send_releases(self, rows: list[tuple[str, str, str, int]]) -> None:
        """Report the ends of tasks, each by its application, key, partition and termination type."""
        raise NotImplementedError

    def add_node(self, rng: random.Random) -> None:
        """Report a new node."""
        if len(self.record.nodes) >= _NODES_MAX:
            return
        self.report_node(KnownNode(self.new_name("n"), one_of(rng, self.partitions), node_size(rng)))

    def add_many_nodes(self, rng: random.Random) -> None:
        """Report hundreds of new nodes in one message."""
        names = [self.new_name("n") for _ in range(rng.randint(100, 300))]
        nodes = [KnownNode(name, one_of(rng, self.partitions), node_size(rng)) for name in names]
        self.record.nodes |= {node.name: node for node in nodes}
        self.send(si.NodeRequest(nodes=[node.message(action_of(node)) for node in nodes]))

    def report_node(self, node: KnownNode) -> None:
        """Report this new node."""
        self.record.nodes[node.name] = node
        self.send(si.NodeRequest(nodes=[node.message(action_of(node))]))

    def change_node(self, rng: random.Random) -> None:
        """Drain a node, undo that, or make it grow or shrink."""
        if not self.record.nodes:
            return
        node = one_of(rng, [*self.record.nodes.values()])
        if rng.random() < 0.5:
            self.change_drained(node)
            return
        grows = rng.random() < _GROWING
        node.may_be_full = node.may_be_full or not grows
        by = {
            name: rng.randrange(20) if grows else -rng.randrange(value) for name, value in node.size.items()
        }
        self.grow_node(node, by)

    def grow_node(self, node: KnownNode, by: Size) -> None:
        """Make this node grow."""
        node.size = {name: value + by[name] for name, value in node.size.items()}
        self.send(si.NodeRequest(nodes=[node.message(si.NodeInfo.UPDATE)]))

    def change_drained(self, node: KnownNode) -> None:
        """Drain a node, or undo that."""
        node.drained = not node.drained
        action = si.NodeInfo.DRAIN_NODE if node.drained else si.NodeInfo.DRAIN_TO_SCHEDULABLE
        self.send(si.NodeRequest(nodes=[node.message(action)]))

    def remove_node(self, rng: random.Random) -> None:
        """Lose a node with all tasks on it."""
        if self.record.nodes:
            self.lose_node(one_of(rng, [*self.record.nodes]))

    def lose_node(self, name: str) -> None:
        """Lose this node."""
        node = self.record.lose_node(name)
        self.send(si.NodeRequest(nodes=[node.message(si.NodeInfo.DECOMISSION)]))

    def report_foreign(self, rng: random.Random) -> None:
        """Report a task of another scheduler on a node, its new size or node, or its end."""
        record = self.record
        if record.foreign and rng.random() < 0.5:
            key = one_of(rng, [*record.foreign])
            if rng.random() < _ENDING:
                self.end_foreign(key)
                return
            task = record.foreign[key]
            nodes = [node.name for node in record.nodes.values() if node.partition == task.partition]
            task.size, task.node = task_size(rng), one_of(rng, nodes)
            self.send(si.AllocationRequest(allocations=[task.message()]))
        elif record.nodes:
            node = one_of(rng, [*record.nodes.values()])
            task = Task(self.new_name("f"), "", node.partition, task_size(rng), node=node.name)
            task.preemptible = rng.random() < 0.5
            record.foreign[task.key] = task
            self.send(si.AllocationRequest(allocations=[task.message()]))

    def end_foreign(self, key: str) -> None:
        """Report the end of a task of another scheduler."""
        task = self.record.end_foreign(key)
        self.send_releases([("", key, task.partition, _STOPPED)])


def action_of(node: KnownNode) -> si.NodeInfo.ActionFromRM:
    """Return the action by which a node is reported."""
    return si.NodeInfo.CREATE_DRAIN if node.drained else si.NodeInfo.CREATE

"""What a simulated manager reports of its nodes, and of what other schedulers run there."""

from __future__ import annotations

import random
from typing import Final

from ...si import si_pb2 as si
from ..configurations import node_size, task_size
from ..plans import one_of
from .cluster_record import ClusterRecord, KnownNode, Size, Task

_STOPPED: Final = si.STOPPED_BY_RM
_NODES_MAX: Final = 12
_GROWING: Final = 0.7
"""How many nodes of another size are larger."""
_ENDING: Final = 0.6
"""How much of what others run ends, where it does not move."""


class NodeActions:
    """The actions of a manager by which its nodes come, change and go."""

    record: ClusterRecord
    partitions: tuple[str, ...]

    def new_name(self, kind: str) -> str:
        """Return a name that was not used before."""
        raise NotImplementedError

    def send(self, request: si.NodeRequest | si.AllocationRequest | si.ApplicationRequest) -> None:
        """Send a request."""
        raise NotImplementedError

    def send_releases(self, rows: list[tuple[str, str, str, int]]) -> None:
        """Say that tasks have ended, each by its application, key, partition and termination type."""
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
        """Drain a node, undo that, or let it grow or shrink."""
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
        """Let this node grow."""
        node.size = {name: value + by[name] for name, value in node.size.items()}
        self.send(si.NodeRequest(nodes=[node.message(si.NodeInfo.UPDATE)]))

    def change_drained(self, node: KnownNode) -> None:
        """Drain a node, or undo that."""
        node.drained = not node.drained
        action = si.NodeInfo.DRAIN_NODE if node.drained else si.NodeInfo.DRAIN_TO_SCHEDULABLE
        self.send(si.NodeRequest(nodes=[node.message(action)]))

    def remove_node(self, rng: random.Random) -> None:
        """Lose a node with all that runs there."""
        if self.record.nodes:
            self.lose_node(one_of(rng, [*self.record.nodes]))

    def lose_node(self, name: str) -> None:
        """Lose this node."""
        node = self.record.lose_node(name)
        self.send(si.NodeRequest(nodes=[node.message(si.NodeInfo.DECOMISSION)]))

    def report_foreign(self, rng: random.Random) -> None:
        """Report what another scheduler runs on a node, its other size and node, or its end."""
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
        """Report the end of what another scheduler ran."""
        task = self.record.end_foreign(key)
        self.send_releases([("", key, task.partition, _STOPPED)])


def action_of(node: KnownNode) -> si.NodeInfo.ActionFromRM:
    """Return the action by which a node is reported."""
    return si.NodeInfo.CREATE_DRAIN if node.drained else si.NodeInfo.CREATE

"""Bugs of class ORD: places that take the same locks in different orders.

An inversion is found twice: at R0 where the order is declared, and at R2 where it is only learned. What runs
takes one path after the other, so nothing ever deadlocks. Where actors ask each other and wait, the turn of
each is a lock: it is held while the actor asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

from support.lockcheck.lock_corpus import ORDER, Bug, Cluster, nest, nests

from licorne.lockcheck import Kind, Lock, Order, Rung, RWLock, key


@dataclass(frozen=True)
class Inversion:
    """Two paths through the same locks; the second one is against the declared order."""

    name: str
    right: str
    wrong: str
    kind: Kind = Kind.ORDER
    sources: tuple[str, ...] = ()

    def bugs(self) -> Iterator[Bug]:
        """Yield what has to be found by the wrong path alone, and by both without a declaration."""
        yield Bug(f"{self.name} (declared)", nests(self.wrong), self.kind, self.sources, order=ORDER)
        yield Bug(
            f"{self.name} (learned)",
            nests(f"scheduler: {self.right}", f"rm: {self.wrong}", "writer: child[W]"),
            Kind.CYCLE,
            self.sources,
            Rung.R2,
        )


INVERSIONS: Final = [
    Inversion("pending resources of a child are counted with its lock held", "parent[W] -> child[W]", "child[W] -> parent[W]", Kind.SAME_CLASS, sources=("19.6 ORD", "core#50")),
    Inversion("applications are sorted under the queue's lock", "root[R] -> application[R]", "application[W] -> root[W]", sources=("19.8 ORD",)),
    Inversion("a queue asks its application, which reports to the queue", "child[W] -> application[R]", "application[W] -> child[R]", sources=("19.43 ORD", "core#91")),
    Inversion("a removed application leaves its queue", "child[W] -> application[W]", "application[W] -> child[W]", sources=("19.8 ORD", "core#92")),
    Inversion("the queue is held while its applications are compared", "child[R] -> application[W]", "application[W] -> child[W]", sources=("19.8 ORD", "core#94")),
    Inversion("an application looks up its partition", "partition[W] -> application[W]", "application[W] -> partition[R]", sources=("core#228",)),
    Inversion("a node is removed with the partition held", "partition[W] -> application[W] -> node[W]", "application[W] -> partition[R]", sources=("core#253",)),
    Inversion("a terminated application is moved with the partition held", "partition[W] -> application[W] -> events[W]", "application[R] -> partition[W]", sources=("core#257",)),
    Inversion("an ask is removed with the partition held, while scheduling walks its nodes", "partition[W] -> application[W]", "application[W] -> nodes[R] -> partition[R]", sources=("19.14 ORD",)),
    Inversion("an allocation is taken back from partition to node, and reported back", "partition[W] -> node[W]", "node[W] -> partition[W]", sources=("19.16 ORD",)),
    Inversion("nodes are added with the partition held, while scheduling looks for it", "partition[W] -> node[W]", "application[W] -> node[R] -> partition[R]", sources=("19.17 ORD",)),
    Inversion("an application is taken off its queue under the partition", "partition[W] -> application[W] -> node[R]", "application[W] -> cluster[R] -> partition[R]", sources=("19.18 ORD",)),
    Inversion("a child asks its parent for its path", "parent[W] -> child[R]", "child[R] -> parent[R]", Kind.SAME_CLASS, sources=("19.19 ORD",)),
    Inversion("the parent is held while a child tells its priority", "parent[W] -> child[R]", "child[W] -> parent[R]", Kind.SAME_CLASS, sources=("19.43 ORD",)),
    Inversion("usage goes up the tree, a mark for removal goes down", "root[W] -> parent[W] -> child[W]", "child[W] -> parent[W] -> root[W]", Kind.SAME_CLASS, sources=("19.44 ORD", "core#839")),
    Inversion("rules of placement are updated under the partition, and ask for its queues", "partition[W] -> placement[W]", "placement[R] -> partition[R]", sources=("19.45 ORD", "core#840")),
    Inversion("the collection of nodes is locked inside the partition and around it", "partition[W] -> nodes[W]", "nodes[W] -> partition[R]", sources=("19.45 ORD",)),
    Inversion("an application cancels the reservation of another one", "application[W] -> other[W]", "other[W] -> application[W]", Kind.SAME_CLASS, sources=("19.55 ORD",)),
    Inversion("a victim is looked for in other applications, by two schedulers", "application[W] -> other[R]", "other[W] -> application[R]", Kind.SAME_CLASS),
    Inversion("a node tells its collection of a change with its own lock held", "nodes[W] -> node[W]", "node[W] -> nodes[W]"),
    Inversion("the cluster is asked for its partition from below", "cluster[W] -> partition[W]", "partition[R] -> cluster[R]"),
    Inversion("two nodes are taken in the order of the request", "node[W] -> node_2[W]", "node_2[W] -> node[W]", Kind.SAME_CLASS),
    Inversion("two sibling queues move an application to each other", "sibling[W] -> child[W]", "child[W] -> sibling[W]", Kind.SAME_CLASS),
    Inversion("events are noted under their own lock, which asks the application for its name", "application[W] -> events[W]", "events[W] -> application[R]"),
    Inversion("a child is made under its parent's lock, and asks the parent", "root[W] -> parent[W]", "parent[W] -> root[R]", Kind.SAME_CLASS, sources=("19.9 ORD",)),
]  # fmt: skip


def ring(name: str, length: int, _: Cluster) -> None:
    """Take locks in a ring, each pair by an execution of its own."""
    locks = [Lock(f"{name}-{number}") for number in range(length)]
    for number, (held, wanted) in enumerate(pairwise([*locks, locks[0]])):
        nest(f"unit-{number}", held, wanted)


def node_after_attempt(_: Cluster) -> None:
    """Hadoop's rule is node before application before attempt."""
    attempt, node = RWLock("attempt"), RWLock("node")
    nest("attempt", attempt.write(), node.read())


partition_written_over_an_application = nests(
    "reader: partition[R] -> application[W]", "writer: partition[W] -> application[R]"
)
"""The published rule: the partition is not held for writing while an application is touched."""


def missing_key(_: Cluster) -> None:
    """A rule by key cannot check a lock that has none."""
    nest("any", RWLock("node").write(), RWLock("node", key="n1").write())


unrelated_classes = nests("any: placement[R] -> nodes[R]")
"""A partial order says nothing about them, and nothing is not yes."""

read_write_read = nests("cluster[W] -> partition[R]", "partition[W] -> nodes[R]", "nodes[W] -> cluster[R]")
"""Every second acquisition around three locks is a read."""

read_write_read_write = nests("cluster[R] -> partition[W]", "partition[R] -> cluster[W]")
"""One side reads then writes, the other one too, the other way round."""

readers_and_writers_between_them = nests(
    "one: cluster[R] -> partition[R]",
    "two: partition[R] -> cluster[R]",
    "writer of one: cluster[W]",
    "writer of two: partition[W]",
)
"""Two readers in both orders, and one plain writer of each lock."""

one_writer_between_readers = nests(
    "one: cluster[R] -> partition[W]", "two: partition[R] -> cluster[R]", "writer: cluster[W]"
)
"""Three executions: reader then writer, reader then reader, and a writer that waits between."""

readers_of_a_gate = nests(
    "cluster[R] -> application[W] -> node[W]", "cluster[R] -> node[W] -> application[W]"
)
"""Two readers of the gate pass it together."""

CYCLES: Final = [
    *(
        Bug(f"a ring of {length} locks", partial(ring, "ring", length), Kind.CYCLE, ("rings",), Rung.R2, length)
        for length in range(3, 9)
    ),
    Bug("two modules import each other from two threads", partial(ring, "import", 2), Kind.CYCLE, ("cpython#83065",), Rung.R2, 2),
    Bug("two actors ask each other and wait", partial(ring, "turn", 2), Kind.CYCLE, ("pykka#76", "pi-intercom#41"), Rung.R2, 2),
    Bug("three actors ask each other in a ring", partial(ring, "turn", 3), Kind.CYCLE, ("orleans#5456",), Rung.R2, 3),
    Bug("read, write, read around three locks", read_write_read, Kind.CYCLE, ("RWR",), Rung.R2, 3),
    Bug("read, write, read, write around two locks", read_write_read_write, Kind.CYCLE, ("RWRW",), Rung.R2, 2),
    Bug("readers in both orders, with writers that wait between them", readers_and_writers_between_them, Kind.CYCLE, ("go-deadlock#47", "parking_lot#532"), Rung.R2, 4),
    Bug("one writer between two readers, where the other side writes", one_writer_between_readers, Kind.CYCLE, ("parking_lot#532",), Rung.R2, 3),
    Bug("a gate taken for reading by both guards nothing", readers_of_a_gate, Kind.CYCLE, (), Rung.R2, 2),
]  # fmt: skip

DECLARED: Final = [
    Bug("an attempt reaches for its node", node_after_attempt, Kind.ORDER, ("YARN-11127",), order=Order("node < application < attempt")),
    Bug("a forbidden mode of classes that the order allows", partition_written_over_an_application, Kind.ORDER, order=Order("partition < application", forbid=["partition[W] -> application"])),
    Bug("a missing key", missing_key, Kind.SAME_CLASS, ("key inversions",), order=Order("node", same={"node": key("name")})),
    Bug("classes that no chain connects", unrelated_classes, Kind.ORDER, order=ORDER),
]  # fmt: skip

ORDER_BUGS: Final = [*(bug for inversion in INVERSIONS for bug in inversion.bugs()), *CYCLES, *DECLARED]

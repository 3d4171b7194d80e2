"""Bugs of class ORD: places that take the same locks in different orders.

An inversion is found twice: at R0 where the order is declared, and at R2 where it is only learned. What runs
takes one path after the other, so nothing ever deadlocks. Where actors ask each other and wait, the turn of
each is a lock: it is held while the actor asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final, TypeAlias

from support.lockcheck.lock_corpus import ORDER, Bug, Cluster, Guard, nest

from licorne.lockcheck import Kind, Lock, Order, Rung, RWLock, key

Path: TypeAlias = "Callable[[Cluster], tuple[Guard, ...]]"


@dataclass(frozen=True)
class Inversion:
    """Two paths through the same locks; the second one is against the declared order."""

    name: str
    right: Path
    wrong: Path
    kind: Kind = Kind.ORDER
    sources: tuple[str, ...] = ()

    def bugs(self) -> Iterator[Bug]:
        """Yield what has to be found by the wrong path alone, and by both without a declaration."""
        yield Bug(f"{self.name} (declared)", self._wrong, self.kind, self.sources, order=ORDER)
        yield Bug(f"{self.name} (learned)", self._both, Kind.CYCLE, self.sources, Rung.R2)

    def _wrong(self, c: Cluster) -> None:
        nest("wrong", *self.wrong(c))

    def _both(self, c: Cluster) -> None:
        nest("scheduler", *self.right(c))
        nest("rm", *self.wrong(c))
        nest("writer", c.child.write())


INVERSIONS: Final = [
    Inversion(
        "pending resources of a child are counted with its lock held",
        lambda c: (c.parent.write(), c.child.write()),
        lambda c: (c.child.write(), c.parent.write()),
        Kind.SAME_CLASS,
        sources=("19.6 ORD", "core#50"),
    ),
    Inversion(
        "applications are sorted under the queue's lock",
        lambda c: (c.root.read(), c.application.read()),
        lambda c: (c.application.write(), c.root.write()),
        sources=("19.8 ORD",),
    ),
    Inversion(
        "a queue asks its application, which reports to the queue",
        lambda c: (c.child.write(), c.application.read()),
        lambda c: (c.application.write(), c.child.read()),
        sources=("19.43 ORD", "core#91"),
    ),
    Inversion(
        "a removed application leaves its queue",
        lambda c: (c.child.write(), c.application.write()),
        lambda c: (c.application.write(), c.child.write()),
        sources=("19.8 ORD", "core#92"),
    ),
    Inversion(
        "the queue is held while its applications are compared",
        lambda c: (c.child.read(), c.application.write()),
        lambda c: (c.application.write(), c.child.write()),
        sources=("19.8 ORD", "core#94"),
    ),
    Inversion(
        "an application looks up its partition",
        lambda c: (c.partition.write(), c.application.write()),
        lambda c: (c.application.write(), c.partition.read()),
        sources=("core#228",),
    ),
    Inversion(
        "a node is removed with the partition held",
        lambda c: (c.partition.write(), c.application.write(), c.node.write()),
        lambda c: (c.application.write(), c.partition.read()),
        sources=("core#253",),
    ),
    Inversion(
        "a terminated application is moved with the partition held",
        lambda c: (c.partition.write(), c.application.write(), c.events.write()),
        lambda c: (c.application.read(), c.partition.write()),
        sources=("core#257",),
    ),
    Inversion(
        "an ask is removed with the partition held, while scheduling walks its nodes",
        lambda c: (c.partition.write(), c.application.write()),
        lambda c: (c.application.write(), c.nodes.read(), c.partition.read()),
        sources=("19.14 ORD",),
    ),
    Inversion(
        "an allocation is taken back from partition to node, and reported back",
        lambda c: (c.partition.write(), c.node.write()),
        lambda c: (c.node.write(), c.partition.write()),
        sources=("19.16 ORD",),
    ),
    Inversion(
        "nodes are added with the partition held, while scheduling looks for it",
        lambda c: (c.partition.write(), c.node.write()),
        lambda c: (c.application.write(), c.node.read(), c.partition.read()),
        sources=("19.17 ORD",),
    ),
    Inversion(
        "an application is taken off its queue under the partition",
        lambda c: (c.partition.write(), c.application.write(), c.node.read()),
        lambda c: (c.application.write(), c.cluster.read(), c.partition.read()),
        sources=("19.18 ORD",),
    ),
    Inversion(
        "a child asks its parent for its path",
        lambda c: (c.parent.write(), c.child.read()),
        lambda c: (c.child.read(), c.parent.read()),
        Kind.SAME_CLASS,
        sources=("19.19 ORD",),
    ),
    Inversion(
        "the parent is held while a child tells its priority",
        lambda c: (c.parent.write(), c.child.read()),
        lambda c: (c.child.write(), c.parent.read()),
        Kind.SAME_CLASS,
        sources=("19.43 ORD",),
    ),
    Inversion(
        "usage goes up the tree, a mark for removal goes down",
        lambda c: (c.root.write(), c.parent.write(), c.child.write()),
        lambda c: (c.child.write(), c.parent.write(), c.root.write()),
        Kind.SAME_CLASS,
        sources=("19.44 ORD", "core#839"),
    ),
    Inversion(
        "rules of placement are updated under the partition, and ask for its queues",
        lambda c: (c.partition.write(), c.placement.write()),
        lambda c: (c.placement.read(), c.partition.read()),
        sources=("19.45 ORD", "core#840"),
    ),
    Inversion(
        "the collection of nodes is locked inside the partition and around it",
        lambda c: (c.partition.write(), c.nodes.write()),
        lambda c: (c.nodes.write(), c.partition.read()),
        sources=("19.45 ORD",),
    ),
    Inversion(
        "an application cancels the reservation of another one",
        lambda c: (c.application.write(), c.other.write()),
        lambda c: (c.other.write(), c.application.write()),
        Kind.SAME_CLASS,
        sources=("19.55 ORD",),
    ),
    Inversion(
        "a victim is looked for in other applications, by two schedulers",
        lambda c: (c.application.write(), c.other.read()),
        lambda c: (c.other.write(), c.application.read()),
        Kind.SAME_CLASS,
    ),
    Inversion(
        "a node tells its collection of a change with its own lock held",
        lambda c: (c.nodes.write(), c.node.write()),
        lambda c: (c.node.write(), c.nodes.write()),
    ),
    Inversion(
        "the cluster is asked for its partition from below",
        lambda c: (c.cluster.write(), c.partition.write()),
        lambda c: (c.partition.read(), c.cluster.read()),
    ),
    Inversion(
        "two nodes are taken in the order of the request",
        lambda c: (c.node.write(), c.node_2.write()),
        lambda c: (c.node_2.write(), c.node.write()),
        Kind.SAME_CLASS,
    ),
    Inversion(
        "two sibling queues move an application to each other",
        lambda c: (c.sibling.write(), c.child.write()),
        lambda c: (c.child.write(), c.sibling.write()),
        Kind.SAME_CLASS,
    ),
    Inversion(
        "events are noted under their own lock, which asks the application for its name",
        lambda c: (c.application.write(), c.events.write()),
        lambda c: (c.events.write(), c.application.read()),
    ),
    Inversion(
        "a child is made under its parent's lock, and asks the parent",
        lambda c: (c.root.write(), c.parent.write()),
        lambda c: (c.parent.write(), c.root.read()),
        Kind.SAME_CLASS,
        sources=("19.9 ORD",),
    ),
]


def ring(name: str, length: int, _: Cluster) -> None:
    """Take locks in a ring, each pair by an execution of its own."""
    locks = [Lock(f"{name}-{number}") for number in range(length)]
    for number, (held, wanted) in enumerate(pairwise([*locks, locks[0]])):
        nest(f"unit-{number}", held, wanted)


def node_after_attempt(_: Cluster) -> None:
    """Hadoop's rule is node before application before attempt."""
    attempt, node = RWLock("attempt"), RWLock("node")
    nest("attempt", attempt.write(), node.read())


def partition_written_over_an_application(c: Cluster) -> None:
    """The published rule: the partition is not held for writing while an application is touched."""
    nest("reader", c.partition.read(), c.application.write())
    nest("writer", c.partition.write(), c.application.read())


def missing_key(_: Cluster) -> None:
    """A rule by key cannot check a lock that has none."""
    nest("any", RWLock("node").write(), RWLock("node", key="n1").write())


def unrelated_classes(c: Cluster) -> None:
    """A partial order says nothing about them, and nothing is not yes."""
    nest("any", c.placement.read(), c.nodes.read())


def read_write_read(c: Cluster) -> None:
    """Every second acquisition around three locks is a read."""
    nest("one", c.cluster.write(), c.partition.read())
    nest("two", c.partition.write(), c.nodes.read())
    nest("three", c.nodes.write(), c.cluster.read())


def read_write_read_write(c: Cluster) -> None:
    """One side reads then writes, the other one too, the other way round."""
    nest("one", c.cluster.read(), c.partition.write())
    nest("two", c.partition.read(), c.cluster.write())


def readers_and_writers_between_them(c: Cluster) -> None:
    """Two readers in both orders, and one plain writer of each lock."""
    nest("one", c.cluster.read(), c.partition.read())
    nest("two", c.partition.read(), c.cluster.read())
    nest("writer of one", c.cluster.write())
    nest("writer of two", c.partition.write())


def one_writer_between_readers(c: Cluster) -> None:
    """Three executions: reader then writer, reader then reader, and a writer that waits between."""
    nest("one", c.cluster.read(), c.partition.write())
    nest("two", c.partition.read(), c.cluster.read())
    nest("writer", c.cluster.write())


def readers_of_a_gate(c: Cluster) -> None:
    """Two readers of the gate pass it together."""
    nest("one", c.cluster.read(), c.application.write(), c.node.write())
    nest("two", c.cluster.read(), c.node.write(), c.application.write())


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

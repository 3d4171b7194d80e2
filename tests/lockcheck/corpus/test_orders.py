"""Bugs of class ORD: two places that take the same locks in different orders.

Each is found twice: at R0 where the order is declared, and at R2 where it is only learned. The second run
takes one path after the other, so nothing ever deadlocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import pytest
from lock_corpus import ORDER, Cluster, look, nest

from licorne.lockcheck import Kind, Lock, Order, Rung, RWLock, key

if TYPE_CHECKING:
    from collections.abc import Callable

    from lock_corpus import Guard

Path: TypeAlias = "Callable[[Cluster], tuple[Guard, ...]]"


@dataclass(frozen=True)
class Inversion:
    """Two paths through the same locks; the second one is against the declared order."""

    name: str
    right: Path
    wrong: Path
    kind: Kind = Kind.ORDER


INVERSIONS = [
    Inversion(
        "yunikorn-core #50: pending resources of a child are counted with its lock held",
        lambda c: (c.parent.write(), c.child.write()),
        lambda c: (c.child.write(), c.parent.write()),
        Kind.SAME_CLASS,
    ),
    Inversion(
        "YUNIKORN-6: applications are sorted under the queue's lock",
        lambda c: (c.root.read(), c.application.read()),
        lambda c: (c.application.write(), c.root.write()),
    ),
    Inversion(
        "yunikorn-core #91: a queue asks its application, which reports to the queue",
        lambda c: (c.child.write(), c.application.read()),
        lambda c: (c.application.write(), c.child.read()),
    ),
    Inversion(
        "yunikorn-core #92: a removed application leaves its queue",
        lambda c: (c.child.write(), c.application.write()),
        lambda c: (c.application.write(), c.child.write()),
    ),
    Inversion(
        "yunikorn-core #94: the queue is held while its applications are compared",
        lambda c: (c.child.read(), c.application.write()),
        lambda c: (c.application.write(), c.child.write()),
    ),
    Inversion(
        "yunikorn-core #228: an application looks up its partition",
        lambda c: (c.partition.write(), c.application.write()),
        lambda c: (c.application.write(), c.partition.read()),
    ),
    Inversion(
        "yunikorn-core #253: a node is removed with the partition held",
        lambda c: (c.partition.write(), c.application.write(), c.node.write()),
        lambda c: (c.application.write(), c.partition.read()),
    ),
    Inversion(
        "yunikorn-core #257: a terminated application is moved with the partition held",
        lambda c: (c.partition.write(), c.application.write(), c.events.write()),
        lambda c: (c.application.read(), c.partition.write()),
    ),
    Inversion(
        "YUNIKORN-481: an ask is removed with the partition held, while scheduling walks its nodes",
        lambda c: (c.partition.write(), c.application.write()),
        lambda c: (c.application.write(), c.nodes.read(), c.partition.read()),
    ),
    Inversion(
        "YUNIKORN-461: an allocation is taken back from partition to node, and reported back",
        lambda c: (c.partition.write(), c.node.write()),
        lambda c: (c.node.write(), c.partition.write()),
    ),
    Inversion(
        "YUNIKORN-551: nodes are added with the partition held, while scheduling looks for it",
        lambda c: (c.partition.write(), c.node.write()),
        lambda c: (c.application.write(), c.node.read(), c.partition.read()),
    ),
    Inversion(
        "YUNIKORN-572: an application is taken off its queue under the partition",
        lambda c: (c.partition.write(), c.application.write(), c.node.read()),
        lambda c: (c.application.write(), c.cluster.read(), c.partition.read()),
    ),
    Inversion(
        "YUNIKORN-793: a child asks its parent for its path",
        lambda c: (c.parent.write(), c.child.read()),
        lambda c: (c.child.read(), c.parent.read()),
        Kind.SAME_CLASS,
    ),
    Inversion(
        "YUNIKORN-2545: the parent is held while a child tells its priority",
        lambda c: (c.parent.write(), c.child.read()),
        lambda c: (c.child.write(), c.parent.read()),
        Kind.SAME_CLASS,
    ),
    Inversion(
        "YUNIKORN-2548 (#839): usage goes up the tree, a mark for removal goes down",
        lambda c: (c.root.write(), c.parent.write(), c.child.write()),
        lambda c: (c.child.write(), c.parent.write(), c.root.write()),
        Kind.SAME_CLASS,
    ),
    Inversion(
        "YUNIKORN-2550 (#840): rules of placement are updated under the partition, and ask for its queues",
        lambda c: (c.partition.write(), c.placement.write()),
        lambda c: (c.placement.read(), c.partition.read()),
    ),
    Inversion(
        "YUNIKORN-2550: the collection of nodes is locked inside the partition and around it",
        lambda c: (c.partition.write(), c.nodes.write()),
        lambda c: (c.nodes.write(), c.partition.read()),
    ),
    Inversion(
        "YUNIKORN-3092: an application cancels the reservation of another one",
        lambda c: (c.application.write(), c.other.write()),
        lambda c: (c.other.write(), c.application.write()),
        Kind.SAME_CLASS,
    ),
    Inversion(
        "YUNIKORN-2646: a victim is looked for in other applications",
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
]


@pytest.mark.parametrize("case", INVERSIONS, ids=lambda case: case.name)
def test_an_inversion_is_found_at_r0_by_its_one_wrong_path(case: Inversion) -> None:
    """The declaration alone tells: nobody needs to have taken the right path."""
    _, findings = look(lambda c: nest("wrong", *case.wrong(c)), ORDER)

    assert (Rung.R0, case.kind) in {(finding.rung, finding.kind) for finding in findings}


@pytest.mark.parametrize("case", INVERSIONS, ids=lambda case: case.name)
def test_an_inversion_is_found_at_r2_without_any_declaration(case: Inversion) -> None:
    """Both paths are taken one after the other, each by a unit of its own."""

    def run(c: Cluster) -> None:
        nest("scheduler", *case.right(c))
        nest("rm", *case.wrong(c))
        nest("writer", c.child.write())

    _, findings = look(run, None)

    found = [finding for finding in findings if (finding.rung, finding.kind) == (Rung.R2, Kind.CYCLE)]
    assert found, [str(finding) for finding in findings]
    assert all(edge.want_stack for edge in found[0].edges)


@pytest.mark.parametrize("length", range(3, 9))
def test_a_ring_of_many_locks_is_found_at_r2(length: int) -> None:
    """go-deadlock compares pairs and sees none of these."""

    def run(_: Cluster) -> None:
        locks = [Lock(f"ring-{number}") for number in range(length)]
        for number, (held, wanted) in enumerate(pairwise([*locks, locks[0]])):
            nest(f"unit-{number}", held, wanted)

    _, (*_, finding) = look(run, None)

    assert (Rung.R2, length) == (finding.rung, len(finding.edges))


def test_yarn_11127_node_application_attempt_is_found_at_r0() -> None:
    """Hadoop's rule: node before application before attempt."""
    order = Order("node < application < attempt")

    def run(_: Cluster) -> None:
        attempt, node = RWLock("attempt"), RWLock("node")
        nest("attempt", attempt.write(), node.read())

    _, (finding,) = look(run, order)

    assert (Rung.R0, "node < application < attempt") == (finding.rung, finding.clause)


def test_a_forbidden_mode_is_found_at_r0_although_the_order_allows_the_classes() -> None:
    """The published rule: the partition is not held for writing while an application is touched."""
    order = Order("partition < application", forbid=["partition[W] -> application"])

    def run(c: Cluster) -> None:
        nest("reader", c.partition.read(), c.application.write())
        nest("writer", c.partition.write(), c.application.read())

    _, (finding,) = look(run, order)

    assert (Rung.R0, "partition[W] -> application") == (finding.rung, finding.clause)


def test_a_missing_key_is_found_at_r0() -> None:
    """A rule by key cannot judge a lock that has none."""

    def run(_: Cluster) -> None:
        nest("any", RWLock("node").write(), RWLock("node", key="n1").write())

    _, (finding,) = look(run, Order("node", same={"node": key("name")}))

    assert (Rung.R0, Kind.SAME_CLASS) == (finding.rung, finding.kind)


def test_classes_that_no_chain_connects_must_not_nest() -> None:
    """A partial order says nothing about them, and nothing is not yes."""

    def run(c: Cluster) -> None:
        nest("any", c.placement.read(), c.nodes.read())

    _, (finding,) = look(run, ORDER)

    assert (Rung.R0, Kind.ORDER) == (finding.rung, finding.kind)


# ---------------------------------------------------------------------------- where two readers meet


def test_read_write_read_around_three_locks_is_found() -> None:
    """Lockdep's case: every second acquisition is a read."""

    def run(c: Cluster) -> None:
        nest("one", c.cluster.write(), c.partition.read())
        nest("two", c.partition.write(), c.nodes.read())
        nest("three", c.nodes.write(), c.cluster.read())

    _, (*_, finding) = look(run, None)

    assert (Rung.R2, 3) == (finding.rung, len(finding.edges))


def test_read_write_read_write_around_two_locks_is_found() -> None:
    """One side reads then writes, the other one too, the other way round."""

    def run(c: Cluster) -> None:
        nest("one", c.cluster.read(), c.partition.write())
        nest("two", c.partition.read(), c.cluster.write())

    _, (*_, finding) = look(run, None)

    assert finding.rung is Rung.R2


def test_readers_only_deadlock_through_writers_that_wait_between_them() -> None:
    """go-deadlock #47, parking_lot PR 532: two readers in both orders, and one plain writer of each lock."""

    def run(c: Cluster) -> None:
        nest("one", c.cluster.read(), c.partition.read())
        nest("two", c.partition.read(), c.cluster.read())
        nest("writer of one", c.cluster.write())
        nest("writer of two", c.partition.write())

    _, (*_, finding) = look(run, None)

    assert (Rung.R2, 4) == (finding.rung, len(finding.edges))


def test_one_writer_between_two_readers_is_enough_where_the_other_side_writes() -> None:
    """Three units: reader then writer, reader then reader, and a writer that waits between."""

    def run(c: Cluster) -> None:
        nest("one", c.cluster.read(), c.partition.write())
        nest("two", c.partition.read(), c.cluster.read())
        nest("writer", c.cluster.write())

    _, (*_, finding) = look(run, None)

    assert (Rung.R2, 3) == (finding.rung, len(finding.edges))


def test_a_gate_taken_for_reading_by_both_guards_nothing() -> None:
    """Two readers of the gate pass it together."""

    def run(c: Cluster) -> None:
        nest("one", c.cluster.read(), c.application.write(), c.node.write())
        nest("two", c.cluster.read(), c.node.write(), c.application.write())

    _, (*_, finding) = look(run, None)

    assert finding.rung is Rung.R2

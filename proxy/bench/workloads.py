"""What a workload of the bench is: a frozen description of a cluster and of its asks.

`licorne.proxy.bench.workload_table` has all of them; `licorne.proxy.bench.requests` turns a description into
`si.v1` messages.

Three things that the table leaves open are decided here. Existing allocations belong to the applications of
the workload in turn, so that they add no queue and no application of their own. The sizes of a workload with
five of them cycle along the asks of each application. The second wave of `f_*` comes from the applications of
the first: another 100 asks each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import cycle
from typing import Final

USER: Final = "bench"
PARTITION: Final = "default"


@dataclass(frozen=True, slots=True)
class Size:
    """An amount of the two resource types that every workload uses."""

    memory: int
    vcore_milli: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchQueue:
    """A queue of the configuration; without children it is a leaf."""

    name: str
    guaranteed: Size | None = None
    maximum: Size | None = None
    application_sort_policy: str | None = None
    preemption_delay: str | None = None
    children: tuple[BenchQueue, ...] = ()


class NodeFill(Enum):
    """What the nodes hold before the first ask is sent."""

    EMPTY = "empty"
    # Node i is free if i % 20 is 19, else full: by one foreign allocation if i is even, by six others if odd.
    NEARLY_FULL_CLUSTER = "nearly full cluster"
    FULL = "full"
    # What is left of each node is smaller than any ask.
    FRAGMENTED = "fragmented"


class Course(Enum):
    """The course of a workload after its nodes and applications are there."""

    PLACE = "place every ask"
    # A second wave of asks waits while the first is released; the RM waits for each new allocation, or not.
    CHURN_LOCKED = "release one, wait for its successor"
    CHURN_PIPED = "release one after the other"
    WAIT = "let asks wait that cannot fit, then free a node"
    # A second wave is sent, ask by ask, at half of the pace at which the first was placed.
    HALF_LOAD = "place every ask, then send one after the other at half of that pace"
    # The first wave are the placeholders of a gang for each application, the second its members.
    GANGS = "place placeholders, then replace them"
    # The first half of the applications fills the cluster, what the second half asks for takes its place.
    PREEMPT = "fill the cluster, then preempt all of it"
    # Each application has one ask; then a large one in each leaf has as many as all of the leaf together had.
    PODS = "place and end applications of one ask, then as many asks of large applications"


@dataclass(frozen=True, slots=True)
class BenchApplication:
    """An application and the leaf it is submitted to."""

    application_id: str
    queue_path: str
    partition: str = PARTITION
    user: str = USER


@dataclass(frozen=True, slots=True)
class Placement:
    """An allocation that is on its node before the first ask; foreign if it has no application."""

    allocation_key: str
    application_id: str | None
    node_number: int
    size: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchWorkload:
    """One cluster and its asks."""

    name: str
    node_count: int
    node_size: Size
    queues: tuple[BenchQueue, ...]
    applications_per_leaf: int
    asks_per_wave: int
    ask_sizes: tuple[Size, ...]
    node_sort_policy: str | None = None
    node_fill: NodeFill = NodeFill.EMPTY
    course: Course = Course.PLACE
    waiting_count: int = 0
    """Further applications, of one ask each, that no node has room for; the leaves get them in turn.
    They are the first that are submitted."""
    waiting_sizes: tuple[Size, ...] = ()
    """The sizes of their asks, in turn."""
    waiting_preempt: bool = False
    """Whether their asks may preempt."""
    further_types: int = 0
    """Resource types beside memory and vcore: an ask wants one of each, a node has enough for all asks."""
    limited_users: int = 0
    """Users whom the root limits, each to more than they ask for; the applications are theirs in turn."""
    partition_count: int = 1
    """Partitions, each with all the queues and applications; the nodes are theirs in turn."""
    predicate_seconds: float | None = None
    """How long the resource manager thinks before it accepts a node; `None` if it is not asked."""

    def waiting_applications(self) -> tuple[BenchApplication, ...]:
        """Return the applications that wait while the others are placed."""
        paths = self.leaf_paths()
        return tuple(
            BenchApplication(f"first-{number:05d}", paths[number % len(paths)])
            for number in range(self.waiting_count)
        )

    def applications(self) -> tuple[BenchApplication, ...]:
        """Return the applications, leaf by leaf, and of several partitions one after the other."""
        owners = (
            (partition, path, number)
            for partition in self.partitions()
            for path in self.leaf_paths()
            for number in range(self.applications_per_leaf)
        )
        return tuple(
            BenchApplication(self._prefix(partition) + f"{path}-{number:03d}", path, partition, user)
            for (partition, path, number), user in zip(owners, cycle(self.users()), strict=False)
        )

    def partitions(self) -> tuple[str, ...]:
        """Return the names of the partitions."""
        if self.partition_count == 1:
            return (PARTITION,)
        return tuple(f"part-{number:02d}" for number in range(self.partition_count))

    def users(self) -> tuple[str, ...]:
        """Return the names of all users."""
        if not self.limited_users:
            return (USER,)
        return tuple(f"user-{number:04d}" for number in range(self.limited_users))

    def _prefix(self, partition: str) -> str:
        return "" if self.partition_count == 1 else f"{partition}-"

    def leaf_paths(self) -> tuple[str, ...]:
        """Return the full paths of the leaves in the order of the configuration."""
        return tuple(path for queue in self.queues for path in _leaf_paths(queue, "root"))

    def placements(self) -> Iterator[Placement]:
        """Give what the nodes hold before the first ask, node by node."""
        applications = self.applications()
        turn = 0
        for number in range(self.node_count):
            for piece, (size, foreign) in enumerate(_pieces(self.node_fill, number, self.node_size)):
                owner = None if foreign else applications[turn % len(applications)].application_id
                turn += not foreign
                yield Placement(f"placed-{number:05d}-{piece}", owner, number, size)

    def with_large_applications(self) -> BenchWorkload:
        """Return the same with one application a leaf, which has all asks of the leaf."""
        count = self.applications_per_leaf * self.asks_per_wave
        return replace(self, applications_per_leaf=1, asks_per_wave=count)

    @property
    def confirms(self) -> bool:
        """Whether the scheduler ends allocations, which the resource manager has to confirm."""
        return self.course in {Course.GANGS, Course.PREEMPT}

    @property
    def application_count(self) -> int:
        """The number of applications."""
        return self.partition_count * len(self.leaf_paths()) * self.applications_per_leaf

    @property
    def wave_count(self) -> int:
        """How often each application sends its asks."""
        return 1 if self.course in {Course.PLACE, Course.WAIT, Course.PREEMPT, Course.PODS} else 2

    @property
    def ask_count(self) -> int:
        """The number of asks in all waves."""
        return self.application_count * self.asks_per_wave * self.wave_count


def _leaf_paths(queue: BenchQueue, parent_path: str) -> Iterator[str]:
    path = f"{parent_path}.{queue.name}"
    if not queue.children:
        yield path
    for child in queue.children:
        yield from _leaf_paths(child, path)


def _pieces(fill: NodeFill, number: int, node_size: Size) -> tuple[tuple[Size, bool], ...]:
    """Return the sizes on one node, each with whether it is foreign."""
    if fill is NodeFill.FULL:
        return ((node_size, False),)
    if fill is NodeFill.FRAGMENTED:
        return ((Size(95, 9), False),)
    if fill is NodeFill.NEARLY_FULL_CLUSTER and number % 20 != 19:
        return ((node_size, True),) if number % 2 == 0 else ((Size(100, 10), False),) * 6
    return ()

"""The workloads of the bench: frozen descriptions of a cluster and of its asks.

`workload_requests.py` turns a description into `si.v1` messages. Most are rows of the table that the recorded
core was measured with. A name must never change its meaning: figures of different days and machines are
compared by it.

Three things that the table leaves open are decided here. Existing allocations belong to the applications of
the workload in turn, so that they add no queue and no application of their own. The sizes of a workload with
five of them cycle along the asks of each application. The second wave of `f_*` comes from the applications of
the first: another 100 asks each.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import cycle
from typing import Final

from figures import BenchError

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


_UNIT: Final = Size(10, 1)
_FIVE_SIZES: Final = (Size(10, 1), Size(20, 2), Size(30, 3), Size(40, 4), Size(50, 5))
_MORE_THAN_ALL: Final = Size(1_000_000, 1_000_000)
_TWO_QUEUES: Final = (
    BenchQueue(name="a", guaranteed=Size(100_000, 10_000_000)),
    BenchQueue(name="b", guaranteed=Size(1_000_000, 10_000_000)),
)
_TEN_PARENTS: Final = tuple(
    BenchQueue(
        name=f"p{parent}",
        guaranteed=Size(15_000, 1_500),
        maximum=Size(35_000, 3_500),
        children=tuple(
            BenchQueue(name=f"q{leaf}", guaranteed=Size(1_500, 150), maximum=Size(3_500, 350))
            for leaf in range(10)
        ),
    )
    for parent in range(10)
)


def _leaves(count: int, application_sort_policy: str | None = None) -> tuple[BenchQueue, ...]:
    return tuple(
        BenchQueue(name=f"q{number:02d}", application_sort_policy=application_sort_policy)
        for number in range(count)
    )


def _deep_leaf(name: str, depth: int) -> BenchQueue:
    """Return the topmost of so many queues, each the only child of the one above, and each with a quota."""
    queue = BenchQueue(name="leaf", maximum=_MORE_THAN_ALL)
    for level in range(depth - 2, 0, -1):
        queue = BenchQueue(name=f"level{level}", maximum=_MORE_THAN_ALL, children=(queue,))
    return BenchQueue(name=name, maximum=_MORE_THAN_ALL, children=(queue,))


def _two_applications(name: str, node_count: int, node_size: Size, ask_count: int) -> BenchWorkload:
    return BenchWorkload(
        name=name,
        node_count=node_count,
        node_size=node_size,
        queues=_TWO_QUEUES,
        applications_per_leaf=1,
        asks_per_wave=ask_count,
        ask_sizes=(_UNIT,),
    )


def _just_enough_room(node_count: int) -> BenchWorkload:
    units = 10_000 // node_count + 1
    return _two_applications(f"u{node_count}", node_count, Size(10 * units, units), 5_000)


def _many_applications(
    name: str,
    queues: tuple[BenchQueue, ...],
    *,
    applications_per_leaf: int,
    node_count: int = 1_000,
    ask_count: int = 10,
) -> BenchWorkload:
    return BenchWorkload(
        name=name,
        node_count=node_count,
        node_size=Size(400, 40),
        queues=queues,
        applications_per_leaf=applications_per_leaf,
        asks_per_wave=ask_count,
        ask_sizes=_FIVE_SIZES,
    )


def _nearly_full(name: str, node_sort_policy: str) -> BenchWorkload:
    return BenchWorkload(
        name=name,
        node_count=2_000,
        node_size=Size(600, 60),
        queues=_leaves(10),
        applications_per_leaf=5,
        asks_per_wave=100,
        ask_sizes=(_UNIT,),
        node_sort_policy=node_sort_policy,
        node_fill=NodeFill.NEARLY_FULL_CLUSTER,
    )


def _thousand_nodes(
    name: str, course: Course, *, applications_per_leaf: int, node_fill: NodeFill = NodeFill.EMPTY
) -> BenchWorkload:
    return BenchWorkload(
        name=name,
        node_count=1_000,
        node_size=Size(100, 10),
        queues=_leaves(10),
        applications_per_leaf=applications_per_leaf,
        asks_per_wave=100,
        ask_sizes=(_UNIT,),
        node_fill=node_fill,
        course=course,
    )


def _beside_waiting(name: str, waiting_count: int, *, guaranteed: bool) -> BenchWorkload:
    return BenchWorkload(
        name=f"{name}_{waiting_count}",
        node_count=1_000,
        node_size=Size(100, 10),
        queues=tuple(
            BenchQueue(
                name=f"q{number:02d}",
                guaranteed=Size(50_000, 5_000) if guaranteed else None,
                preemption_delay="1s" if guaranteed else None,
            )
            for number in range(10)
        ),
        applications_per_leaf=10,
        asks_per_wave=100,
        ask_sizes=(_UNIT,),
        waiting_count=waiting_count,
        waiting_sizes=(Size(110, 11), Size(120, 12), Size(130, 13)),
        waiting_preempt=guaranteed,
    )


_A_FIFO: Final = _many_applications("a_fifo", _leaves(10), applications_per_leaf=100)
_DEEP: Final = tuple(_deep_leaf(f"q{number:02d}", 8) for number in range(10))
_FEW_APPLICATIONS: Final = BenchWorkload(
    name="l_half",
    node_count=1_000,
    node_size=Size(400, 40),
    queues=_leaves(10),
    applications_per_leaf=10,
    asks_per_wave=100,
    ask_sizes=(_UNIT,),
    course=Course.HALF_LOAD,
)
_FEW_PLACED: Final = replace(_FEW_APPLICATIONS, course=Course.PLACE, asks_per_wave=20)

WORKLOADS: Final[tuple[BenchWorkload, ...]] = (
    _just_enough_room(500),
    _just_enough_room(1_000),
    _just_enough_room(2_000),
    _just_enough_room(5_000),
    _many_applications("a", _leaves(10, "fair"), applications_per_leaf=100),
    _A_FIFO,
    _many_applications("b", _TEN_PARENTS, applications_per_leaf=10),
    _two_applications("c", 5_000, Size(110, 11), 25_000),
    _many_applications("d", _leaves(100), applications_per_leaf=10, node_count=10_000, ask_count=100),
    _nearly_full("e_fair", "fair"),
    _nearly_full("e_bin", "binpacking"),
    _thousand_nodes("f_lock", Course.CHURN_LOCKED, applications_per_leaf=10),
    _thousand_nodes("f_pipe", Course.CHURN_PIPED, applications_per_leaf=10),
    _thousand_nodes("g_full", Course.WAIT, applications_per_leaf=5, node_fill=NodeFill.FULL),
    _thousand_nodes("g_frag", Course.WAIT, applications_per_leaf=5, node_fill=NodeFill.FRAGMENTED),
    *(_beside_waiting("h_backlog", count, guaranteed=False) for count in (1_000, 5_000, 20_000)),
    *(_beside_waiting("h_owed", count, guaranteed=True) for count in (1_000, 5_000, 20_000)),
    # As `a_fifo` but for one thing: 12 resource types, queues 8 deep below the root, 1,000 limited users.
    replace(_A_FIFO, name="a_types", further_types=10),
    replace(_A_FIFO, name="a_deep", queues=_DEEP),
    replace(_A_FIFO, name="a_users", limited_users=1_000),
    # On Kubernetes most applications are one pod: 10,000 of one ask come and go.
    replace(
        _A_FIFO,
        name="k_pods",
        applications_per_leaf=1_000,
        asks_per_wave=1,
        ask_sizes=(_UNIT,),
        course=Course.PODS,
    ),
    # Few applications: the latency of an ask, a resource manager that thinks, and many partitions at once.
    _FEW_APPLICATIONS,
    replace(_FEW_PLACED, name="p_predicates", predicate_seconds=0.001),
    replace(_FEW_PLACED, name="p_parts", applications_per_leaf=1, partition_count=50),
    # Ten gangs of 1,000 members; 1,000 preemptions, all wanted at once.
    replace(_FEW_APPLICATIONS, name="q_gangs", course=Course.GANGS, queues=_leaves(1), asks_per_wave=1_000),
    replace(
        _FEW_APPLICATIONS,
        name="q_storm",
        course=Course.PREEMPT,
        node_size=_UNIT,
        queues=(
            BenchQueue(name="low"),
            BenchQueue(name="owed", guaranteed=Size(10_000, 1_000), preemption_delay="1ms"),
        ),
    ),
)

# What `make bench` runs: every kind of sorting, and the long applications.
DEFAULT_NAMES: Final = ("u500", "u1000", "u5000", "a", "a_fifo", "b", "c")


def workload_named(name: str) -> BenchWorkload:
    """Return the workload of that name.

    Raises:
        BenchError: there is none; the message names the nearest ones.
    """
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    known = [workload.name for workload in WORKLOADS]
    nearest = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(nearest)}?" if nearest else f"there are {', '.join(known)}"
    raise BenchError(f"unknown workload {name!r}: {hint}")

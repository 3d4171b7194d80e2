"""The table of all workloads of the bench.

Most are rows of the table that the recorded core was measured with. A name must never change its meaning:
figures of different days and machines are compared by it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .errors import UnknownWorkloadError
from .workloads import BenchQueue, BenchWorkload, Course, NodeFill, Size

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

# What `licorne bench` runs without names: every kind of sorting, and the long applications.
DEFAULT_NAMES: Final = ("u500", "u1000", "u5000", "a", "a_fifo", "b", "c")


def workload_named(name: str) -> BenchWorkload:
    """Return the workload of that name.

    Raises:
        UnknownWorkloadError: there is none; the message names the nearest ones.
    """
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    raise UnknownWorkloadError(name, [workload.name for workload in WORKLOADS])

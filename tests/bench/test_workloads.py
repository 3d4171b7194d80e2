from __future__ import annotations

from collections import Counter

import pytest
from figures import BenchError
from workloads import (
    DEFAULT_NAMES,
    WORKLOADS,
    BenchQueue,
    BenchWorkload,
    Course,
    NodeFill,
    Size,
    workload_named,
)

ONE_SIZE = (Size(10, 1),)
FIVE_SIZES = (Size(10, 1), Size(20, 2), Size(30, 3), Size(40, 4), Size(50, 5))

# name: nodes, one node, leaves, applications, asks, sizes
TABLE = {
    "u500": (500, Size(210, 21), 2, 2, 10_000, ONE_SIZE),
    "u1000": (1_000, Size(110, 11), 2, 2, 10_000, ONE_SIZE),
    "u2000": (2_000, Size(60, 6), 2, 2, 10_000, ONE_SIZE),
    "u5000": (5_000, Size(30, 3), 2, 2, 10_000, ONE_SIZE),
    "a": (1_000, Size(400, 40), 10, 1_000, 10_000, FIVE_SIZES),
    "a_fifo": (1_000, Size(400, 40), 10, 1_000, 10_000, FIVE_SIZES),
    "b": (1_000, Size(400, 40), 100, 1_000, 10_000, FIVE_SIZES),
    "c": (5_000, Size(110, 11), 2, 2, 50_000, ONE_SIZE),
    "d": (10_000, Size(400, 40), 100, 1_000, 100_000, FIVE_SIZES),
    "e_fair": (2_000, Size(600, 60), 10, 50, 5_000, ONE_SIZE),
    "e_bin": (2_000, Size(600, 60), 10, 50, 5_000, ONE_SIZE),
    "f_lock": (1_000, Size(100, 10), 10, 100, 20_000, ONE_SIZE),
    "f_pipe": (1_000, Size(100, 10), 10, 100, 20_000, ONE_SIZE),
    "g_full": (1_000, Size(100, 10), 10, 50, 5_000, ONE_SIZE),
    "g_frag": (1_000, Size(100, 10), 10, 50, 5_000, ONE_SIZE),
    "h_backlog_1000": (1_000, Size(100, 10), 10, 100, 10_000, ONE_SIZE),
    "h_backlog_5000": (1_000, Size(100, 10), 10, 100, 10_000, ONE_SIZE),
    "h_backlog_20000": (1_000, Size(100, 10), 10, 100, 10_000, ONE_SIZE),
    "h_owed_1000": (1_000, Size(100, 10), 10, 100, 10_000, ONE_SIZE),
    "h_owed_5000": (1_000, Size(100, 10), 10, 100, 10_000, ONE_SIZE),
    "h_owed_20000": (1_000, Size(100, 10), 10, 100, 10_000, ONE_SIZE),
    "a_types": (1_000, Size(400, 40), 10, 1_000, 10_000, FIVE_SIZES),
    "a_deep": (1_000, Size(400, 40), 10, 1_000, 10_000, FIVE_SIZES),
    "a_users": (1_000, Size(400, 40), 10, 1_000, 10_000, FIVE_SIZES),
    "k_pods": (1_000, Size(400, 40), 10, 10_000, 10_000, ONE_SIZE),
    "l_half": (1_000, Size(400, 40), 10, 100, 20_000, ONE_SIZE),
    "p_predicates": (1_000, Size(400, 40), 10, 100, 2_000, ONE_SIZE),
    "p_parts": (1_000, Size(400, 40), 10, 500, 10_000, ONE_SIZE),
    "q_gangs": (1_000, Size(400, 40), 1, 10, 20_000, ONE_SIZE),
    "q_storm": (1_000, Size(10, 1), 2, 20, 2_000, ONE_SIZE),
}


def asked_memory(workload: BenchWorkload) -> int:
    """Return the memory that all asks of one wave want."""
    sizes = [
        workload.ask_sizes[number % len(workload.ask_sizes)].memory
        for number in range(workload.asks_per_wave)
    ]
    return sum(sizes) * workload.application_count


def test_the_bench_has_the_workloads_of_the_table_in_its_order() -> None:
    """No row is missing, none is there twice."""
    names = [workload.name for workload in WORKLOADS]

    assert list(TABLE) == names


@pytest.mark.parametrize("name", TABLE)
def test_a_workload_has_the_counts_and_sizes_of_the_table(name: str) -> None:
    """Nodes, leaves, applications, asks and all sizes are those of the row."""
    workload = workload_named(name)

    shape = (
        workload.node_count,
        workload.node_size,
        len(workload.leaf_paths()),
        workload.application_count,
        workload.ask_count,
        workload.ask_sizes,
    )
    assert TABLE[name] == shape


@pytest.mark.parametrize(
    "name",
    [
        *("u500", "u1000", "u2000", "u5000", "a", "a_fifo", "b", "c", "d"),
        *("a_types", "a_deep", "a_users", "p_predicates", "p_parts"),
    ],
)
def test_every_ask_of_a_placing_workload_has_room(name: str) -> None:
    """The cluster starts empty and is larger than all asks together."""
    workload = workload_named(name)

    assert workload.course is Course.PLACE
    assert not list(workload.placements())
    assert workload.node_count * workload.node_size.memory > asked_memory(workload)


@pytest.mark.parametrize("name", ["u500", "c"])
def test_two_applications_have_a_guaranteed_queue_each(name: str) -> None:
    """The queues root.a and root.b are guaranteed 100000/10000000 and 1000000/10000000."""
    expected = (
        BenchQueue(name="a", guaranteed=Size(100_000, 10_000_000)),
        BenchQueue(name="b", guaranteed=Size(1_000_000, 10_000_000)),
    )

    assert expected == workload_named(name).queues


def test_only_a_sorts_its_applications_fairly() -> None:
    """Workload a names the policy at each leaf, a_fifo leaves the default."""
    policies = {
        name: {queue.application_sort_policy for queue in workload_named(name).queues}
        for name in ("a", "a_fifo", "d")
    }

    assert {"a": {"fair"}, "a_fifo": {None}, "d": {None}} == policies


def test_b_has_ten_limited_parents_of_ten_limited_leaves() -> None:
    """A parent has ten times the guarantee and maximum of a leaf; no ask has to wait for a maximum."""
    workload = workload_named("b")

    limits = Counter((parent.guaranteed, parent.maximum) for parent in workload.queues)
    leaf_limits = Counter(
        (leaf.guaranteed, leaf.maximum) for parent in workload.queues for leaf in parent.children
    )
    assert {(Size(15_000, 1_500), Size(35_000, 3_500)): 10} == limits
    assert {(Size(1_500, 150), Size(3_500, 350)): 100} == leaf_limits
    assert workload.leaf_paths()[:2] == ("root.p0.q0", "root.p0.q1")
    assert 1_500 < asked_memory(workload) // len(workload.leaf_paths()) < 3_500


@pytest.mark.parametrize(("name", "policy"), [("e_fair", "fair"), ("e_bin", "binpacking")])
def test_e_fills_nodes_by_their_number(name: str, policy: str) -> None:
    """Node i is free if i % 20 is 19, else full: one foreign allocation if i is even, six others if odd."""
    workload = workload_named(name)
    by_node: dict[int, list[tuple[Size, bool]]] = {number: [] for number in range(2_000)}
    for placement in workload.placements():
        by_node[placement.node_number].append((placement.size, placement.application_id is None))

    assert policy == workload.node_sort_policy
    assert by_node[0] == [(Size(600, 60), True)]
    assert by_node[1] == [(Size(100, 10), False)] * 6
    assert by_node[19] == []
    assert Counter(len(pieces) for pieces in by_node.values()) == {1: 1_000, 6: 900, 0: 100}


def test_e_leaves_room_for_its_asks_in_a_twentieth_of_the_cluster() -> None:
    """The free nodes hold 6,000 units; 5,000 are asked for."""
    workload = workload_named("e_fair")

    assert asked_memory(workload) == 50_000
    assert workload.node_count // 20 * workload.node_size.memory == 60_000


@pytest.mark.parametrize(
    ("name", "course"), [("f_lock", Course.CHURN_LOCKED), ("f_pipe", Course.CHURN_PIPED)]
)
def test_the_first_wave_of_f_fills_the_cluster_exactly(name: str, course: Course) -> None:
    """10,000 asks fill 1,000 nodes, and as many wait; only one kind waits for each new allocation."""
    workload = workload_named(name)

    assert workload.course is course
    assert workload.wave_count == 2
    assert workload.node_count * workload.node_size.memory == asked_memory(workload)


@pytest.mark.parametrize(
    ("name", "fill", "size"),
    [("g_full", NodeFill.FULL, Size(100, 10)), ("g_frag", NodeFill.FRAGMENTED, Size(95, 9))],
)
def test_g_leaves_no_node_with_room_for_an_ask(name: str, fill: NodeFill, size: Size) -> None:
    """Each node holds one allocation of an application, and what is left is less than any ask."""
    workload = workload_named(name)
    placements = list(workload.placements())

    assert fill is workload.node_fill
    assert {size} == {placement.size for placement in placements}
    assert list(range(1_000)) == [placement.node_number for placement in placements]
    assert workload.node_size.memory - size.memory < workload.ask_sizes[0].memory


@pytest.mark.parametrize("name", ["e_fair", "g_full", "g_frag"])
def test_existing_allocations_are_spread_evenly_over_the_applications(name: str) -> None:
    """No application and no queue starts with more than another."""
    workload = workload_named(name)
    owners = Counter(
        placement.application_id
        for placement in workload.placements()
        if placement.application_id is not None
    )

    assert {application.application_id for application in workload.applications()} == set(owners)
    assert len(set(owners.values())) == 1


@pytest.mark.parametrize("name", TABLE)
def test_no_two_things_of_a_workload_share_a_name(name: str) -> None:
    """Application ids and allocation keys are unique."""
    workload = workload_named(name)
    application_ids = [application.application_id for application in workload.applications()]
    keys = [placement.allocation_key for placement in workload.placements()]

    assert len(application_ids) == len(set(application_ids))
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e_fare", r"unknown workload 'e_fare': did you mean e_fair\?"),
        ("quick", r"unknown workload 'quick': there are u500, u1000, .*, q_storm"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_ones(name: str, text: str) -> None:
    """A name like no other is answered with all names."""
    with pytest.raises(BenchError, match=text):
        workload_named(name)


def test_the_default_names_exist() -> None:
    """What runs without names can run."""
    assert list(DEFAULT_NAMES) == [workload_named(name).name for name in DEFAULT_NAMES]


def test_the_variants_of_a_fifo_differ_in_one_thing_each() -> None:
    """So their figures beside those of `a_fifo` are the cost of that thing."""
    types, deep, users = (workload_named(name) for name in ("a_types", "a_deep", "a_users"))

    assert 10 == types.further_types
    assert {8} == {path.count(".") for path in deep.leaf_paths()}
    assert 1_000 == len({application.user for application in users.applications()})
    assert {"bench"} == {application.user for application in types.applications()}


def test_each_of_fifty_partitions_has_all_queues_and_applications_of_its_own() -> None:
    """An application of one has another id than its like in the next."""
    applications = workload_named("p_parts").applications()
    partitions = Counter(application.partition for application in applications)

    assert {f"part-{number:02d}": 10 for number in range(50)} == partitions
    assert {"root.q00"} == {application.queue_path for application in applications[::10]}
    assert applications[0].application_id != applications[10].application_id


def test_a_storm_fills_its_cluster_and_is_owed_all_of_it() -> None:
    """Half of the asks fill the nodes, and the other leaf is guaranteed as much as they take."""
    workload = workload_named("q_storm")
    owed = workload.queues[1].guaranteed

    assert workload.node_count * workload.node_size.memory == asked_memory(workload) // 2
    assert owed is not None
    assert owed.memory == asked_memory(workload) // 2


def test_large_applications_have_the_asks_of_all_of_their_leaf() -> None:
    """So the same asks come in one application that came in a thousand."""
    pods = workload_named("k_pods")
    large = pods.with_large_applications()

    assert (10, 1_000) == (large.application_count, large.asks_per_wave)
    assert pods.ask_count == large.ask_count

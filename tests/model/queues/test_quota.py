"""Quotas along a path, from a leaf up to the root."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import FIVE, TEN, a_resource

from licorne.model.queues import quota as queue_quota
from licorne.model.queues.queue import Queue
from licorne.model.resources.quantities import INT64_MAX
from licorne.model.resources.resource import EMPTY, Resource, fits_undefined_unlimited


def a_path(*maxima: Resource | None) -> list[Queue]:
    """Return queues below each other with these maxima; the first is the root, the last a leaf."""
    queues: list[Queue] = []
    for depth, maximum in enumerate(maxima):
        parent = queues[-1] if queues else None
        name = f"q{depth}" if parent else "root"
        queue = Queue(name, parent, is_leaf=depth == len(maxima) - 1, managed=True)
        queue.maximum = maximum
        queues.append(queue)
    return queues


def usage(queues: list[Queue]) -> list[int]:
    return [queue.allocated.get("memory") for queue in queues]


# ------------------------------------------------------------------------------------------- charging


def test_a_charge_counts_on_the_whole_path() -> None:
    """In the leaf and in each queue above."""
    path = a_path(TEN, None, None)

    assert queue_quota.try_charge(path[-1], FIVE) is None
    assert [5, 5, 5] == usage(path)


@pytest.mark.parametrize("barring", [0, 1, 2])
def test_a_charge_that_one_queue_bars_counts_nowhere(barring: int) -> None:
    """The queue that has no room is named; what was counted above it is taken back."""
    maxima = [TEN, TEN, TEN]
    maxima[barring] = a_resource(memory=4)
    path = a_path(*maxima)

    assert path[barring] is queue_quota.try_charge(path[-1], FIVE)
    assert [0, 0, 0] == usage(path)


def test_the_highest_queue_without_room_is_named() -> None:
    """The check goes from the root down."""
    small = a_resource(memory=4)
    path = a_path(TEN, small, small)

    assert path[1] is queue_quota.try_charge(path[-1], FIVE)


def test_a_charge_that_the_root_bars_leaves_no_trace() -> None:
    """However much is asked for."""
    most = a_resource(memory=INT64_MAX)
    path = a_path(most, None)
    assert queue_quota.try_charge(path[-1], FIVE) is None

    assert path[0] is queue_quota.try_charge(path[-1], most)
    assert [5, 5] == usage(path)


def test_what_runs_already_is_charged_over_every_maximum() -> None:
    """And discharged again."""
    path = a_path(FIVE, FIVE, None)

    queue_quota.charge(path[-1], TEN)
    charged = usage(path)
    queue_quota.release_charge(path[-1], a_resource(memory=7))

    assert ([10, 10, 10], [3, 3, 3]) == (charged, usage(path))


# ------------------------------------------------------------------------------------------- headroom


def test_headroom_is_the_least_that_any_queue_leaves() -> None:
    """Type by type: a type limited above is limited below."""
    root, parent, leaf = a_path(a_resource(memory=100, vcore=8), a_resource(memory=50), a_resource(vcore=6))
    queue_quota.charge(leaf, a_resource(memory=10, vcore=4))

    assert a_resource(memory=90, vcore=4) == queue_quota.headroom(root)
    assert a_resource(memory=40, vcore=4) == queue_quota.headroom(parent)
    assert a_resource(memory=40, vcore=2) == queue_quota.headroom(leaf)


def test_headroom_may_be_below_zero() -> None:
    """Where more runs than may."""
    path = a_path(TEN, FIVE)
    queue_quota.charge(path[-1], a_resource(memory=7))

    assert a_resource(memory=-2) == queue_quota.headroom(path[-1])


def test_without_any_maximum_there_is_no_headroom_to_speak_of() -> None:
    """None at all is not the same as nothing left."""
    path = a_path(None, None)

    assert queue_quota.headroom(path[-1]) is None


def test_headroom_in_a_cluster_without_end_ignores_the_root() -> None:
    """Only the queues below it count; the root itself has none."""
    root, parent, leaf = a_path(FIVE, TEN, a_resource(vcore=3))
    queue_quota.charge(leaf, a_resource(memory=1))

    assert a_resource(memory=9, vcore=3) == queue_quota.headroom_without_root(leaf)
    assert a_resource(memory=9) == queue_quota.headroom_without_root(parent)
    assert queue_quota.headroom_without_root(root) is None


# -------------------------------------------------------------------------------------------- maxima


def test_the_maximum_of_a_path_is_the_least_of_each_type() -> None:
    """Without the cluster's size; `None` if no queue has one."""
    _, parent, middle, leaf = a_path(
        a_resource(memory=10, vcore=2), None, a_resource(memory=30, vcore=3), a_resource(memory=40, vcore=1)
    )

    assert a_resource(memory=30, vcore=1) == queue_quota.maximum_below_root(leaf)
    assert a_resource(memory=30, vcore=3) == queue_quota.maximum_below_root(middle)
    assert queue_quota.maximum_below_root(parent) is None


def test_a_maximum_does_not_depend_on_what_is_used() -> None:
    """It is a limit, not a headroom."""
    path = a_path(TEN, FIVE)
    queue_quota.charge(path[-1], FIVE)

    assert FIVE == queue_quota.maximum_below_root(path[-1])


def test_shares_are_measured_with_the_cluster_overlaid_on_the_way_down() -> None:
    """The lowest queue that sets a type has the say, even with more than those above."""
    root, parent, leaf = a_path(
        a_resource(memory=100, vcore=8), a_resource(memory=20, gpu=2), a_resource(memory=50)
    )

    assert a_resource(memory=100, vcore=8) == queue_quota.fair_maximum(root)
    assert a_resource(memory=20, vcore=8, gpu=2) == queue_quota.fair_maximum(parent)
    assert a_resource(memory=50, vcore=8, gpu=2) == queue_quota.fair_maximum(leaf)


@pytest.mark.parametrize("size", [None, EMPTY, a_resource(memory=0)])
def test_without_a_cluster_there_is_nothing_to_measure_with(size: Resource | None) -> None:
    """Whatever the queues below say."""
    assert queue_quota.fair_maximum(a_path(size, TEN)[-1]) is None


# ---------------------------------------------------------------------------------------- applications


@pytest.mark.parametrize(("full", "named"), [((), None), ((2,), 2), ((0, 2), 0), ((1, 2), 1)])
def test_the_highest_queue_that_runs_its_maximum_is_named(full: tuple[int, ...], named: int | None) -> None:
    """The check goes from the root down; without such a queue one more application may start."""
    path = a_path(TEN, None, None)
    for depth in full:
        path[depth].max_applications = 1
        path[depth].count_running("other", 1)

    barring = queue_quota.has_place_for(path[-1], "app")

    assert (None if named is None else path[named]) is barring


# ------------------------------------------------------------------------------------------ properties

QUANTITIES = st.dictionaries(st.sampled_from(["memory", "vcore"]), st.integers(0, 9), max_size=2)
MAXIMA = st.none() | QUANTITIES.map(Resource)
STEPS = st.lists(st.tuples(QUANTITIES.map(Resource), st.booleans()), max_size=20)


@settings(max_examples=100)
@given(st.lists(MAXIMA, min_size=1, max_size=3), STEPS)
def test_quotas_hold_whatever_threads_charge(
    maxima: list[Resource | None], steps: list[tuple[Resource, bool]]
) -> None:
    """What is charged with a check never lifts a queue above its maximum; what fits is what has headroom."""
    path = a_path(a_resource(memory=99, vcore=99), *maxima)
    leaf = path[-1]
    charged: list[Resource] = []
    for resource, takes_back in steps:
        if takes_back and charged:
            queue_quota.release_charge(leaf, charged.pop())
            continue
        has_headroom = fits_undefined_unlimited(queue_quota.headroom(leaf), resource)
        fitted = queue_quota.try_charge(leaf, resource) is None
        assert has_headroom is fitted
        if fitted:
            charged.append(resource)
        for queue in path:
            assert fits_undefined_unlimited(queue.maximum, queue.allocated)
    for name in ("memory", "vcore"):
        total = sum(resource.get(name) for resource in charged)
        assert {total} == {queue.allocated.get(name) for queue in path}

"""A queue: its quota, what it counts, its applications and its priority."""

from __future__ import annotations

from random import Random

import pytest
from support.model.attributes import attributes_of
from support.model.builders import FIVE, TEN, a_resource
from support.model.entries import a_leaf, an_entry, facts_of

from licorne.model.errors import LicorneError
from licorne.model.queues.queue import _TAKEN_OVER, Queue, stand_in_for
from licorne.model.resources.quantities import INT32_MAX, INT32_MIN, INT64_MAX
from licorne.model.resources.resource import EMPTY, Resource, fits_undefined_unlimited, subtract
from licorne.model.values.states import ObjectEvent, ObjectState


def a_root(maximum: Resource | None = None) -> Queue:
    root = Queue("root", None, is_leaf=False, managed=True)
    root.maximum = maximum
    return root


def a_queue(maximum: Resource | None = None) -> Queue:
    leaf = a_leaf()
    leaf.maximum = maximum
    return leaf


# ----------------------------------------------------------------------------------------- what it is


def test_a_stand_in_has_all_that_its_queue_has() -> None:
    """But the way up begins at itself, and a quota that it is given is its own."""
    queue = a_queue(TEN)
    queue.charge(FIVE)
    twin = stand_in_for(queue)
    had, given = attributes_of(queue), attributes_of(twin)
    twin.set_quota(None, FIVE)

    known = {"name", "parent", "path", "above", "is_leaf", "managed", *_TAKEN_OVER}
    assert known == had.keys() - {"policies"}  # Those of a partition are its root's, found on the way up.
    assert had | {"above": (twin, *queue.above[1:])} == given
    assert (TEN, FIVE) == (queue.maximum, twin.maximum)


def test_a_queue_knows_its_way_up() -> None:
    """Path and ancestors, from the queue to the root."""
    root = a_root()
    parent = Queue("a", root, is_leaf=False, managed=True)
    leaf = Queue("b", parent, is_leaf=True, managed=False)

    assert "root.a.b" == leaf.path
    assert (leaf, parent, root) == leaf.above
    assert "Queue(root.a.b)" == repr(leaf)


def test_a_new_queue_is_active_empty_and_unlimited() -> None:
    """It denies everybody until its lists say otherwise."""
    queue = a_queue()

    assert (ObjectState.ACTIVE, True) == (queue.state, queue.is_empty())
    assert (None, None, 0) == (queue.guaranteed, queue.maximum, queue.max_applications)
    assert not queue.submit_acl.allows("bob", ("dev",))
    assert INT32_MIN == queue.exposed_priority


def test_a_parent_is_empty_without_children_and_a_leaf_without_applications() -> None:
    """Whatever is in it keeps a queue from being removed."""
    leaf = a_leaf()
    before = leaf.is_empty()

    an_entry(leaf)

    assert leaf.parent is not None
    assert (True, False, False) == (before, leaf.is_empty(), leaf.parent.is_empty())


def test_an_event_changes_the_state_or_not() -> None:
    """The answer tells which; an inappropriate one raises and changes nothing."""
    queue = a_queue()

    changed = [queue.handle(event) for event in (ObjectEvent.START, ObjectEvent.REMOVE, ObjectEvent.REMOVE)]

    assert ([False, True, False], True) == (changed, queue.is_draining)
    with pytest.raises(LicorneError, match="Stop is inappropriate in state Draining"):
        queue.handle(ObjectEvent.STOP)
    assert queue.is_draining


def test_properties_are_kept_and_understood() -> None:
    """Also those that mean nothing."""
    queue = a_queue()
    properties = {"application.sort.policy": "fair", "unknown": "x"}

    queue.apply_properties(properties)

    assert properties == queue.properties
    assert "fair" == queue.settings.application_sort_policy


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        (EMPTY, None),
        (a_resource(memory=0), None),
        (a_resource(memory=0, vcore=1), a_resource(memory=0, vcore=1)),
        (TEN, TEN),
    ],
)
def test_a_quota_of_nothing_is_no_quota(given: Resource | None, kept: Resource | None) -> None:
    """It takes one type above zero; a type at zero beside it counts. What was set before is gone."""
    queue = a_queue()
    queue.set_quota(FIVE, FIVE)

    queue.set_quota(given, given)

    assert (kept, kept) == (queue.guaranteed, queue.maximum)


@pytest.mark.parametrize(
    ("capacity", "maximum"),
    [(EMPTY, None), (a_resource(memory=0), None), (a_resource(memory=10, gpu=0), TEN)],
)
def test_the_roots_maximum_is_what_the_nodes_have(capacity: Resource, maximum: Resource | None) -> None:
    """Without types of which there is nothing, and none at all without nodes."""
    root = a_root()

    root.set_maximum_from_nodes(capacity)

    assert maximum == root.maximum


# -------------------------------------------------------------------------------------------- its quota


@pytest.mark.parametrize(
    ("maximum", "asked", "fits"),
    [
        (None, a_resource(memory=1000), True),
        (TEN, a_resource(memory=5), True),
        (TEN, a_resource(memory=6), False),
        (TEN, a_resource(gpu=9), True),
        (a_resource(memory=10, gpu=0), a_resource(gpu=1), False),
        (a_resource(memory=3), a_resource(gpu=1), True),
        (a_resource(memory=3), a_resource(memory=1), False),
    ],
)
def test_only_the_types_that_are_asked_for_are_checked(
    maximum: Resource | None, asked: Resource, *, fits: bool
) -> None:
    """Of a queue that uses five: a type without a maximum is unlimited, one above it does not bar others."""
    queue = a_queue(maximum)
    queue.charge(FIVE)

    assert fits is queue.has_room(asked)
    assert fits is queue.try_charge(asked)
    assert (5 + asked.get("memory") if fits else 5) == queue.allocated.get("memory")


@pytest.mark.parametrize(
    ("maximum", "asked", "fits"),
    [(None, FIVE, False), (TEN, FIVE, True), (TEN, a_resource(memory=5, gpu=1), False)],
)
def test_the_root_has_nothing_that_no_node_has(
    maximum: Resource | None, asked: Resource, *, fits: bool
) -> None:
    """A type that the cluster does not know is none of it; a cluster without nodes has nothing."""
    assert fits is a_root(maximum).has_room(asked)


def test_what_the_rm_says_is_charged_without_question() -> None:
    """A recovered allocation may lift a queue above its maximum."""
    queue = a_queue(FIVE)

    queue.charge(TEN)

    assert (TEN, a_resource(memory=-5)) == (queue.allocated, queue.room())


def test_a_release_undoes_the_charge() -> None:
    """Types of which nothing is left are gone."""
    queue = a_queue()
    queue.charge(a_resource(memory=10, gpu=1))

    queue.release_charge(a_resource(memory=4, gpu=1))

    assert a_resource(memory=6) == queue.allocated


def test_no_more_is_released_than_is_allocated() -> None:
    """That is a mistake of ours, and changes nothing."""
    queue = a_queue()
    queue.charge(FIVE)

    with pytest.raises(AssertionError, match=r"queue root\.leaf: .* is released"):
        queue.release_charge(a_resource(memory=5, gpu=1))

    assert FIVE == queue.allocated


def test_what_waits_is_counted() -> None:
    """It comes and goes; never is less than nothing waiting."""
    queue = a_queue()
    queue.add_pending(TEN)
    queue.add_pending(a_resource(gpu=1))
    queue.remove_pending(FIVE)
    queue.remove_pending(a_resource(gpu=1))

    assert FIVE == queue.pending
    with pytest.raises(AssertionError, match=r"queue root\.leaf: .* waits no longer"):
        queue.remove_pending(TEN)


def test_a_sum_of_waiting_asks_beyond_64_bits_leaves_what_remains() -> None:
    """A sum that stopped at the border would take away what others wait for."""
    queue = a_queue()
    huge = a_resource(memory=INT64_MAX, gpu=1)
    for resource in (huge, FIVE, huge):
        queue.add_pending(resource)

    queue.remove_pending(huge)
    once = queue.pending
    queue.remove_pending(huge)

    assert (a_resource(memory=INT64_MAX + 5, gpu=1), FIVE) == (once, queue.pending)


def test_what_is_being_preempted_is_counted() -> None:
    """Apart from what is allocated."""
    queue = a_queue()
    queue.change_preempting(TEN)
    queue.change_preempting(subtract(EMPTY, FIVE))
    half = queue.preempting

    queue.change_preempting(subtract(EMPTY, FIVE))

    assert (FIVE, EMPTY, EMPTY) == (half, queue.preempting, queue.allocated)


@pytest.mark.parametrize(
    ("maximum", "room"),
    [
        (None, None),
        (a_resource(memory=12, gpu=3), a_resource(memory=7, gpu=3)),
        (a_resource(memory=3), a_resource(memory=-2)),
    ],
)
def test_room_is_what_the_maximum_leaves(maximum: Resource | None, room: Resource | None) -> None:
    """For the types of the maximum, and maybe below zero; without a maximum there is no saying."""
    queue = a_queue(maximum)
    queue.charge(a_resource(memory=5, vcore=1))

    assert room == queue.room()


# ------------------------------------------------------------------------------------- its applications


@pytest.mark.parametrize(("limit", "running", "place"), [(0, 9, True), (2, 1, True), (2, 2, False)])
def test_so_many_applications_run_at_most(limit: int, running: int, *, place: bool) -> None:
    """Zero is no limit."""
    queue = a_queue()
    queue.max_applications = limit
    for number in range(running):
        queue.count_running(f"app-{number}", 1)

    assert place is queue.has_place_for("app")


def test_accepted_applications_that_have_something_count_as_running() -> None:
    """For others; they themselves have their place already."""
    queue = a_queue()
    queue.max_applications = 1

    queue.count_accepted("gang")

    assert (True, False) == (queue.has_place_for("gang"), queue.has_place_for("other"))


def test_an_application_that_runs_is_counted_once() -> None:
    """From accepted to running it keeps its one place; when it ceases, the place is free."""
    queue = a_queue()
    queue.max_applications = 2
    queue.count_accepted("gang")

    queue.count_running("gang", 1)
    after_start = (queue.running, list(queue.accepted_allocating), queue.has_place_for("other"))
    queue.count_running("gang", -1)

    assert (1, [], True) == after_start
    assert 0 == queue.running


def test_an_accepted_application_that_is_gone_counts_no_longer() -> None:
    """To forget one that was not counted is no matter."""
    queue = a_queue()
    queue.max_applications = 1
    queue.count_accepted("gang")

    queue.forget_accepted("gang")
    queue.forget_accepted("gang")

    assert queue.has_place_for("other")


def test_never_fewer_than_no_applications_run() -> None:
    """That would be a mistake of ours."""
    with pytest.raises(AssertionError, match="-1 applications run"):
        a_queue().count_running("app", -1)


# ---------------------------------------------------------------------------------------- its priority


@pytest.mark.parametrize(
    ("policy", "offset", "priority", "exposed"),
    [
        ("default", "0", 5, 5),
        ("default", "3", 5, 8),
        ("default", "-7", 5, -2),
        ("fence", "3", 5, 3),
        ("fence", "0", 5, 0),
        ("default", "2147483647", 5, INT32_MAX),
        ("default", "-2147483648", -5, INT32_MIN),
        ("default", "3", None, INT32_MIN),
        ("fence", "3", None, INT32_MIN),
    ],
)
def test_a_parent_sees_a_priority_after_offset_or_fence(
    policy: str, offset: str, priority: int | None, exposed: int
) -> None:
    """The offset is added within 32 bits, a fence shows the offset alone, an empty queue shows nothing."""
    leaf = a_leaf({"priority.policy": policy, "priority.offset": offset})
    an_entry(leaf, facts=facts_of(pending=TEN, priority=priority))

    leaf.refresh_priority()

    assert exposed == leaf.exposed_priority


def test_a_leaf_has_the_highest_priority_of_its_applications() -> None:
    """The answer tells whether it changed."""
    leaf = a_leaf()
    changes = [leaf.refresh_priority()]
    for name, priority in (("a", 3), ("b", 7), ("c", 5)):
        an_entry(leaf, name, facts_of(pending=TEN, priority=priority))
        changes.append(leaf.refresh_priority())

    assert ([False, True, True, False], 7) == (changes, leaf.priority)


def test_a_parent_has_the_highest_exposed_priority_of_its_children() -> None:
    """Their offsets count; a child in which nothing waits does not."""
    leaf = a_leaf({"priority.offset": "-3"})
    root = leaf.parent
    assert root is not None
    root.children["idle"] = Queue("idle", root, is_leaf=True, managed=True)
    an_entry(leaf, facts=facts_of(pending=TEN, priority=2))
    leaf.refresh_priority()

    root.refresh_priority()

    assert -1 == root.priority


@pytest.mark.parametrize("seed", range(40))
def test_what_the_headroom_allows_can_be_charged(seed: int) -> None:
    """Also above a maximum, and where an ask names a type with a quantity of zero: it asks for nothing."""
    draw = Random(seed)  # noqa: S311 - no secret
    names = ("memory", "vcore", "gpu")

    def drawn(*quantities: int) -> Resource:
        return Resource({name: draw.choice(quantities) for name in names if draw.random() < 0.7})

    queue = a_queue()
    queue.set_quota(None, drawn(0, 1, 2, 4))
    queue.charge(drawn(0, 1, 5))
    queue.change_held(drawn(0, 0, 1))
    for _ in range(20):
        asked = drawn(0, 0, 1, 2)
        fits = fits_undefined_unlimited(queue.room(), asked)

        assert fits == queue.has_room(asked) == queue.try_charge(asked), (queue.maximum, asked)

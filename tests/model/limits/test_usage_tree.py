"""The usage of one user or group along the queues."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import memory
from support.model.limit_builders import tree_shown

from licorne.model.configuration.problems import NOWHERE
from licorne.model.configuration.schema import LimitConfig, LimitKind, QueueConfig
from licorne.model.limits.limits import Limit, Limits, QueueLimits
from licorne.model.limits.usage_tree import ApplicationLimitBlocker, LimitBlocker, UsageTree
from licorne.model.resources.resource import EMPTY, Resource, fits_undefined_unlimited

NO_LIMITS = Limits({})


def limits(*, root: LimitConfig | None = None, a: LimitConfig | None = None) -> Limits:
    """Return limits of the queues `root` and `root.a`."""
    queue = QueueConfig(name="a", limits=() if a is None else (a,))
    return Limits.of(QueueConfig(name="root", limits=() if root is None else (root,), queues=(queue,)))


def bob(*, memory_max: int | None = None, applications: int = 0) -> LimitConfig:
    resources = EMPTY if memory_max is None else memory(memory_max)
    return LimitConfig(users=("bob",), resources={"maxresources": resources}, max_applications=applications)


def a_tree(stated: Limits = NO_LIMITS) -> UsageTree:
    return UsageTree("user", "bob", stated)


@pytest.fixture
def tree() -> UsageTree:
    """Return the usage of a user without limits."""
    return a_tree()


# --------------------------------------------------------------------------------------- what is used


def test_usage_counts_at_every_level(tree: UsageTree) -> None:
    """What an application uses is used in its queue and in each queue above."""
    tree.increase("root.a.b", "app", memory(5))

    used = {"resourceUsage": {"memory": 5}, "runningApplications": ["app"]}
    leaf = {"queuePath": "root.a.b", **used}
    assert {
        "queuePath": "root",
        **used,
        "children": [{"queuePath": "root.a", **used, "children": [leaf]}],
    } == tree_shown(tree)
    tree.validate()


def test_queues_of_one_user_add_up_above_them(tree: UsageTree) -> None:
    """Usage of two queues is apart below and together above; the queues are listed by path."""
    tree.increase("root.b", "two", memory(7))
    tree.increase("root.a", "one", memory(5))

    assert {
        "queuePath": "root",
        "resourceUsage": {"memory": 12},
        "runningApplications": ["one", "two"],
        "children": [
            {"queuePath": "root.a", "resourceUsage": {"memory": 5}, "runningApplications": ["one"]},
            {"queuePath": "root.b", "resourceUsage": {"memory": 7}, "runningApplications": ["two"]},
        ],
    } == tree_shown(tree)


def test_a_queue_that_was_looked_at_is_listed(tree: UsageTree) -> None:
    """Looking at the headroom of a queue lists the queue, as recorded."""
    tree.headroom("root.a")

    assert {"queuePath": "root", "children": [{"queuePath": "root.a"}]} == tree_shown(tree)


def test_an_application_without_allocations_goes_on_running(tree: UsageTree) -> None:
    """Giving everything back does not end an application."""
    tree.increase("root.a", "app", memory(5))

    tree.decrease("root.a", "app", memory(5), remove_application=False)

    assert tree.usage == EMPTY
    assert tree.applications == ("app",)


def test_the_last_application_takes_its_queues_along(tree: UsageTree) -> None:
    """With the last application of a queue the queue goes, and so on upwards."""
    tree.increase("root.a.b", "one", memory(5))
    tree.increase("root.c", "two", memory(5))

    tree.decrease("root.a.b", "one", memory(5), remove_application=True)

    used = {"resourceUsage": {"memory": 5}, "runningApplications": ["two"]}
    assert {"queuePath": "root", **used, "children": [{"queuePath": "root.c", **used}]} == tree_shown(tree)
    tree.validate()


def test_a_queue_with_another_application_stays(tree: UsageTree) -> None:
    """A queue stays as long as one application of the user runs there."""
    tree.increase("root.a", "one", memory(5))
    tree.increase("root.a", "two", memory(3))

    tree.decrease("root.a", "one", memory(5), remove_application=True)

    assert tree.usage == memory(3)
    assert tree.applications == ("two",)


def test_a_limited_queue_stays_when_nothing_runs() -> None:
    """A limit keeps its queue listed."""
    tree = a_tree(limits(a=bob(memory_max=10)))
    tree.increase("root.a", "app", memory(5))

    tree.decrease("root.a", "app", memory(5), remove_application=True)

    leaf = {"queuePath": "root.a", "maxResources": {"memory": 10}}
    assert {"queuePath": "root", "children": [leaf]} == tree_shown(tree)


def test_an_application_that_never_ran_leaves_its_queue_listed(tree: UsageTree) -> None:
    """The end of an application that only waited changes nothing here, as recorded."""
    tree.touch("root.a")

    tree.decrease("root.a", "app", EMPTY, remove_application=True)

    assert {"queuePath": "root", "children": [{"queuePath": "root.a"}]} == tree_shown(tree)


def test_a_resize_may_shrink_one_type_and_grow_another(tree: UsageTree) -> None:
    """An increase takes negative quantities, and a type that comes to zero is not listed."""
    tree.increase("root.a", "app", Resource({"memory": 5, "vcore": 1}))

    tree.increase("root.a", "app", Resource({"memory": -5, "vcore": 2}))

    assert tree.usage == Resource({"vcore": 3})


def test_more_cannot_come_back_than_was_given(tree: UsageTree) -> None:
    """A release without an allocation is a bug of Licorne, and changes nothing."""
    tree.increase("root.a", "app", memory(5))

    with pytest.raises(AssertionError, match=r"more than user bob uses there: please report"):
        tree.decrease("root.a", "app", Resource({"memory": 5, "vcore": 1}), remove_application=False)

    assert tree.usage == memory(5)


def test_an_unknown_application_has_nothing_to_give_back() -> None:
    """Nor can an application that does not run release anything."""
    with pytest.raises(AssertionError, match=r"application app in root\.a"):
        a_tree().decrease("root.a", "app", memory(1), remove_application=True)


def test_paths_start_at_the_root() -> None:
    """A path that is none is our bug."""
    with pytest.raises(AssertionError, match=r"'a\.b' does not start at the root"):
        a_tree().touch("a.b")


def test_sums_beyond_64_bits_are_cut_off_where_shown(tree: UsageTree) -> None:
    """Usage stays exact inside, and is shown as the largest number that the interface can carry."""
    huge = memory(2**63 - 1)
    tree.increase("root.a", "app", huge)
    tree.increase("root.a", "app", huge)

    used, shown = tree.usage, tree_shown(tree)["resourceUsage"]
    tree.decrease("root.a", "app", huge, remove_application=False)

    assert (memory(2**64 - 2), {"memory": 2**63 - 1}) == (used, shown)
    assert huge == tree.usage


# ------------------------------------------------------------------------------------------- headroom


MEMORY_10: Final = limits(a=bob(memory_max=10))
MEMORY_9_AND_CORES: Final = LimitConfig(
    users=("bob",), resources={"maxresources": Resource({"memory": 9, "vcore": 5})}
)
EACH_ASK: Final = LimitKind("maxasks", "MaxAsks", "max ask", "max ask", counts_usage=False)
EACH_ASK_4: Final = Limits({"root": QueueLimits({"bob": Limit(((EACH_ASK, memory(4)),))}, {})})

HEADROOM: Final = {
    "without limits there is no headroom, not an empty one": (NO_LIMITS, [], None),
    "types without a limit are not in the headroom": (
        MEMORY_10,
        [("root.a", "app", Resource({"memory": 4, "vcore": 1}))],
        memory(6),
    ),
    "the least that any level leaves is the headroom, type by type": (
        limits(root=MEMORY_9_AND_CORES, a=bob(memory_max=10)),
        [("root.b", "other", memory(3))],
        Resource({"memory": 6, "vcore": 5}),
    ),
    "recovered usage is never refused, and headroom may be negative": (
        MEMORY_10,
        [("root.a", "app", memory(14))],
        memory(-4),
    ),
    "only limits of resources make headroom": (limits(a=bob(applications=1)), [], None),
    "a kind of limit to each ask alone does not count what is used": (
        EACH_ASK_4,
        [("root.a", "app", memory(14))],
        memory(4),
    ),
    "headroom far below zero is exact": (
        MEMORY_10,
        [("root.a", "app", memory(2**63 - 1))] * 3,
        memory(10 - 3 * (2**63 - 1)),
    ),
}


@pytest.mark.parametrize(("stated", "taken", "headroom"), HEADROOM.values(), ids=HEADROOM)
def test_headroom_is_what_the_limits_leave(
    stated: Limits, taken: list[tuple[str, str, Resource]], headroom: Resource | None
) -> None:
    """Of the queue `root.a`."""
    tree = a_tree(stated)

    for queue_path, application_id, resource in taken:
        tree.increase(queue_path, application_id, resource)

    assert headroom == tree.headroom("root.a")


# --------------------------------------------------------------------------------- running applications


def test_applications_run_up_to_the_limit() -> None:
    """One more may run as long as the limit is not reached."""
    tree = a_tree(limits(a=bob(applications=2)))
    tree.increase("root.a", "one", memory(1))

    before = tree.can_run("root.a", "two")
    tree.increase("root.a", "two", memory(1))

    assert (True, False) == (before, tree.can_run("root.a", "three"))


def test_a_running_application_may_go_on(tree: UsageTree) -> None:
    """An application that runs counts already, even when the limit has been lowered since."""
    tree.increase("root.a", "one", memory(1))
    tree.increase("root.a", "two", memory(1))

    tree.replace_limits(limits(a=bob(applications=1)))

    assert tree.can_run("root.a", "two")


def test_every_level_must_let_an_application_run() -> None:
    """An application elsewhere counts against a limit further up."""
    tree = a_tree(limits(root=bob(applications=1), a=bob(applications=5)))

    tree.increase("root.b", "other", memory(1))

    assert not tree.can_run("root.a", "app")


# ------------------------------------------------------------------------------------- other limits


def test_new_limits_are_listed_at_once(tree: UsageTree) -> None:
    """A queue that is limited from now on is listed although nothing happened there."""
    tree.replace_limits(limits(a=bob(memory_max=10, applications=3)))

    leaf = {"queuePath": "root.a", "maxResources": {"memory": 10}, "maxApplications": 3}
    assert {"queuePath": "root", "children": [leaf]} == tree_shown(tree)
    tree.validate()


def test_a_lifted_limit_takes_its_empty_queue_along(tree: UsageTree) -> None:
    """A queue that only the limit kept listed goes with it."""
    tree.replace_limits(limits(a=bob(memory_max=10)))

    tree.replace_limits(NO_LIMITS)

    assert {"queuePath": "root"} == tree_shown(tree)
    assert tree.is_bare()


def test_a_new_queue_has_the_wildcard_limit() -> None:
    """A user without a limit of their own gets the wildcard's with the first look at a queue."""
    everyone = LimitConfig(users=("*",), resources={"maxresources": memory(8)})
    tree = a_tree(limits(a=everyone))

    bare_before = tree.is_bare()

    assert memory(8) == tree.headroom("root.a")
    assert bare_before


def test_a_tree_is_idle_when_nothing_runs_and_nothing_is_limited(tree: UsageTree) -> None:
    """Listed queues alone are no work."""
    tree.touch("root.a")
    idle = tree.is_idle()
    tree.increase("root.a", "app", EMPTY)

    assert (True, False) == (idle, tree.is_idle())
    assert not a_tree(limits(root=bob(applications=1))).is_idle()


# ------------------------------------------------------------------------------------------- blockers


def test_blockers_name_the_key_of_the_kind_that_limits() -> None:
    """An explanation says which setting must rise."""
    tree = a_tree(EACH_ASK_4)
    tree.increase("root.a", "app", memory(14))

    blockers = tree.blockers("root.a", memory(5))

    assert (LimitBlocker("user", "bob", "root", "maxasks", memory(4), EMPTY, NOWHERE),) == blockers


def test_blockers_name_every_limit_that_is_too_small() -> None:
    """What stands in the way is named level by level, with the limit and what is used of it."""
    tree = a_tree(limits(root=bob(memory_max=12), a=bob(memory_max=10)))
    tree.increase("root.a", "app", Resource({"memory": 8, "vcore": 1}))

    blockers = tree.blockers("root.a", memory(5))

    used = Resource({"memory": 8, "vcore": 1})
    assert (
        LimitBlocker("user", "bob", "root", "maxresources", memory(12), used, NOWHERE),
        LimitBlocker("user", "bob", "root.a", "maxresources", memory(10), used, NOWHERE),
    ) == blockers


def test_what_fits_has_no_blockers() -> None:
    """A resource within all limits is blocked by none."""
    tree = a_tree(limits(root=bob(memory_max=12), a=bob(memory_max=10)))

    assert () == tree.blockers("root.a", memory(10))


def test_looking_for_blockers_lists_nothing() -> None:
    """A question leaves no trace."""
    tree = a_tree(limits(root=bob(memory_max=1)))

    tree.blockers("root.x.y", memory(5))
    tree.application_blockers("root.x.y", "app")

    assert {"queuePath": "root", "maxResources": {"memory": 1}} == tree_shown(tree)


def test_blockers_of_an_application_name_the_full_limits() -> None:
    """A limit to applications that is reached stands in the way of new ones, not of running ones."""
    tree = a_tree(limits(a=bob(applications=1)))
    tree.increase("root.a", "one", memory(1))

    blocker = ApplicationLimitBlocker("user", "bob", "root.a", 1, 1, NOWHERE)
    assert (blocker,) == tree.application_blockers("root.a", "two")
    assert () == tree.application_blockers("root.a", "one")


# ------------------------------------------------------------------------------------------ validation


def test_validation_finds_a_level_that_lost_usage(tree: UsageTree) -> None:
    """A level with less than the levels below it together is found."""
    tree.increase("root.a.b", "app", memory(5))

    tree._nodes["root.a"].usage["memory"] = 4

    with pytest.raises(AssertionError, match=r"user bob at root.a: less memory than 5 below"):
        tree.validate()


def test_validation_finds_negative_usage(tree: UsageTree) -> None:
    """Usage below zero is found."""
    tree.increase("root.a", "app", memory(5))

    tree.increase("root.a", "app", memory(-6))

    with pytest.raises(AssertionError, match="user bob at root"):
        tree.validate()


# ------------------------------------------------------------------------------------------ properties

QUEUES = ("root.a", "root.b.c", "root.b.d", "root.e.f.g")
STEPS = st.lists(
    st.tuples(st.sampled_from(QUEUES), st.integers(0, 3), st.integers(0, 9), st.booleans()), max_size=40
)


@settings(max_examples=60)
@given(STEPS)
def test_usage_is_the_sum_of_what_was_given_and_not_given_back(
    steps: list[tuple[str, int, int, bool]],
) -> None:
    """Whatever comes and goes in whatever order, each level has the sum of what is still there."""
    tree = a_tree()
    held: Counter[tuple[str, str]] = Counter()
    for queue, number, quantity, ends in steps:
        application = f"{queue}/{number}"
        if ends:
            back = memory(held.pop((queue, application), 0))
            tree.decrease(queue, application, back, remove_application=True)
        else:
            tree.increase(queue, application, memory(quantity))
            held[queue, application] += quantity
        tree.validate()
        assert sum(held.values()) == tree.usage.get("memory")
        assert tuple(sorted(application for _, application in held)) == tree.applications


@settings(max_examples=60)
@given(STEPS, st.integers(0, 30), st.integers(1, 20))
def test_who_asks_for_headroom_first_never_breaks_a_limit(
    steps: list[tuple[str, int, int, bool]], root_limit: int, a_limit: int
) -> None:
    """If only what fits the headroom is added, no limit is ever exceeded, and blockers agree."""
    tree = a_tree(limits(root=bob(memory_max=root_limit or 1), a=bob(memory_max=a_limit)))
    for queue, number, quantity, _ in steps:
        fits = fits_undefined_unlimited(tree.headroom(queue), memory(quantity))
        assert fits is not bool(tree.blockers(queue, memory(quantity)))
        if fits:
            tree.increase(queue, str(number) + queue, memory(quantity))
        left = tree.headroom("root.a")
        assert left is not None
        assert left.get("memory") >= 0

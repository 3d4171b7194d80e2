"""Usage and limits of all users and groups of a partition, also with a new configuration."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import memory
from support.model.limit_builders import (
    BOB,
    DAN,
    EVE,
    TEN,
    a_limit,
    a_root,
    fill,
    groups_shown,
    user_limits,
    users_shown,
)

from licorne.model.configuration.problems import Position
from licorne.model.configuration.schema import LimitConfig
from licorne.model.limits.usage_tree import ApplicationLimitBlocker, LimitBlocker
from licorne.model.resources.resource import EMPTY, Resource, fits_undefined_unlimited
from licorne.model.values.messages import User

# ------------------------------------------------------------------------------------- without limits


def test_without_limits_everything_goes() -> None:
    """No limit anywhere: no headroom to speak of, and every application may run."""
    limits = user_limits()

    assert limits.headroom("root.a", "app", BOB) is None
    assert limits.can_run("root.a", "app", BOB)


def test_no_user_is_listed_before_the_first_question() -> None:
    """Users appear when an application of theirs is looked at, not before."""
    limits = user_limits()
    before = users_shown(limits)

    limits.can_run("root.a", "app", BOB)

    listed = {"userName": "bob", "queues": {"queuePath": "root", "children": [{"queuePath": "root.a"}]}}
    assert ([], [listed]) == (before, users_shown(limits))


def test_usage_of_a_user_is_over_all_queues() -> None:
    """A user's usage is the sum over all applications and queues."""
    limits = user_limits()

    limits.increase("root.a", "one", BOB, memory(5))
    limits.increase("root.b", "two", BOB, memory(7))
    limits.increase("root.b", "three", DAN, memory(1))

    assert {"bob": memory(12), "dan": memory(1)} == limits.usages()
    limits.validate()


def test_a_user_goes_with_the_last_application() -> None:
    """A user without limits and applications is no longer listed."""
    limits = user_limits()
    limits.increase("root.a", "app", BOB, memory(5))

    limits.decrease("root.a", "app", BOB, memory(5), remove_application=True)

    assert [] == users_shown(limits)
    limits.validate()


def test_a_user_whose_applications_never_ran_goes_with_the_last() -> None:
    """Ending an application that only waited clears up too, once the user has no other."""
    limits = user_limits()
    limits.headroom("root.a", "one", BOB)
    limits.headroom("root.a", "two", BOB)

    limits.decrease("root.a", "one", BOB, EMPTY, remove_application=True)
    listed = users_shown(limits, "bob")[0]
    limits.decrease("root.a", "two", BOB, EMPTY, remove_application=True)

    assert listed is not None
    assert [] == users_shown(limits, "bob")


def test_ending_an_application_that_was_never_looked_at_is_fine() -> None:
    """The end of an unknown application changes nothing."""
    limits = user_limits()

    limits.decrease("root.a", "app", BOB, EMPTY, remove_application=True)

    assert [] == users_shown(limits)


def test_what_was_never_given_cannot_come_back() -> None:
    """A release for an unknown application is our bug."""
    with pytest.raises(AssertionError, match="application app was never given to bob: please report"):
        user_limits().decrease("root.a", "app", BOB, memory(1), remove_application=True)


# ------------------------------------------------------------------------------------ limits of users


def test_the_limit_of_a_user_bounds_all_queues_below() -> None:
    """A limit at the root counts what the user has in every queue, and only that user's."""
    limits = user_limits(a_root(a_limit(users=("bob",), quantity=35)))

    placed = fill(limits, "root.a", "one", BOB, 2), fill(limits, "root.b", "two", BOB, 3)

    assert (2, 1) == placed
    assert fill(limits, "root.b", "three", DAN, 5) == 5
    limits.validate()


def test_the_wildcard_is_for_every_user_separately() -> None:
    """Each user without a limit of their own has the wildcard's to themselves."""
    wildcard = a_limit(users=("*",), quantity=25)
    limits = user_limits(a_root(a=(a_limit(users=("bob",), quantity=45), wildcard)))

    placed = [fill(limits, "root.a", f"app-{user.name}", user, 5) for user in (BOB, DAN, EVE)]

    assert [4, 2, 2] == placed


def test_a_limit_to_applications_lets_no_more_start() -> None:
    """As many applications of a user run as the limit says; the next waits until one is gone."""
    limits = user_limits(a_root(a=(a_limit(users=("bob",), applications=1),)))
    limits.increase("root.a", "one", BOB, TEN)

    while_running = limits.can_run("root.a", "two", BOB)
    limits.decrease("root.a", "one", BOB, TEN, remove_application=True)

    assert (False, True) == (while_running, limits.can_run("root.a", "two", BOB))


def test_a_named_user_is_listed_from_the_start() -> None:
    """A user with a limit is listed with it, before anything runs."""
    limits = user_limits(a_root(a=(a_limit(users=("bob",), quantity=45, applications=2),)))

    leaf = {"queuePath": "root.a", "maxResources": {"memory": 45}, "maxApplications": 2}
    assert [{"userName": "bob", "queues": {"queuePath": "root", "children": [leaf]}}] == users_shown(limits)


def test_the_wildcard_lists_no_user() -> None:
    """The wildcard limit alone makes no user known."""
    assert [] == users_shown(user_limits(a_root(a=(a_limit(users=("*",), quantity=25),))))


def test_two_partitions_do_not_disturb_each_other() -> None:
    """Each partition has its own books and its own limits."""
    one, two = user_limits(a_root(a_limit(users=("bob",), quantity=10))), user_limits()

    two.increase("root.a", "app", BOB, memory(10))

    assert memory(10) == one.headroom("root.a", "app", BOB)
    assert two.headroom("root.a", "app", BOB) is None


# ----------------------------------------------------------------------------------- limits of groups


def test_the_wildcard_group_is_one_pot() -> None:
    """All applications whose user is in no named group share the limit of `*`: the recorded documents."""
    named, rest = a_limit(groups=("dev",), quantity=45), a_limit(groups=("*",), quantity=25)
    limits = user_limits(a_root(a=(named, rest)))

    placed = [fill(limits, "root.a", f"a{n}", user, 5) for n, user in enumerate((BOB, DAN, EVE))]

    assert [4, 2, 0] == placed
    used = {"resourceUsage": {"memory": 20, "vcore": 2000}, "runningApplications": ["a1"]}
    leaf = {"maxResources": {"memory": 25}, "queuePath": "root.a", **used}
    assert {
        "groupName": "*",
        "applications": ["a1"],
        "queues": {"queuePath": "root", "children": [leaf], **used},
    } == groups_shown(limits, "*")[0]
    assert {
        "userName": "eve",
        "groups": {"a2": "*"},
        "queues": {"queuePath": "root", "children": [{"queuePath": "root.a"}]},
    } == users_shown(limits, "eve")[0]
    assert ["*", "dev"] == [view["groupName"] for view in groups_shown(limits)]
    limits.validate()


def test_user_and_group_must_both_have_room() -> None:
    """The headroom is the least of the two, type by type."""
    own = LimitConfig(users=("bob",), resources={"maxresources": Resource({"memory": 30, "vcore": 5000})})
    limits = user_limits(a_root(own, a=(a_limit(groups=("dev",), quantity=20),)))

    assert Resource({"memory": 20, "vcore": 5000}) == limits.headroom("root.a", "app", BOB)


def test_a_group_counts_all_its_users() -> None:
    """Users of one group share its limits, to resources and to applications."""
    limits = user_limits(a_root(a=(a_limit(groups=("dev",), quantity=30, applications=1),)))
    ann = User("ann", ("x", "dev"))

    limits.increase("root.a", "one", BOB, memory(25))

    assert memory(5) == limits.headroom("root.a", "two", ann)
    assert not limits.can_run("root.a", "two", ann)
    assert limits.can_run("root.b", "three", ann)


def test_an_application_keeps_its_group() -> None:
    """A group that is limited later does not draw running applications in: limits/reload as recorded."""
    limits = user_limits()
    limits.increase("root.a", "app1", BOB, TEN)

    limits.update(a_root(a=(a_limit(groups=("dev",), quantity=15),)))

    assert limits.headroom("root.a", "app1", BOB) is None
    assert limits.group_of("root.a", "app1", BOB) is None
    assert limits.group_of("root.a", "new", BOB) == "dev"
    leaf = {"maxResources": {"memory": 15}, "queuePath": "root.a"}
    assert [{"groupName": "dev", "queues": {"queuePath": "root", "children": [leaf]}}] == groups_shown(limits)
    limits.validate()


def test_a_group_is_forgotten_with_its_application() -> None:
    """The next application of the same name decides its group anew."""
    limits = user_limits()
    limits.increase("root.a", "app", BOB, TEN)
    limits.update(a_root(a=(a_limit(groups=("dev",), quantity=15),)))

    limits.decrease("root.a", "app", BOB, TEN, remove_application=True)
    limits.increase("root.a", "app", BOB, memory(5))

    assert memory(10) == limits.headroom("root.a", "app", BOB)


# -------------------------------------------------------------------------------------------- explain


def test_blockers_name_user_and_group_and_place() -> None:
    """Everybody in the way is named, with the limit, its place in the file, and what is used of it."""
    here, there = Position(5, 3), Position(9, 3)
    own = LimitConfig(users=("bob",), resources={"maxresources": memory(8)}, position=here)
    shared = LimitConfig(
        groups=("dev",), resources={"maxresources": memory(9)}, max_applications=1, position=there
    )
    limits = user_limits(a_root(own, a=(shared,)))
    limits.increase("root.a", "one", BOB, memory(5))

    assert (
        LimitBlocker("user", "bob", "root", "maxresources", memory(8), memory(5), here),
        LimitBlocker("group", "dev", "root.a", "maxresources", memory(9), memory(5), there),
    ) == limits.blockers("root.a", "two", BOB, memory(6))
    assert (ApplicationLimitBlocker("group", "dev", "root.a", 1, 1, there),) == limits.application_blockers(
        "root.a", "two", BOB
    )


def test_explaining_changes_nothing() -> None:
    """A user without an account is explained and not listed."""
    limits = user_limits(a_root(a=(a_limit(users=("*",), quantity=3), a_limit(groups=("ops",), quantity=4))))
    groups = groups_shown(limits)

    blockers = limits.blockers("root.a", "app", DAN, memory(5))

    assert [("user", "dan"), ("group", "ops")] == [(blocker.kind, blocker.name) for blocker in blockers]
    assert ([], groups) == (users_shown(limits), groups_shown(limits))


def test_unknown_users_and_groups_have_no_document() -> None:
    """A user who is not listed has no document."""
    assert ([], []) == (users_shown(user_limits(), "bob"), groups_shown(user_limits(), "dev"))


# ------------------------------------------------------------------------------------------ validation


def test_validation_finds_a_group_that_lost_usage() -> None:
    """A group must use what the applications that count against it use."""
    limits = user_limits(a_root(a=(a_limit(groups=("dev",), quantity=50),)))
    limits.increase("root.a", "one", BOB, memory(20))

    limits._groups["dev"].increase("root.a", "one", memory(1))

    with pytest.raises(AssertionError, match="group dev uses"):
        limits.validate()


def test_validation_finds_an_application_without_a_link() -> None:
    """A running application must be known to its user."""
    limits = user_limits()
    limits.increase("root.a", "one", BOB, memory(20))

    limits._users["bob"].links.clear()

    with pytest.raises(AssertionError, match="running application one has no link"):
        limits.validate()


# ------------------------------------------------------------------------------------------ properties

USERS = (BOB, DAN, User("joe", ("qa", "dev")))
LIMIT_SETS = (
    a_root(),
    a_root(a_limit(users=("bob",), quantity=20), a=(a_limit(groups=("dev",), quantity=15),)),
    a_root(
        a_limit(groups=("dev",), quantity=30),
        a=(a_limit(users=("*",), quantity=9),),
        b=(a_limit(groups=("qa",), quantity=10), a_limit(groups=("*",), quantity=5)),
    ),
)
STEPS = st.lists(
    st.one_of(
        st.integers(0, len(LIMIT_SETS) - 1),
        st.tuples(st.integers(0, 5), st.integers(0, 7), st.booleans()),
    ),
    max_size=40,
)


@settings(max_examples=50)
@given(STEPS)
def test_books_balance_through_any_work_and_any_reloads(steps: list[int | tuple[int, int, bool]]) -> None:
    """Usage is always the sum of what was given and not given back; reloads move it and lose nothing."""
    limits = user_limits()
    held: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for step in steps:
        if isinstance(step, int):
            limits.update(LIMIT_SETS[step])
        else:
            number, quantity, ends = step
            user, queue = USERS[number % 3], ("root.a", "root.b")[number % 2]
            if ends:
                back = memory(held[user.name].pop(number, 0))
                limits.decrease(queue, f"app{number}", user, back, remove_application=True)
            elif fits_undefined_unlimited(limits.headroom(queue, f"app{number}", user), memory(quantity)):
                assert () == limits.blockers(queue, f"app{number}", user, memory(quantity))
                limits.increase(queue, f"app{number}", user, memory(quantity))
                held[user.name][number] += quantity
        limits.validate()
        used = limits.usages()
        assert all(
            used.get(user.name, EMPTY).get("memory") == sum(held[user.name].values()) for user in USERS
        )


# ---------------------------------------------------------------------------------- a new configuration


def test_a_changed_limit_counts_from_then_on() -> None:
    """A new limit is applied to what is used already, and a lifted one no longer holds."""
    limits = user_limits(a_root(a=(a_limit(users=("bob",), quantity=35),)))
    limits.increase("root.a", "app", BOB, memory(30))

    limits.update(a_root(a=(a_limit(users=("bob",), quantity=55),)))
    changed = limits.headroom("root.a", "app", BOB)
    limits.update(a_root())

    assert (memory(25), None) == (changed, limits.headroom("root.a", "app", BOB))
    assert {"bob": memory(30)} == limits.usages()
    limits.validate()


def test_users_and_groups_go_with_their_limits() -> None:
    """Who is only listed because of a limit is dropped with it."""
    limits = user_limits(a_root(a_limit(users=("bob",), groups=("dev",), quantity=35)))

    limits.update(a_root())

    assert ([], []) == (users_shown(limits), groups_shown(limits))


def test_a_new_wildcard_is_applied_to_all_known_users() -> None:
    """After a reload each known user is listed with the wildcard limit, also where they never were."""
    limits = user_limits()
    limits.increase("root.b", "app", BOB, TEN)

    limits.update(a_root(a=(a_limit(users=("*",), applications=4),)))

    used = {"resourceUsage": {"memory": 10, "vcore": 1000}, "runningApplications": ["app"]}
    children = [{"queuePath": "root.a", "maxApplications": 4}, {"queuePath": "root.b", **used}]
    assert {
        "userName": "bob",
        "queues": {"queuePath": "root", "children": children, **used},
    } == users_shown(limits, "bob")[0]


def test_a_changed_wildcard_counts_for_who_is_known() -> None:
    """Another wildcard limit is applied to what is used already, and a lifted one no longer holds."""
    limits = user_limits(a_root(a_limit(users=("*",), quantity=35)))
    limits.increase("root.a", "app", EVE, memory(30))

    limits.update(a_root(a_limit(users=("*",), quantity=55)))
    changed = limits.headroom("root.a", "app", EVE)
    limits.update(a_root())

    assert (memory(25), None) == (changed, limits.headroom("root.a", "app", EVE))
    limits.validate()


def test_a_new_wildcard_leaves_a_limit_by_name_alone() -> None:
    """Who has a limit of their own keeps it, also where the wildcard gives less."""
    limits = user_limits(a_root(a_limit(users=("bob",), quantity=35)))
    limits.increase("root.a", "app", BOB, memory(10))

    limits.update(a_root(a_limit(users=("bob",), quantity=35), a_limit(users=("*",), quantity=15)))

    assert memory(25) == limits.headroom("root.a", "app", BOB)


def test_who_loses_a_limit_by_name_has_that_of_the_wildcard() -> None:
    """The wildcard is for everybody who has no other limit there, from the reload on."""
    wildcard = a_limit(users=("*",), quantity=15)
    limits = user_limits(a_root(a_limit(users=("bob",), quantity=35), wildcard))
    limits.increase("root.a", "app", BOB, memory(10))

    limits.update(a_root(wildcard))

    assert memory(5) == limits.headroom("root.a", "app", BOB)


def test_a_user_first_seen_is_listed_only_where_looked_at() -> None:
    """The wildcard limit of another queue is not listed for a user who is new."""
    limits = user_limits(a_root(a=(a_limit(users=("*",), applications=4),)))

    limits.headroom("root.b", "app", BOB)

    queues = {"queuePath": "root", "children": [{"queuePath": "root.b"}]}
    assert {"userName": "bob", "queues": queues} == users_shown(limits, "bob")[0]


def test_a_group_that_is_no_longer_limited_hands_its_applications_over() -> None:
    """An application finds its next group with all it uses, and both sums stay right."""
    both = a_limit(groups=("dev",), quantity=50), a_limit(groups=("*",), quantity=60)
    limits = user_limits(a_root(a=both, b=both))
    limits.increase("root.a", "one", BOB, memory(20))
    limits.increase("root.b", "two", BOB, memory(7))
    limits.headroom("root.a", "waiting", BOB)

    limits.update(a_root(a=(a_limit(groups=("ops",), quantity=50), both[1]), b=both))

    assert [("*", "one"), ("*", "waiting"), ("dev", "two")] == sorted(
        (str(limits.group_of("root", application, BOB)), application)
        for application in ("one", "two", "waiting")
    )
    assert memory(40) == limits.headroom("root.a", "one", BOB)
    limits.validate()


def test_an_application_may_be_left_without_a_group() -> None:
    """When no group of the user is limited any more, the application counts against none, for good."""
    limits = user_limits(a_root(a=(a_limit(groups=("dev",), quantity=50),)))
    limits.increase("root.a", "one", BOB, memory(20))

    limits.update(a_root())
    limits.update(a_root(a=(a_limit(groups=("dev",), quantity=50),)))
    limits.decrease("root.a", "one", BOB, memory(20), remove_application=False)

    assert limits.headroom("root.a", "one", BOB) is None
    limits.validate()


def test_a_group_limited_further_up_keeps_its_applications() -> None:
    """An application stays with its group while any level above still limits the group."""
    group = a_limit(groups=("dev",), quantity=50)
    limits = user_limits(a_root(group, a=(group,)))
    limits.increase("root.a", "one", BOB, memory(20))

    limits.update(a_root(group, a=(a_limit(groups=("ops",), quantity=1), a_limit(groups=("*",), quantity=1))))

    assert memory(30) == limits.headroom("root.a", "one", BOB)
    limits.validate()

"""What a new configuration does to the usage and the limits of users and groups."""

from __future__ import annotations

from support.model.limit_builders import (
    BOB,
    EVE,
    TEN,
    a_limit,
    a_root,
    groups_shown,
    memory,
    user_limits,
    users_shown,
)


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

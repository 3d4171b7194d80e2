"""Limits as the configuration states them, by queue path and holder."""

from __future__ import annotations

from licorne.model.configuration.limit_kinds import MAX_RESOURCES
from licorne.model.configuration.positions import Position
from licorne.model.configuration.schema import LimitConfig, QueueConfig
from licorne.model.limits.limits import Limit, Limits, levels
from licorne.model.resources.resource import Resource

TEN = Resource({"memory": 10})
TWENTY = Resource({"memory": 20})


def for_users(*users: str, resources: Resource = TEN, applications: int = 0) -> LimitConfig:
    return LimitConfig(users=users, resources={"maxresources": resources}, max_applications=applications)


def for_groups(*groups: str, resources: Resource = TEN) -> LimitConfig:
    return LimitConfig(groups=groups, resources={"maxresources": resources})


def limits_at_root(*limits: LimitConfig) -> Limits:
    return Limits.of(QueueConfig(name="root", limits=limits))


def test_the_levels_of_a_queue_are_its_path_and_all_above() -> None:
    """The levels of a queue come from the root down to the queue itself."""
    assert ("root", "root.a", "root.a.b") == levels("root.a.b")


def test_a_limit_of_zeros_is_no_limit_to_resources() -> None:
    """Maximum resources that are all zero limit nothing."""
    limits = limits_at_root(for_users("bob", resources=Resource({"memory": 0}), applications=2))

    assert (Limit((), 2), False) == limits.limit_of("user", "bob", "root")


def test_a_user_without_a_limit_has_that_of_the_wildcard() -> None:
    """The wildcard's limit is that of each user who has none in this queue."""
    limits = limits_at_root(for_users("bob"), for_users("*", resources=TWENTY))

    assert (Limit(((MAX_RESOURCES, TWENTY),)), True) == limits.limit_of("user", "dan", "root")


def test_a_named_limit_goes_before_the_wildcard() -> None:
    """A user with a limit of their own is not under the wildcard, even if it gives more."""
    limits = limits_at_root(for_users("bob"), for_users("*", resources=TWENTY))

    assert (Limit(((MAX_RESOURCES, TEN),)), False) == limits.limit_of("user", "bob", "root")


def test_a_group_never_has_the_limit_of_the_wildcard() -> None:
    """The group `*` is a holder of its own and lends its limit to no other group."""
    limits = limits_at_root(for_groups("dev"), for_groups("*", resources=TWENTY))

    assert (None, False) == limits.limit_of("group", "ops", "root")
    assert (Limit(((MAX_RESOURCES, TWENTY),)), False) == limits.limit_of("group", "*", "root")


def test_a_limit_knows_its_place_in_the_file() -> None:
    """A limit can be shown to who wrote it."""
    place = Position(7, 9)

    limits = limits_at_root(LimitConfig(users=("bob",), resources={"maxresources": TEN}, position=place))

    assert (Limit(((MAX_RESOURCES, TEN),), 0, place), False) == limits.limit_of("user", "bob", "root")


def test_one_entry_may_limit_users_and_groups() -> None:
    """Users and groups of one entry each have the whole limit."""
    limits = limits_at_root(
        LimitConfig(users=("bob", "dan"), groups=("dev",), resources={"maxresources": TEN})
    )

    assert ("bob", "dan") == limits.named("user")
    assert ("dev",) == limits.named("group")


def test_the_wildcard_is_a_named_group_but_no_named_user() -> None:
    """The group `*` is listed as soon as it is limited; the user `*` is no user."""
    limits = limits_at_root(for_users("bob"), for_users("*"), for_groups("dev"), for_groups("*"))

    assert ("bob",) == limits.named("user")
    assert ("dev", "*") == limits.named("group")


def test_a_named_group_goes_before_the_wildcard_group() -> None:
    """A user in a named group does not count against `*`."""
    limits = limits_at_root(for_groups("dev"), for_groups("*"))

    assert limits.group_of("root", ("ops", "dev")) == "dev"


def test_the_queue_nearest_to_the_application_decides_the_group() -> None:
    """The search goes from the queue upwards: a wildcard nearby goes before a named group far away."""
    near = QueueConfig(name="a", limits=(for_groups("dev"), for_groups("*")))
    limits = Limits.of(QueueConfig(name="root", limits=(for_groups("ops"),), queues=(near,)))

    assert limits.group_of("root.a", ("ops",)) == "*"
    assert limits.group_of("root.b", ("ops",)) == "ops"


def test_a_user_in_no_group_is_not_in_the_wildcard_group() -> None:
    """Without groups there is no group to count against."""
    limits = limits_at_root(for_groups("dev"), for_groups("*"))

    assert limits.group_of("root", ()) is None


def test_there_may_be_no_group_to_count_against() -> None:
    """No group of the user is limited."""
    assert limits_at_root(for_groups("dev")).group_of("root.a", ("ops",)) is None


def test_limits_of_a_group_count_from_above_too() -> None:
    """A group is limited at a queue if it is limited there or in a queue above."""
    queue = QueueConfig(name="a", limits=(for_groups("dev"),))
    limits = Limits.of(QueueConfig(name="root", queues=(queue, QueueConfig(name="b"))))

    assert limits.limits_group_at("root.a.below", "dev")
    assert not limits.limits_group_at("root.b", "dev")


def test_whether_any_limit_is_stated_is_known() -> None:
    """A configuration without limits is recognised at a glance."""
    assert not Limits.of(QueueConfig(name="root", queues=(QueueConfig(name="a"),))).are_any
    assert limits_at_root(for_users("bob")).are_any

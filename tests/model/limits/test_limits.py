"""Limits as the configuration states them, by queue path and holder."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from licorne.model.configuration.problems import Position
from licorne.model.configuration.schema import MAX_RESOURCES, LimitConfig, QueueConfig
from licorne.model.limits.limits import HolderKind, Limit, Limits, levels
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


PLACE: Final = Position(7, 9)
AT_ROOT: Final = limits_at_root(
    for_users("bob"),
    for_users("*", resources=TWENTY),
    for_users("eve", resources=Resource({"memory": 0}), applications=2),
    LimitConfig(users=("ann",), resources={"maxresources": TEN}, position=PLACE),
    for_groups("dev"),
    for_groups("*", resources=TWENTY),
)
OF_TEN: Final = Limit(((MAX_RESOURCES, TEN),))
OF_TWENTY: Final = Limit(((MAX_RESOURCES, TWENTY),))
HOLDERS: Final[dict[str, tuple[HolderKind, str, tuple[Limit | None, bool]]]] = {
    "maximum resources that are all zero limit nothing": ("user", "eve", (Limit((), 2), False)),
    "a user without a limit has that of the wildcard": ("user", "dan", (OF_TWENTY, True)),
    "a named limit goes before the wildcard, even if that gives more": ("user", "bob", (OF_TEN, False)),
    "a limit knows its place in the file": ("user", "ann", (replace(OF_TEN, position=PLACE), False)),
    "a group never has the limit of the wildcard": ("group", "ops", (None, False)),
    "the group `*` is a holder of its own": ("group", "*", (OF_TWENTY, False)),
}


@pytest.mark.parametrize(("kind", "name", "limit"), HOLDERS.values(), ids=HOLDERS)
def test_each_holder_has_its_limit(kind: HolderKind, name: str, limit: tuple[Limit | None, bool]) -> None:
    """With whether it is that of the wildcard."""
    assert limit == AT_ROOT.limit_of(kind, name, "root")


GROUPS: Final[dict[str, tuple[str, tuple[str, ...], str | None]]] = {
    "a named group goes before the wildcard group": ("root.a", ("ops", "dev"), "dev"),
    "a wildcard nearby goes before a named group far away": ("root.a", ("ops",), "*"),
    "a group that is limited above counts below": ("root.b", ("ops",), "ops"),
    "a user in no group is not in the wildcard group": ("root.a", (), None),
    "there may be no group to count against": ("root.b", ("dev",), None),
}


@pytest.mark.parametrize(("path", "groups", "group"), GROUPS.values(), ids=GROUPS)
def test_the_queue_nearest_to_the_application_decides_the_group(
    path: str, groups: tuple[str, ...], group: str | None
) -> None:
    """The search goes from the queue upwards."""
    near = QueueConfig(name="a", limits=(for_groups("dev"), for_groups("*")))
    limits = Limits.of(QueueConfig(name="root", limits=(for_groups("ops"),), queues=(near,)))

    assert group == limits.group_of(path, groups)


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

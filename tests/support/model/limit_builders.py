"""Limits of users and groups with defaults, and the books that keep them."""

from __future__ import annotations

from typing import Any

from support.model.builders import memory

from licorne.model.configuration.schema import LimitConfig, QueueConfig
from licorne.model.limits.usage_tree import UsageTree, UsageView, usage_rows
from licorne.model.limits.user_limits import UserLimits, usage_views
from licorne.model.resources.resource import Resource, fits_undefined_unlimited
from licorne.model.values.messages import User
from licorne.proxy.core.documents.queues import group_document, user_document

BOB = User("bob", ("dev",))
DAN = User("dan", ("ops",))
EVE = User("eve", ("qa",))
TEN = Resource({"memory": 10, "vcore": 1000})


def a_limit(
    *, users: tuple[str, ...] = (), groups: tuple[str, ...] = (), quantity: int = 0, applications: int = 0
) -> LimitConfig:
    """Return a limit of memory, of applications, or both."""
    return LimitConfig(
        users=users,
        groups=groups,
        resources={"maxresources": memory(quantity)} if quantity else {},
        max_applications=applications,
    )


def a_root(
    *root: LimitConfig, a: tuple[LimitConfig, ...] = (), b: tuple[LimitConfig, ...] = ()
) -> QueueConfig:
    """Return the queues `root`, `root.a` and `root.b` with their limits."""
    queues = (QueueConfig(name="a", limits=a), QueueConfig(name="b", limits=b))
    return QueueConfig(name="root", queues=queues, limits=root)


def user_limits(root: QueueConfig | None = None) -> UserLimits:
    limits = UserLimits()
    limits.update(a_root() if root is None else root)
    return limits


def fill(limits: UserLimits, queue_path: str, application_id: str, user: User, asks: int) -> int:
    """Add asks of ten as long as the headroom has room, as a scheduler does; return how many fitted."""
    for placed in range(asks):
        headroom = limits.headroom(queue_path, application_id, user)
        if not fits_undefined_unlimited(headroom, TEN):
            return placed
        limits.increase(queue_path, application_id, user, TEN)
    return asks


def tree_shown(tree: UsageTree) -> Any:
    """Return the document of a usage tree's root queue, with those below it."""
    return group_document(UsageView("holder", (), usage_rows(tree)))["queues"]


def users_shown(limits: UserLimits, *names: str) -> list[Any]:
    """Return the documents of users by name: of these if they are known, or of all."""
    return [*map(user_document, usage_views(limits, "user", names or None))]


def groups_shown(limits: UserLimits, *names: str) -> list[Any]:
    """Return the documents of groups, likewise."""
    return [*map(group_document, usage_views(limits, "group", names or None))]

"""The accounts of users: what each one uses, and which group each application counts against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from ..resources.resource import EMPTY, Resource
from .limits import Limits
from .usage_tree import UsageTree

__all__ = ["Link", "SavedLimits", "UserAccount"]


@final
class Link:
    """Which group an application counts against, and what it uses of it; `None` is no group, for good."""

    __slots__ = ("group", "groups", "queue_path", "usage")

    def __init__(self, queue_path: str, groups: tuple[str, ...], group: str | None) -> None:
        self.queue_path = queue_path
        self.groups = groups
        self.group = group
        self.usage: Resource = EMPTY
        """Kept for applications with a group only: it is what moves when the group changes."""

    def copy(self) -> Link:
        """Return an independent copy."""
        link = Link(self.queue_path, self.groups, self.group)
        link.usage = self.usage
        return link


@final
class UserAccount:
    """One user: the usage tree, and the link of each application whose limits were asked for."""

    __slots__ = ("links", "tree")

    def __init__(self, tree: UsageTree) -> None:
        self.tree = tree
        self.links: dict[str, Link] = {}

    def copy(self) -> UserAccount:
        """Return an independent copy."""
        account = UserAccount(self.tree.copy())
        account.links = {name: link.copy() for name, link in self.links.items()}
        return account


@final
@dataclass(frozen=True, slots=True)
class SavedLimits:
    """The limits of a partition at one moment, and their usage."""

    limits: Limits
    users: Mapping[str, UserAccount]
    groups: Mapping[str, UsageTree]

    def uses(self) -> Mapping[str, tuple[Resource, tuple[str, ...], tuple[str, ...]]]:
        """Return what users use, and with which applications."""
        return {
            name: (account.tree.usage, account.tree.applications, tuple(account.links))
            for name, account in self.users.items()
            if account.links
        }

"""The usage of each user and group of one partition, and whether their limits allow more.

An application counts against its user and against at most one group. The group is chosen once, when the
limits of the application are first asked for, and kept: an application whose user was in no limited group
then stays without one. It is decided again only when the configuration no longer limits the group anywhere on
the application's path; what the application uses is counted for the new group then.

There is one of these for each partition. The recorded core had one for all partitions, whose reloads
overwrote each other's limits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from ..configuration.schema import QueueConfig
from ..marks import Marks
from ..resources.comparisons import equals
from ..resources.resource import EMPTY, Resource, add, component_wise_min, fits_undefined_unlimited, subtract
from ..values.events import ChangeType
from ..values.facts import EventReports, unheard
from ..values.messages import User
from .limits import HolderKind, Limits
from .usage_tree import (
    NOTHING_HELD,
    ApplicationLimitBlocker,
    Held,
    LimitBlocker,
    UsageTree,
    UsageView,
    barring_queue,
    room_in,
    rooms_of,
    usage_rows,
)


@final
class Link:
    """The group that an application counts against, and its usage of it; `None` means no group, for good."""

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


_NO_LINKS: Final[Mapping[str, Link]] = {}


@final
class UserLimits:
    """The usage and limits of all users and groups of one partition.

    Queue paths are lower case and start with `root`. `headroom` and `can_run` also write: the first
    question about an application opens the account of its user and decides its group, and both are visible.
    """

    __slots__ = ("_events", "_groups", "_limits", "_users")

    MARKS: Final = Marks(
        writes=(
            "update",
            "restore",
            "increase",
            "try_increase",
            "take_back",
            "decrease",
            "drop_unused",
            "headroom",
            "can_run",
        )
    )

    def __init__(self, events: EventReports | None = None) -> None:
        self._events = events or unheard()
        self._limits = Limits({})
        self._users: dict[str, UserAccount] = {}
        self._groups: dict[str, UsageTree] = {}

    # ---------------------------------------------------------------------------- the configuration

    def update(self, root: QueueConfig) -> None:
        """Apply the limits of a new configuration; usage and running applications stay.

        Users and groups with a specific limit are listed from now on. A user is dropped when no limit
        and no application is left, a group when no limit is.
        """
        before = self._limits
        limits = self._limits = Limits.of(root)
        for name in limits.named("user"):
            self._users.setdefault(name, UserAccount(UsageTree("user", name, limits)))
        for name in limits.named("group"):
            self._groups.setdefault(name, UsageTree("group", name, limits))
        for account in self._users.values():
            account.tree.replace_limits(limits)
        for tree in self._groups.values():
            tree.replace_limits(limits)
        report_limits(self._events, before, limits, self._users)
        self._decide_groups_anew()
        self._users = {name: account for name, account in self._users.items() if _is_kept(account)}
        kept = frozenset(limits.named("group"))
        self._groups = {name: tree for name, tree in self._groups.items() if name in kept}

    def saved(self) -> SavedLimits:
        """Return copies of all that `update` changes."""
        users = {name: account.copy() for name, account in self._users.items()}
        groups = {name: tree.copy() for name, tree in self._groups.items()}
        return SavedLimits(self._limits, users, groups)

    def restore(self, saved: SavedLimits, root: QueueConfig) -> None:
        """Undo an `update`.

        Args:
            saved: The state before it, given to this method only once.
            root: The configuration of before; applied again where usage has changed since.
        """
        if SavedLimits(self._limits, self._users, self._groups).uses() != saved.uses():
            UserLimits.update(self, root)
            return
        report_limits(self._events, self._limits, saved.limits, saved.users)
        self._limits, self._users, self._groups = saved.limits, dict(saved.users), dict(saved.groups)

    @property
    def is_limited(self) -> bool:
        """Whether any queue has a limit for a user or a group."""
        return self._limits.are_any

    # --------------------------------------------------------------------------------- the hot path

    def increase(self, queue_path: str, application_id: str, user: User, resource: Resource) -> str | None:
        """Count what an application was given; from the first time on it counts as running.

        Returns:
            The group that it counts against, if any.

        Nothing is refused here: recovered allocations count whether they fit or not. A resize may bring
        negative quantities, as long as nothing falls below zero by it.
        """
        account, link = self._open(queue_path, application_id, user)
        account.tree.increase(queue_path, application_id, resource)
        if link.group is not None:
            link.usage = add(link.usage, resource)
            self._groups[link.group].increase(queue_path, application_id, resource)
        return link.group

    def try_increase(
        self, queue_path: str, application_id: str, user: User, resource: Resource
    ) -> tuple[bool, str | None] | None:
        """Count the same if it is within all limits, in one atomic step.

        Returns:
            Whether the application counts as running from now on, and did not before, and its group; `None`
            if it is not within the limits, and nothing was counted.
        """
        if self._limits.are_any:
            headroom = UserLimits.headroom(self, queue_path, application_id, user)
            if not fits_undefined_unlimited(headroom, resource):
                return None
        account, _ = self._open(queue_path, application_id, user)
        starts = not account.tree.is_running(application_id)
        return starts, UserLimits.increase(self, queue_path, application_id, user, resource)

    def take_back(
        self, queue_path: str, application_id: str, user: User, resource: Resource, *, starts: bool
    ) -> None:
        """Undo `try_increase`, which has returned `starts` first; the group stays linked."""
        account = self._users[user.name]
        self._take_off(account, queue_path, application_id, resource, ends=starts)
        account.tree.touch(queue_path)

    def decrease(
        self,
        queue_path: str,
        application_id: str,
        user: User,
        resource: Resource,
        *,
        remove_application: bool,
    ) -> str | None:
        """Subtract what an application gave back; return the group that it counted against.

        With `remove_application` the application no longer counts as running and its group is dropped;
        do so once for each application that ends, with `EMPTY` if it never ran. Nodes of queues that were
        asked for and never used stay listed, as in the recorded core, until the user has nothing else.
        """
        account = self._users.get(user.name)
        if account is None or application_id not in account.links:
            assert not any(resource.values()), (
                f"{resource!r} of application {application_id} was never given to {user.name}: please report"
            )
            return None
        group = account.links[application_id].group
        self._take_off(account, queue_path, application_id, resource, ends=remove_application)
        if remove_application:
            del account.links[application_id]
            self._events.note_link(ChangeType.REMOVE, application_id, group)
            if not _is_kept(account):
                del self._users[user.name]
        return group

    def drop_unused(self, queue_path: str, user: User) -> None:
        """Drop the nodes of a user in a queue, if the user has nothing there."""
        account = self._users.get(user.name)
        if account is None:
            return
        account.tree.drop_unused(queue_path)
        if not _is_kept(account):
            del self._users[user.name]

    def headroom(
        self,
        queue_path: str,
        application_id: str,
        user: User,
        held: tuple[Held, Held] = (NOTHING_HELD, NOTHING_HELD),
    ) -> Resource | None:
        """Return what an application may still get within the limits of its user and its group.

        Args:
            queue_path: Its queue.
            application_id: The application.
            user: Its user.
            held: Resources that are kept for others of the user, and of the group; they count as used.

        Returns:
            The least that any level leaves of each limited type, possibly negative; `None` without limits.
        """
        account, link = self._open(queue_path, application_id, user)
        account.tree.touch(queue_path)
        if not self._limits.are_any:
            return None
        of_user, of_group = held
        headroom = account.tree.headroom(queue_path, of_user)
        if link.group is None:
            return headroom
        shared = self._groups[link.group].headroom(queue_path, of_group)
        return shared if headroom is None else component_wise_min(headroom, shared)

    def can_run(self, queue_path: str, application_id: str, user: User) -> bool:
        """Return whether the numbers of applications of its user and its group let an application run."""
        account, link = self._open(queue_path, application_id, user)
        account.tree.touch(queue_path)
        if not self._limits.are_any:
            return True
        return account.tree.can_run(queue_path, application_id) and (
            link.group is None or self._groups[link.group].can_run(queue_path, application_id)
        )

    # ---------------------------------------------------------------------------------- to explain

    def blockers(
        self,
        queue_path: str,
        application_id: str,
        user: User,
        resource: Resource,
        held: tuple[Held, Held] = (NOTHING_HELD, NOTHING_HELD),
        *,
        if_unused: bool = False,
    ) -> tuple[LimitBlocker, ...]:
        """Return every limit that the resource does not fit under, the user's first; changes nothing.

        With `if_unused` nothing counts as used: what does not fit then never does.
        """
        return tuple(
            blocker
            for tree, kept in zip(self._holders(queue_path, application_id, user), held, strict=False)
            for blocker in tree.blockers(queue_path, resource, kept, if_unused=if_unused)
        )

    def application_blockers(
        self, queue_path: str, application_id: str, user: User
    ) -> tuple[ApplicationLimitBlocker, ...]:
        """Return every limit that does not let the application run, those of the user first."""
        return tuple(
            blocker
            for tree in self._holders(queue_path, application_id, user)
            for blocker in tree.application_blockers(queue_path, application_id)
        )

    def group_of(self, queue_path: str, application_id: str, user: User) -> str | None:
        """Return the group an application counts against, or would count against; changes nothing."""
        account = self._users.get(user.name)
        link = None if account is None else account.links.get(application_id)
        return self._limits.group_of(queue_path, user.groups) if link is None else link.group

    # ------------------------------------------------------------------------------------ views

    def usages(self) -> dict[str, Resource]:
        """Return what each known user has in all queues together, by name; the caller owns the dict."""
        return {name: account.tree.usage for name, account in sorted(self._users.items())}

    def validate(self) -> None:
        """Check what must hold at any time.

        Raises:
            AssertionError: An invariant does not hold; the message names it.
        """
        used: dict[str, Resource] = {}
        running: dict[str, list[str]] = {}
        for account in self._users.values():
            account.tree.validate()
            for application_id in account.tree.applications:
                assert application_id in account.links, f"running application {application_id} has no link"
            for application_id, link in account.links.items():
                if link.group is None:
                    continue
                used[link.group] = add(used.get(link.group), link.usage)
                if account.tree.is_running(application_id):
                    running.setdefault(link.group, []).append(application_id)
        assert used.keys() <= self._groups.keys(), f"groups {sorted(used)} are linked, not all are known"
        for name, tree in self._groups.items():
            tree.validate()
            assert equals(tree.usage, used.get(name, EMPTY)), (
                f"group {name} uses {tree.usage!r}, its applications {used.get(name, EMPTY)!r}"
            )
            assert sorted(running.get(name, ())) == list(tree.applications), (
                f"group {name} runs {tree.applications}, linked are {sorted(running.get(name, ()))}"
            )

    # -------------------------------------------------------------------------------------- inside

    def _open(self, queue_path: str, application_id: str, user: User) -> tuple[UserAccount, Link]:
        """Return the account of a user and the link of the application, new ones for the first question."""
        account = self._users.get(user.name)
        if account is None:
            tree = UsageTree("user", user.name, self._limits)
            account = self._users[user.name] = UserAccount(tree)
        link = account.links.get(application_id)
        if link is None:
            group = self._limits.group_of(queue_path, user.groups)
            link = account.links[application_id] = Link(queue_path, user.groups, group)
            self._events.note_link(ChangeType.SET, application_id, group)
        return account, link

    def _take_off(
        self, account: UserAccount, queue_path: str, application_id: str, resource: Resource, *, ends: bool
    ) -> None:
        """Count less for the user and the group, and the application no longer as running if it ends."""
        account.tree.decrease(queue_path, application_id, resource, remove_application=ends)
        link = account.links[application_id]
        if link.group is not None:
            link.usage = subtract(link.usage, resource)
            self._groups[link.group].decrease(queue_path, application_id, resource, remove_application=ends)

    def _holders(self, queue_path: str, application_id: str, user: User) -> tuple[UsageTree, ...]:
        """Return the trees that an application counts against; for unknown ones temporary trees."""
        account = self._users.get(user.name)
        own = UsageTree("user", user.name, self._limits) if account is None else account.tree
        group = self.group_of(queue_path, application_id, user)
        return (own,) if group is None else (own, self._groups[group])

    def _decide_groups_anew(self) -> None:
        """Decide the group again of each application whose group is no longer limited on its path."""
        for account in self._users.values():
            for application_id, link in account.links.items():
                if link.group is None or self._limits.limits_group_at(link.queue_path, link.group):
                    continue
                running = account.tree.is_running(application_id)
                if running:
                    self._groups[link.group].decrease(
                        link.queue_path, application_id, link.usage, remove_application=True
                    )
                self._events.note_link(ChangeType.REMOVE, application_id, link.group)
                link.group = self._limits.group_of(link.queue_path, link.groups)
                self._events.note_link(ChangeType.SET, application_id, link.group)
                if link.group is None:
                    link.usage = EMPTY
                elif running:
                    self._groups[link.group].increase(link.queue_path, application_id, link.usage)


def rooms_of_levels(
    limits: UserLimits, queue_path: str, application_id: str, user: User
) -> Iterator[tuple[str, str, str, Resource]]:
    """Walk what the limits of an application's user and group leave, see `rooms_of`; changes nothing."""
    holders = limits._holders(queue_path, application_id, user) if limits.is_limited else ()  # noqa: SLF001
    return (room for tree in holders for room in rooms_of(tree, queue_path))


def barring_limit(
    limits: UserLimits, queue_path: str, application_id: str, user: User, size: Resource
) -> tuple[HolderKind, str, str] | None:
    """Return a limit that leaves an application too little for a size: its kind, its holder and its queue."""
    for tree in limits._holders(queue_path, application_id, user):  # noqa: SLF001 - of this module
        if (path := barring_queue(tree, queue_path, size)) is not None:
            return tree.kind, tree.name, path
    return None


def room_in_limit(limits: UserLimits, kind: HolderKind, name: str, queue_path: str) -> Resource | None:
    """Return what a limit leaves of each type, `None` without one."""
    account, group = limits._users.get(name), limits._groups.get(name)  # noqa: SLF001 - of this module
    tree = group if kind == "group" else account and account.tree
    return tree and room_in(tree, queue_path)


def _is_kept(account: UserAccount) -> bool:
    """Return whether a user is still listed.

    A user of whom nothing is left but the root is dropped at once, even while applications wait, as in the
    recorded core: the next question about one of them opens the account again. One with listed queues is
    dropped when no application is known and nothing is limited: nothing would remove those queues later.
    """
    return not account.tree.is_bare() and (bool(account.links) or not account.tree.is_idle())


def holder_names(limits: UserLimits, kind: HolderKind) -> tuple[str, ...]:
    """Return the names of all users, or of all groups."""
    return tuple(limits._users if kind == "user" else limits._groups)  # noqa: SLF001 - of this module


def usage_views(
    limits: UserLimits, kind: HolderKind, names: Iterable[str] | None = None
) -> tuple[UsageView, ...]:
    """Return what users or groups use, with the limits; those that are not known are left out.

    Args:
        limits: The usage and limits of all.
        kind: Whether the names are those of users or of groups.
        names: The names; all by name, if it is `None`.
    """
    users, groups = limits._users, limits._groups  # noqa: SLF001 - of this module
    if kind == "group":
        chosen = sorted(groups) if names is None else names
        return tuple(_usage_view(name, groups[name]) for name in chosen if name in groups)
    chosen = sorted(users) if names is None else names
    return tuple(_usage_view(name, users[name].tree, users[name].links) for name in chosen if name in users)


def _usage_view(name: str, tree: UsageTree, links: Mapping[str, Link] = _NO_LINKS) -> UsageView:
    groups = tuple(
        (application, link.group) for application, link in sorted(links.items()) if link.group is not None
    )
    return UsageView(name, groups, usage_rows(tree))


def report_limits(events: EventReports, before: Limits, after: Limits, users: Collection[str]) -> None:
    """Report each limit that a configuration sets, also one that does not change, and each that it removes.

    The wildcard of users counts for those who are known and have no specific limit.
    """
    if not events.are_kept:
        return
    for path in before.paths():
        kept = after.holders_at(path, users)
        for detail, name in before.holders_at(path, users):
            if (detail, name) not in kept:
                events.note(ChangeType.REMOVE, detail, name, reference_id=path)
    for path in after.paths():
        for detail, name in after.holders_at(path, users):
            events.note(ChangeType.SET, detail, name, reference_id=path)

"""The limits of users and groups as the configuration states them, looked up by queue path.

A limit belongs to a queue and to a *holder*: a user or a group. The holder `*` is the wildcard, and means
two different things. For users it is a limit that each user without an own limit has separately. For groups
it is one holder named `*`, shared by all applications whose user is in no named group.

Paths are lower case here, as queues are: the recorded core kept the spelling of the file, and limits on a
queue written with capitals never applied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, final

from ..configuration.names import WILDCARD
from ..configuration.problems import NOWHERE, Position
from ..configuration.schema import LIMIT_KINDS, MAX_RESOURCES, LimitConfig, LimitKind, QueueConfig
from ..resources.resource import EMPTY, Resource
from ..values.events import ChangeDetail

HolderKind: TypeAlias = Literal["user", "group"]


def levels(queue_path: str) -> tuple[str, ...]:
    """Return the paths of a queue and all queues above it, the root first."""
    paths: list[str] = []
    for name in queue_path.split("."):
        paths.append(f"{paths[-1]}.{name}" if paths else name)
    return tuple(paths)


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of one holder in one queue and all below it.

    `resources` are those of each kind of limit that is set; `max_applications` 0 sets none to applications.
    """

    resources: tuple[tuple[LimitKind, Resource], ...] = ()
    max_applications: int = 0
    position: Position = NOWHERE
    positions: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)
    """Where its settings stand, by the names of `LimitConfig.positions`."""

    @staticmethod
    def of(config: LimitConfig) -> Limit:
        """Return the limit that an entry of the configuration states; only zeros mean no limit."""
        resources = tuple(
            (kind, config.resource(kind)) for kind in LIMIT_KINDS if any(config.resource(kind).values())
        )
        return Limit(resources, config.max_applications, config.position, config.positions)

    @property
    def max_resources(self) -> Resource:
        """The limit of resources, `EMPTY` without one."""
        return next((most for kind, most in self.resources if kind == MAX_RESOURCES), EMPTY)


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits that one queue states, by holder and in the order of the file; `*` is a key like others."""

    users: Mapping[str, Limit]
    groups: Mapping[str, Limit]

    @staticmethod
    def of(configs: Sequence[LimitConfig]) -> QueueLimits:
        """Collect the limits of a queue by holder."""
        users: dict[str, Limit] = {}
        groups: dict[str, Limit] = {}
        for config in configs:
            limit = Limit.of(config)
            users.update(dict.fromkeys(config.users, limit))
            groups.update(dict.fromkeys(config.groups, limit))
        return QueueLimits(users, groups)

    def group_of(self, groups: Sequence[str]) -> str | None:
        """Return the group that counts here: the first of the file among the given, else `*`, else none."""
        for name in self.groups:
            if name in groups:
                return name
        return WILDCARD if WILDCARD in self.groups else None


@final
class Limits:
    """All limits of a partition at one time: a value, replaced as a whole when the configuration changes."""

    __slots__ = ("_holders", "_queues", "are_any")

    def __init__(self, queues: Mapping[str, QueueLimits]) -> None:
        self._queues = queues
        self.are_any = bool(queues)
        """Whether any queue has a limit for a user or a group."""
        self._holders: dict[HolderKind, dict[str, None]] = {
            "user": {name: None for queue in queues.values() for name in queue.users},
            "group": {name: None for queue in queues.values() for name in queue.groups},
        }

    @staticmethod
    def of(root: QueueConfig) -> Limits:
        """Read the limits of a queue and all queues below it, without those that only give a weight."""
        limiting = (
            (path, [limit for limit in queue.limits if not limit.only_weighs])
            for path, queue in _with_paths(root, "")
        )
        return Limits({path: QueueLimits.of(limits) for path, limits in limiting if limits})

    def limit_of(self, kind: HolderKind, name: str, queue_path: str) -> tuple[Limit | None, bool]:
        """Return what limits a holder at a queue, and whether it is the wildcard that does.

        A user without a specific limit has the wildcard's. A group never has: the group `*` is a
        separate holder.
        """
        queue = self._queues.get(queue_path)
        if queue is None:
            return None, False
        if kind == "group":
            return queue.groups.get(name), False
        own = queue.users.get(name)
        if own is not None:
            return own, False
        wildcard = queue.users.get(WILDCARD)
        return wildcard, wildcard is not None

    def paths(self) -> tuple[str, ...]:
        """Return the paths of the queues that state limits, in the order of the file."""
        return tuple(self._queues)

    def holders_at(self, queue_path: str, users: Collection[str]) -> list[tuple[ChangeDetail, str]]:
        """Return whom a queue limits, users first; its wildcard those given without an own limit."""
        queue = self._queues.get(queue_path)
        if queue is None:
            return []
        names = [name for name in queue.users if name != WILDCARD]
        if WILDCARD in queue.users:
            names += [name for name in users if name not in queue.users]
        holders = [(ChangeDetail.UG_USER_LIMIT, name) for name in names]
        return holders + [(ChangeDetail.UG_GROUP_LIMIT, name) for name in queue.groups]

    def limited_paths(self, kind: HolderKind, name: str) -> tuple[str, ...]:
        """Return the paths of the queues that limit a holder, by name or by wildcard."""
        return tuple(path for path in self._queues if self.limit_of(kind, name, path)[0] is not None)

    def named(self, kind: HolderKind) -> tuple[str, ...]:
        """Return the holders with a specific limit, each once; the group `*` is one, the user `*` not."""
        return tuple(name for name in self._holders[kind] if kind == "group" or name != WILDCARD)

    def group_of(self, queue_path: str, groups: Sequence[str]) -> str | None:
        """Return the group whose limits an application in a queue counts against.

        From the queue upwards, the first queue decides that limits a group of the user, or `*`. A user in no
        group at all is not in `*` either.
        """
        if not groups or not self._queues:
            return None
        for path in reversed(levels(queue_path)):
            queue = self._queues.get(path)
            group = None if queue is None else queue.group_of(groups)
            if group is not None:
                return group
        return None

    def limits_group_at(self, queue_path: str, group: str) -> bool:
        """Return whether a group is limited at a queue or above it."""
        return any(self.limit_of("group", group, path)[0] is not None for path in levels(queue_path))


def _with_paths(queue: QueueConfig, parent_path: str) -> Iterator[tuple[str, QueueConfig]]:
    """Walk over a queue and all below it, depth first, with the lower-case path of each."""
    path = f"{parent_path}.{queue.name}".lower() if parent_path else queue.name.lower()
    yield path, queue
    for child in queue.queues:
        yield from _with_paths(child, path)

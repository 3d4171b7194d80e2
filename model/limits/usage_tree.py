"""The usage tree of one holder of limits, a user or a group, along the paths of the queues.

Each node is a queue in which the holder has, or had, applications: what is used in it and below, the
applications that run there, and the limit if there is one. Usage in a queue is usage in each queue
above it too. A node is made when the limits of the holder in its queue are first asked for. It is removed
when the last application of the holder that ran there ends, unless it has a limit or a queue below.

Usage is kept in plain dicts that change in place and hold no zeros: three levels then cost less to update
than one addition of immutable resources. A `Resource` is made only when a caller asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

from ..configuration.problems import Position
from ..resources.resource import EMPTY, Resource, add, fits_undefined_unlimited, subtract_only_existing
from .limits import HolderKind, Limit, Limits, levels

_ROOT: Final = "root"

Held = Mapping[str, Resource]
"""Resources that are kept for others of a holder, by the path of the queue: they count as used."""
NOTHING_HELD: Final[Held] = {}
_NOTHING_USED: Final[dict[str, int]] = {}
"""The usage where a kind of limit compares each ask alone."""


@dataclass(frozen=True, slots=True)
class LimitBlocker:
    """A limit of resources that something does not fit under, and what is used of it."""

    kind: HolderKind
    name: str
    queue_path: str
    key: str
    """The key of the kind of limit."""
    limit: Resource
    used: Resource
    position: Position
    positions: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ApplicationLimitBlocker:
    """A limit to the number of applications that is reached."""

    kind: HolderKind
    name: str
    queue_path: str
    limit: int
    running: int
    position: Position
    positions: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)


class UsageRow(NamedTuple):
    """The usage of a holder in one queue and below, and the limit to it there."""

    queue_path: str
    usage: tuple[tuple[str, int], ...]
    applications: tuple[str, ...]
    """Those that run here."""
    limit: Limit | None
    decayed_mean: Resource | None = None
    """The average use of a user here, in a leaf with a half-life that orders its users."""


class UsageView(NamedTuple):
    """The usage of a user or a group, queue by queue, and the limits to it."""

    name: str
    groups: tuple[tuple[str, str], ...]
    """Of a user: the applications that count for a group, by id, each with that group."""
    queues: tuple[UsageRow, ...]
    """Each after its parent; the root comes first."""


@final
class _Node:
    """One queue of the tree; `chain` is the path to it from the root, the node itself last."""

    __slots__ = ("applications", "chain", "children", "limit", "path", "usage", "wildcard")

    def __init__(self, path: str, above: tuple[_Node, ...]) -> None:
        self.path = path
        self.chain: tuple[_Node, ...] = (*above, self)
        self.children: dict[str, _Node] = {}
        self.usage: dict[str, int] = {}
        """The usage here and below, without zeros."""
        self.applications: dict[str, None] = {}
        """The applications that run here: a dict, because sets have no order."""
        self.limit: Limit | None = None
        self.wildcard = False

    def is_unused(self) -> bool:
        """Return whether nothing needs this node: no queue below, no application, no usage, no limit."""
        return not (self.children or self.applications or self.usage or self.limit)


@final
class UsageTree:
    """The usage of one user or group along the queues, and the limits to it.

    Args:
        kind: Whether the holder is a user or a group.
        name: The name of the holder; `*` is a group like others.
        limits: The limits of the partition, until `replace_limits` replaces them.
    """

    __slots__ = ("_limits", "_nodes", "_root", "kind", "name")

    def __init__(self, kind: HolderKind, name: str, limits: Limits) -> None:
        self.kind: Final = kind
        self.name: Final = name
        self._root = _Node(_ROOT, ())
        self._nodes: dict[str, _Node] = {_ROOT: self._root}
        self._limits = limits
        self._root.limit, self._root.wildcard = limits.limit_of(kind, name, _ROOT)

    def copy(self) -> UsageTree:
        """Return an independent copy."""
        tree = UsageTree(self.kind, self.name, self._limits)
        for path, node in self._nodes.items():
            twin = tree._grow(path)
            twin.usage = dict(node.usage)
            twin.applications = dict(node.applications)
        return tree

    # -------------------------------------------------------------------------------- what is used

    def touch(self, queue_path: str) -> None:
        """Make sure that a queue and all above it have nodes."""
        if queue_path not in self._nodes:
            self._grow(queue_path)

    def increase(self, queue_path: str, application_id: str, resource: Resource) -> None:
        """Add to what an application uses, and count it as running from now on.

        Args:
            queue_path: The queue of the application.
            application_id: The application.
            resource: The resources to add. A resize may bring negative quantities, as long as nothing falls
                below zero by it.
        """
        node = self._nodes.get(queue_path) or self._grow(queue_path)
        if application_id not in node.applications:  # An application in a queue is in those above it too.
            for level in node.chain:
                level.applications[application_id] = None
        entries = resource.items()
        for level in node.chain:
            usage = level.usage
            for name, quantity in entries:
                total = usage[name] + quantity if name in usage else quantity
                if total:
                    usage[name] = total
                else:
                    usage.pop(name, None)

    def decrease(
        self, queue_path: str, application_id: str, resource: Resource, *, remove_application: bool
    ) -> None:
        """Subtract usage of an application; with `remove_application` it no longer counts as running."""
        node = self._nodes.get(queue_path)
        if node is None or application_id not in node.applications:
            assert not any(resource.values()), self._lost(queue_path, application_id, resource)
            return
        entries = resource.items()
        for name, quantity in entries:
            assert quantity <= node.usage.get(name, 0), self._lost(queue_path, application_id, resource)
        for level in node.chain:
            usage = level.usage
            for name, quantity in entries:
                rest = usage.get(name, 0) - quantity
                if rest:
                    usage[name] = rest
                else:
                    usage.pop(name, None)
        if remove_application:
            for level in node.chain:
                level.applications.pop(application_id, None)
            self._drop_unused(node)

    def drop_unused(self, queue_path: str) -> None:
        """Remove a queue's node that nothing needs, with those above it."""
        node = self._nodes.get(queue_path)
        if node is not None:
            self._drop_unused(node)

    def is_running(self, application_id: str) -> bool:
        """Return whether an application counts as running."""
        return application_id in self._root.applications

    @property
    def usage(self) -> Resource:
        """The usage in all queues together."""
        return Resource(self._root.usage)

    @property
    def applications(self) -> tuple[str, ...]:
        """The applications that count as running, sorted."""
        return tuple(sorted(self._root.applications))

    def is_bare(self) -> bool:
        """Return whether nothing is left but an unused root."""
        return self._root.is_unused()

    def is_idle(self) -> bool:
        """Return whether nothing runs and nothing is limited; queues may still be listed."""
        return not self._root.applications and all(node.limit is None for node in self._nodes.values())

    # ---------------------------------------------------------------------------- what limits it

    def replace_limits(self, limits: Limits) -> None:
        """Replace the limits.

        All queues that limit the holder are listed from now on, also those never asked for. Nodes that only
        an old limit kept are removed.
        """
        self._limits = limits
        for path in limits.limited_paths(self.kind, self.name):
            self.touch(path)
        for node in tuple(self._nodes.values()):
            held = node.limit is not None
            node.limit, node.wildcard = limits.limit_of(self.kind, self.name, node.path)
            if held and node.limit is None:
                self._drop_unused(node)

    def headroom(self, queue_path: str, held: Held = NOTHING_HELD) -> Resource | None:
        """Return what may still be added in a queue: the least left on any level, `None` without limits.

        A quantity may be negative: usage that was recovered, or was there before the limit, is not refused.
        """
        node = self._nodes.get(queue_path) or self._grow(queue_path)
        return _least_left(node.chain, held)

    def can_run(self, queue_path: str, application_id: str) -> bool:
        """Return whether each level counts an application as running already, or allows one more."""
        node = self._nodes.get(queue_path) or self._grow(queue_path)
        for level in node.chain:
            limit = level.limit
            if (
                limit is not None
                and 0 < limit.max_applications <= len(level.applications)
                and application_id not in level.applications
            ):
                return False
        return True

    def blockers(
        self, queue_path: str, resource: Resource, held: Held = NOTHING_HELD, *, if_unused: bool = False
    ) -> tuple[LimitBlocker, ...]:
        """Return the limits that the resource does not fit under, from the root down; changes nothing.

        Args:
            queue_path: The queue.
            resource: The resources to be added there.
            held: Resources that are kept for others; they count as used.
            if_unused: Count nothing as used: what does not fit then never does.
        """
        limited = [
            (path, limit, EMPTY if if_unused else add(usage, held.get(path, EMPTY)))
            for path, limit, usage, _ in self._limited_levels(queue_path)
        ]
        return tuple(
            LimitBlocker(self.kind, self.name, path, kind.key, most, used, limit.position, limit.positions)
            for path, limit, in_use in limited
            for kind, most in limit.resources
            for used in (in_use if kind.counts_usage else EMPTY,)
            if not fits_undefined_unlimited(subtract_only_existing(most, used), resource)
        )

    def application_blockers(
        self, queue_path: str, application_id: str
    ) -> tuple[ApplicationLimitBlocker, ...]:
        """Return the limits that do not let an application run, from the root down; changes nothing."""
        return tuple(
            ApplicationLimitBlocker(
                self.kind,
                self.name,
                path,
                limit.max_applications,
                len(running),
                limit.position,
                limit.positions,
            )
            for path, limit, _, running in self._limited_levels(queue_path)
            if 0 < limit.max_applications <= len(running) and application_id not in running
        )

    def validate(self) -> None:
        """Check what must hold at any time.

        Raises:
            AssertionError: An invariant does not hold; the message names it.
        """
        for path, node in self._nodes.items():
            where = f"{self.kind} {self.name} at {path}"
            assert tuple(level.path for level in node.chain) == levels(path), f"{where}: not on its path"
            assert all(quantity > 0 for quantity in node.usage.values()), f"{where}: {node.usage} is wrong"
            stated = self._limits.limit_of(self.kind, self.name, path)
            assert (node.limit, node.wildcard) == stated, f"{where}: limit {node.limit}, stated {stated}"
            assert node.applications or not node.usage, f"{where}: {node.usage} used by no application"
            below: dict[str, int] = {}
            for child in node.children.values():
                assert self._nodes.get(child.path) is child, f"{where}: lost {child.path}"
                assert child.applications.keys() <= node.applications.keys(), (
                    f"{where}: not all applications of {child.path} run here"
                )
                for name, quantity in child.usage.items():
                    below[name] = below.get(name, 0) + quantity
            for name, quantity in below.items():
                assert quantity <= node.usage.get(name, 0), f"{where}: less {name} than {quantity} below"

    # -------------------------------------------------------------------------------------- inside

    def _grow(self, queue_path: str) -> _Node:
        """Make the nodes that are missing on the way to a queue, each with its limit."""
        node = self._root
        paths = levels(queue_path)
        assert paths[0] == _ROOT, f"queue path {queue_path!r} does not start at the root"
        for path in paths[1:]:
            child = node.children.get(path)
            if child is None:
                child = node.children[path] = self._nodes[path] = _Node(path, node.chain)
                child.limit, child.wildcard = self._limits.limit_of(self.kind, self.name, path)
            node = child
        return node

    def _drop_unused(self, node: _Node) -> None:
        """Remove a node and those above it, up to the first that something needs; the root stays."""
        for depth in range(len(node.chain) - 1, 0, -1):
            level = node.chain[depth]
            if not level.is_unused() or level.path not in self._nodes:
                return
            del self._nodes[level.path]
            del node.chain[depth - 1].children[level.path]

    def _limited_levels(self, queue_path: str) -> Iterator[tuple[str, Limit, Resource, dict[str, None]]]:
        """Walk over the levels with a limit: path, limit, usage, running applications."""
        for path in levels(queue_path):
            limit, _ = self._limits.limit_of(self.kind, self.name, path)
            if limit is not None:
                node = self._nodes.get(path) or _Node(path, ())
                yield path, limit, Resource(node.usage), node.applications

    def _lost(self, queue_path: str, application_id: str, resource: Resource) -> str:
        """Return the message about a release without an allocation."""
        return (
            f"{resource!r} of application {application_id} in {queue_path} is more than "
            f"{self.kind} {self.name} uses there: please report"
        )


def barring_queue(tree: UsageTree, queue_path: str, size: Resource) -> str | None:
    """Return the nearest queue on a path where a holder's limit leaves too little for a size, if any."""
    for path in reversed(levels(queue_path)):
        if not fits_undefined_unlimited(room_in(tree, path), size):
            return path
    return None


def room_in(tree: UsageTree, queue_path: str) -> Resource | None:
    """Return what a holder's limit in one queue leaves of each type, `None` without one."""
    node = tree._nodes.get(queue_path)  # noqa: SLF001 - of this module: the class has methods enough
    return None if node is None else _least_left((node,), NOTHING_HELD)


def _least_left(chain: tuple[_Node, ...], held: Held) -> Resource | None:
    """Return the least that the limits in some queues leave of each type, `None` without limits."""
    headroom: dict[str, int] = {}
    for level in chain:
        if level.limit is not None:
            usage = level.usage
            if held and level.path in held:
                usage = add(Resource(usage), held[level.path]).as_dict()
            for kind, most in level.limit.resources:
                counted = usage if kind.counts_usage else _NOTHING_USED
                for name, quantity in most.items():
                    left = quantity - counted.get(name, 0)
                    if name not in headroom or left < headroom[name]:
                        headroom[name] = left
    return Resource(headroom) if headroom else None


def rooms_of(tree: UsageTree, queue_path: str) -> Iterator[tuple[str, str, str, Resource]]:
    """Walk the limits of a holder on a path, from the root down: what each leaves; changes nothing.

    Yields:
        Whether it is of a `user` or a `group`, which, in which queue, and what is left of each limited type.
    """
    for path, limit, usage, _ in tree._limited_levels(queue_path):  # noqa: SLF001 - of this module
        if limit.max_resources:
            yield tree.kind, tree.name, path, subtract_only_existing(limit.max_resources, usage)


def usage_rows(tree: UsageTree) -> tuple[UsageRow, ...]:
    """Return a row for each queue that is known of the holder, by path: each queue comes after its parent."""
    nodes = sorted(tree._nodes.items())  # noqa: SLF001 - of this module: the class has methods enough
    return tuple(
        UsageRow(path, tuple(node.usage.items()), tuple(node.applications), node.limit)
        for path, node in nodes
    )

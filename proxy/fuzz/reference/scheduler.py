"""A second scheduler, as small as possible: correct at any cost.

It supports one partition: nodes with the use of others, queues with their maxima, guarantees, numbers of
applications, priorities, weights and past use, the limits of users and groups, all orders, gangs with their
placeholders, reservations, promises of starts in one leaf (`plan`), and placement rules for applications
(`placement`). It preempts only inside of queues, where all tasks have one size: one victim is enough then.
Every order is computed anew at each step, and no failure is remembered, except the attempts to
preempt of one visit of a leaf: there are ten of them. So it checks all shortcuts of the real scheduler:
stored orders, and attempts that are not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any, Final, final

from ....model.configuration.durations import parse_duration_ns
from ..manager.cluster_record import Size
from .asked import AskedPolicies
from .life import ReferenceLife
from .plan import next_start
from .queues import (
    BlockedBy,
    ReferenceApplication,
    ReferenceAsk,
    ReferenceDecision,
    ReferenceNode,
    ReferenceQueue,
    RunningTask,
    add_to,
    fits_within,
    is_starting,
    largest_share,
    mean_of,
    part_of,
)
from .windows import is_kept

_ATTEMPTS_MAX: Final = 10
"""The maximum number of attempts to preempt in a visit of a leaf."""
_RESERVATION_DELAY_NS: Final = 2_000_000_000


@final
class ReferenceScheduler(ReferenceLife):
    """The second scheduler.

    Args:
        partition: The document of a partition's configuration.
        policies: The policies under test.
        reserves: Whether nodes are reserved.
    """

    def __init__(
        self, partition: dict[str, Any], *, policies: AskedPolicies | None = None, reserves: bool = False
    ) -> None:
        super().__init__(partition, policies or AskedPolicies({}))
        self._reserves = reserves
        self._attempts = self._without_node = 0
        self.is_exhausted = False
        """Whether the last step has made all allowed attempts to preempt; the next one continues."""
        self._tried: set[tuple[object, ...]] = set()
        """The asks whose attempts to preempt have failed since time last passed."""

    def forget_attempts(self) -> None:
        """Allow each attempt to preempt again: enough time has passed."""
        self._tried.clear()

    # --------------------------------------------------------------------------------- decisions

    def step(self) -> ReferenceDecision | None:
        """Decide one cycle, and apply it except for parts that the RM has to confirm; `None` for nothing."""
        self.is_exhausted = False
        if not any(self.total().values()):
            return None
        found = self._place_reserved() or self._replace_placeholder()
        if found is None:
            root = self.root
            found = next_start(self) if "backfill.reservations" in root.properties else self._regular()
        if found is not None and found.kind == "place":
            self.place(found.key, found.node)
        return found

    def _regular(self) -> ReferenceDecision | None:
        for leaf in self.leaves(self.root):
            self._attempts = _ATTEMPTS_MAX
            for application in self.applications_of(leaf):
                if self.start_blockers(application):
                    continue
                application.is_held = self.policies.hold(application, self.now_ns)
                if application.is_held or application.backs_off_until_ns > self.now_ns:
                    continue
                found = self._walk(application)
                if found is not None:
                    return found
        return None

    def _walk(self, application: ReferenceApplication) -> ReferenceDecision | None:
        """Try the asks of an application; it backs off after too many without a node."""
        properties = application.queue.properties
        most = int(properties.get("application.unschedasks.backoff", "0"))
        self._without_node = 0
        known = [*application.asks.values()]
        known += [task.ask for task in self.running.values() if task.application is application]
        last = max(known, key=ReferenceAsk.place)
        for ask in application.in_order():
            if application.waits_for_placeholder(ask):
                continue
            found = self._try(application, ask)
            if found is not None:
                return found
            if 0 < most <= self._without_node and ask is not last:
                delay = properties.get("application.unschedasks.backoff.delay", "30s")
                application.backs_off_until_ns = self.now_ns + parse_duration_ns(delay)
                return None
        return None

    def _try(self, application: ReferenceApplication, ask: ReferenceAsk) -> ReferenceDecision | None:
        if ask.required_node:
            return self._try_daemon(application, ask)
        leaf = application.queue
        is_limited = any(self.limit_blockers(application, ask.size, ask.key))
        has_quota = not any(self.quota_blockers(leaf, ask.size, ask.key))
        node = self.node_for(application, ask) if has_quota and not is_limited else None
        if node is not None:
            return ReferenceDecision(ask.key, node.name)
        self._without_node += has_quota and not is_limited
        if self._reserves and has_quota and not is_limited:
            reserved = self._node_to_reserve(ask)
            if reserved is not None and not is_kept(self, application, ask, reserved):
                self.reserve(application, ask.key, reserved)
                return ReferenceDecision(ask.key, reserved.name, kind="reserve")
        users = (application.user,) if is_limited else None
        return self._preempt_inside(leaf, ask, users, has_quota=has_quota)

    # ----------------------------------------------------------------------------------- reservations

    def _place_reserved(self) -> ReferenceDecision | None:
        """Place an ask on the node that is reserved for it, or on one that no ask has reserved."""
        for leaf in self.leaves(self.root):
            holders = dict.fromkeys(self.application_asking(key) for key in self.reserved)
            there = [each for each in holders if each.queue is leaf]
            for application in sorted(there, key=lambda each: each.reserved_since):
                if self.start_blockers(application):
                    continue
                found = self._place_reserved_of(application)
                if found is not None:
                    return found
        return None

    def _place_reserved_of(self, application: ReferenceApplication) -> ReferenceDecision | None:
        elsewhere = []
        for key in [key for key in self.reserved if key in application.asks]:
            ask, node = application.asks[key], self.reserved[key]
            if ask.required_node:
                found = self._place_daemon(application, ask, node)
                if found is not None:
                    return found
                continue
            blockers = [*self.quota_blockers(application.queue, ask.size, ask.key)]
            if self._is_barred(application, ask):
                self.unreserve(key)
            elif not blockers and node.has_room_for(ask.size) and not is_kept(self, application, ask, node):
                return ReferenceDecision(key, node.name)
            elif not blockers:
                elsewhere.append(ask)
        for ask in elsewhere:
            other = self.node_for(application, ask)
            if other is not None:
                return ReferenceDecision(ask.key, other.name)
        return None

    def _place_daemon(
        self, application: ReferenceApplication, ask: ReferenceAsk, node: ReferenceNode
    ) -> ReferenceDecision | None:
        """Place an ask on the node that it needs and has reserved, or choose a victim there."""
        if self._is_barred(application, ask):
            self.unreserve(ask.key)
            return None
        if is_kept(self, application, ask, node):
            return None
        if fits_within(self._room_on(node, ask.key), ask.size):
            return ReferenceDecision(ask.key, node.name)
        victim = self.claims.get(ask.key)
        if victim is not None and victim.ask.key in self.running:
            return None
        possible = [
            task
            for task in self.running.values()
            if task.node is node and not task.ask.required_node and task.ask.priority <= ask.priority
            if task not in self.claims.values()
        ]
        if possible:
            self.claims[ask.key] = victim = min(possible, key=RunningTask.place_as_victim)
            self.to_end.append((victim.ask.key, "preempted"))
        return None

    def _room_on(self, node: ReferenceNode, key: str) -> Size:
        """Return the room on a node for an ask that needs it, without the room that is claimed for others."""
        room = {**node.available()}
        for other, victim in self.claims.items():
            ask = self.application_asking(other).asks[other]
            if other != key and ask.required_node == node.name:
                coming = victim.ask.size if victim.ask.key in self.running else {}
                needed = {name: max(0, size - coming.get(name, 0)) for name, size in ask.size.items()}
                add_to(room, needed, -1)
        return room

    def _is_barred(self, application: ReferenceApplication, ask: ReferenceAsk) -> bool:
        """Return whether a limit or a maximum below the root refuses an ask."""
        blockers = self.quota_blockers(application.queue, ask.size, ask.key)
        return any(self.limit_blockers(application, ask.size, ask.key)) or any(
            blocked.path != "root" for blocked in blockers
        )

    def _try_daemon(self, application: ReferenceApplication, ask: ReferenceAsk) -> ReferenceDecision | None:
        """Place an ask on the node that it needs, drained or not, or reserve the node."""
        node = self.nodes.get(ask.required_node)
        if node is None or not fits_within(node.size, ask.size) or self._is_barred(application, ask):
            return None
        if is_kept(self, application, ask, node):
            return None
        held = bool(node.reserved_for) and ask.key not in node.reserved_for
        if not held and fits_within(self._room_on(node, ask.key), ask.size):
            return ReferenceDecision(ask.key, node.name)
        if ask.key in self.reserved:
            return None
        self.reserve(application, ask.key, node)
        return ReferenceDecision(ask.key, node.name, kind="reserve")

    def _node_to_reserve(self, ask: ReferenceAsk) -> ReferenceNode | None:
        """Return the node with the least use for others; among equals the first in the order of nodes."""
        if ask.key in self.reserved or self.now_ns - ask.since_ns <= _RESERVATION_DELAY_NS:
            return None
        possible = [
            node for node in self.node_places.in_order() if not node.drained and not node.reserved_for
        ]

        def beyond(node: ReferenceNode) -> float:
            left = node.available()
            return sum(
                1.0 if ask.size.get(name, 0) <= 0 else (value - ask.size[name]) / value
                for name, value in left.items()
                if value > max(ask.size.get(name, 0), 0)
            )

        return min((node for node in possible if fits_within(node.size, ask.size)), key=beyond, default=None)

    # -------------------------------------------------------------------------------------- gangs

    def _replace_placeholder(self) -> ReferenceDecision | None:
        """Make a member replace a placeholder that is large enough, on its node.

        A placeholder before it that is too small for the first member is cancelled.
        """
        for leaf in self.leaves(self.root):
            for application in self.applications_of(leaf):
                found = self._replace_of(application)
                if found is not None:
                    return found
        return None

    def _replace_of(self, application: ReferenceApplication) -> ReferenceDecision | None:
        for ask in application.in_order():
            if ask.placeholder or not ask.group:
                continue
            for key, task in application.placeholders.items():
                if task.is_leaving or task.ask.group != ask.group:
                    continue
                task.is_leaving = True
                names = {*ask.size, *task.ask.size}
                if any(task.ask.size.get(name, 0) < ask.size.get(name, 0) for name in names):
                    self.to_end.append((key, "cancelled"))
                    continue
                del application.asks[ask.key]
                self.swaps[key] = (application, ask)
                self.unreserve(ask.key)
                return ReferenceDecision(ask.key, task.node.name, key, "replace")
        return None

    # --------------------------------------------------------------------------------- preemption

    def _preempt_inside(
        self, leaf: ReferenceQueue, ask: ReferenceAsk, users: Container[str] | None, *, has_quota: bool
    ) -> ReferenceDecision | None:
        """Return the victim in its leaf and the node for an ask that has no room, `None` for no victim.

        For an ask at a limit the victim belongs to these users; a node with room needs no victim on it then.

        The node is the one with the first victim by willingness and priority, among equals the first by name.
        If the queues have no room, a node with room needs no victim: the first victim of all ends then. One
        attempt counts for all asks of one priority in the leaf, and of one user if a limit is the reason.
        """
        properties = leaf.properties
        if not ask.preempts or properties.get("preemption.within") != "lower-priority":
            return None
        shape = (leaf.path, ask.priority, users, has_quota)
        if self._attempts <= 0:
            self.is_exhausted = True
            return None
        if shape in self._tried:
            return None
        self._attempts -= 1
        found = self._victim_inside(leaf, ask, users, has_quota=has_quota)
        if found is None:
            self._tried.add(shape)
        return found

    def _victim_inside(
        self, leaf: ReferenceQueue, ask: ReferenceAsk, users: Container[str] | None, *, has_quota: bool
    ) -> ReferenceDecision | None:
        if leaf.properties.get("preemption.policy") == "disabled":
            return None
        running = [each for each in self.running.values() if each.application.queue is leaf]
        if users is not None:
            running = [each for each in running if each.application.user in users]
            has_quota = False
        possible = sorted(
            (each for each in running if each.ask.priority < ask.priority), key=RunningTask.place_as_victim
        )
        if not possible:
            return None
        lowest = min(each.ask.priority for each in possible)
        choices: list[tuple[tuple[bool, int, int], str, str]] = []
        for node in self.nodes.values():
            there = [each for each in possible if each.node is node]
            if not has_quota and node.has_room_for(ask.size):
                choices.append(((False, lowest, 0), node.name, possible[0].ask.key))
            elif there and not node.drained:
                first = there[0].ask
                choices.append(((not first.willing, first.priority, 1), node.name, first.key))
        if not choices:
            return None
        _, node_name, victim = min(choices)
        return ReferenceDecision(ask.key, node_name, victim, "preempt")

    # -------------------------------------------------------------------------------------- orders

    def leaves(self, parent: ReferenceQueue) -> Iterator[ReferenceQueue]:
        """Return the leaves with waiting asks, in order."""
        if not parent.is_parent:
            yield parent
            return
        by_priority = parent.sorts_by_priority()

        def place(queue: ReferenceQueue) -> tuple[object, ...]:
            key = self.policies.queue_key(parent, queue)
            if key is not None:
                return (key, queue.name)
            first, second = -queue.priority(), self._share(queue)
            waiting = -sum(sum(ask.size.values()) for ask in queue.asks())
            use = self._use(parent, queue)
            return (*((first, use, second) if by_priority else (use, second, first)), waiting, queue.name)

        for child in sorted((child for child in parent.children if any(child.asks())), key=place):
            yield from self.leaves(child)

    def _use(self, parent: ReferenceQueue, queue: ReferenceQueue) -> float:
        """Return the value that orders a queue by its past use and its weight; the smallest comes first."""
        half_life = parent.properties.get("fair.half-life")
        if half_life is None and not any("fair.weight" in child.properties for child in parent.children):
            return 0.0
        if queue.guaranteed and any(queue.guaranteed.values()):
            parts = [part_of(queue.used.get(name, 0), most) for name, most in queue.guaranteed.items()]
            if max(parts) < 1:
                return -1.0
        used: dict[str, float] = {**queue.counted()}
        if half_life is not None:
            used = mean_of(queue.used_from, self.now_ns, parse_duration_ns(half_life))
        return largest_share(used, self._possible(parent)) / int(queue.properties.get("fair.weight", "1"))

    def _possible(self, queue: ReferenceQueue) -> Size:
        """Return the possible room of a queue: the nodes, limited by the maxima down to its own."""
        possible = self.total()
        for level in reversed([*queue.path_up()][:-1]):
            possible |= level.maximum or {}
        return possible

    def _share(self, queue: ReferenceQueue) -> float:
        """Return the largest part that a queue uses of its guarantee, or else of its possible room."""
        limits = self._possible(queue) | (queue.guaranteed or {})
        parts = [part_of(used, limits[name]) for name, used in queue.used.items() if name in limits]
        return max(parts, default=0.0)

    def applications_of(self, leaf: ReferenceQueue) -> list[ReferenceApplication]:
        """Return the applications with waiting asks that wait for room alone, in order."""
        by_priority = leaf.sorts_by_priority()
        possible = self._possible(leaf)

        def place(application: ReferenceApplication) -> tuple[object, ...]:
            priority, name = -application.priority(), (application.arrival, application.name)
            key = self.policies.application_key(application)
            if key is not None:
                return (key, *name)
            policy = leaf.properties.get("application.sort.policy")
            if policy == "users":
                user = (leaf.use_of(application.user, self.now_ns, possible), application.user)
                return (priority if by_priority else 0, user, *name)
            if policy != "fair":
                return (priority, *name) if by_priority else (name[0], priority, name[1])
            guaranteed = leaf.guaranteed or {}
            parts = sorted(
                (
                    part_of(used, guaranteed[kind]) if guaranteed.get(kind) else float(used)
                    for kind, used in application.used.items()
                    if used
                ),
                reverse=True,
            )
            return (*((priority, parts) if by_priority else (parts, priority)), name)

        there = (each for each in leaf.applications if each.asks and not each.waits_for)
        return sorted(there, key=place)

    def node_for(self, application: ReferenceApplication, ask: ReferenceAsk) -> ReferenceNode | None:
        """Return the first node in order that has room, is not reserved, and is not refused by a policy."""
        possible = (node for node in self.node_places.in_order() if not node.reserved_for)
        with_room = [node for node in possible if node.has_room_for(ask.size)]
        with_room = [node for node in with_room if not is_kept(self, application, ask, node)]
        return next((node for node in with_room if not self.policies.refuse(application, ask, node)), None)

    # ------------------------------------------------------------------------------------ blockers

    def start_blockers(self, application: ReferenceApplication) -> list[BlockedBy]:
        """Return the limits on numbers of applications that prevent the start of an application."""
        if application.state != "Accepted":
            return []
        blocked = [
            BlockedBy("QUEUE_APPLICATIONS", "queue", queue.path)
            for queue in application.queue.path_up()
            if queue.applications_max and queue.running() >= queue.applications_max
        ]
        if is_starting(application):
            blocked = []
        for queue in application.queue.path_up():
            for kind, holder, limit in queue.limit_of(application):
                others = [each for below in queue.tree() for each in below.applications if each.runs]
                count = sum(holder == (each.user if kind == "user" else each.group) for each in others)
                if 0 < limit.applications <= count and not application.runs:
                    blocked.append(BlockedBy("USER_APPLICATIONS", kind, holder, queue.path))
        return blocked

    def limit_blockers(
        self, application: ReferenceApplication, size: Size, key: str = ""
    ) -> Iterator[BlockedBy]:
        """Return the limits of its user and group that refuse this amount for one of its asks."""
        for queue in application.queue.path_up():
            for kind, holder, limit in queue.limit_of(application):
                left = dict(limit.most)
                for name, value in self.use_of_holder(queue, kind, holder).items():
                    if name in left:
                        left[name] -= value
                for claimed in self._held(key, lambda each: self._counts(each, queue, kind, holder)):  # noqa: B023
                    add_to(left, {name: claimed.get(name, 0) for name in left}, -1)
                if not fits_within(left, size, unlimited=True):
                    yield BlockedBy("USER_QUOTA", kind, holder, queue.path)

    def use_of_holder(self, queue: ReferenceQueue, kind: str, holder: str) -> Size:
        """Return the use of a user or a group in a queue and below."""
        used: Size = {}
        for task in self.running.values():
            application = task.application
            if self._counts(application, queue, kind, holder):
                add_to(used, task.ask.size, 1)
        return used

    @staticmethod
    def _counts(application: ReferenceApplication, queue: ReferenceQueue, kind: str, holder: str) -> bool:
        own = application.user if kind == "user" else application.group
        return holder == own and queue in application.queue.path_up()

    def _held(self, key: str, counts: Callable[[ReferenceApplication], bool]) -> Iterator[Size]:
        """Return the part of a limit that is held for asks other than the one with this key.

        It is their request, unless their victims still use the same limit.
        """
        for other, victim in self.claims.items():
            application = self.application_asking(other)
            if other == key or not counts(application):
                continue
            if victim.ask.key not in self.running or not counts(victim.application):
                yield application.asks[other].size

    def quota_blockers(self, leaf: ReferenceQueue, size: Size, key: str = "") -> Iterator[BlockedBy]:
        """Return the queues from the leaf up whose maxima refuse this amount for an ask with this key."""
        total = self.total()
        path = [*leaf.path_up()]
        for queue in path:
            is_root = queue.parent is None
            left = {
                name: most - queue.counted_for(name, path)
                for name, most in (total if is_root else queue.maximum or {}).items()
            }
            for held in self._held(key, lambda each: queue in each.queue.path_up()):  # noqa: B023 - used here
                add_to(left, {name: held.get(name, 0) for name in left}, -1)
            if not fits_within(left, size, unlimited=not is_root):
                yield BlockedBy("QUEUE_QUOTA", "queue", queue.path, queue.path)

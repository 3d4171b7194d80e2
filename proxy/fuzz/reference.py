"""A second scheduler, as small as it can be: what is right, at any cost.

It knows one partition with static queues, and of queues the maxima, guarantees, priorities, weights, what
they and their users have used and all orders of applications. It knows the limits of users, not those of
groups. It has no gangs and no reservations. It preempts inside of queues alone, where all tasks are of one
size: one victim is enough then.
Every order is computed anew at each step, and nothing is remembered of what failed before. So it checks all
that makes the real scheduler fast: orders that are kept, tries that are not repeated.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, final

from ...model.configuration.durations import parse_duration_ns
from .cluster_record import Size

__all__ = [
    "ReferenceApplication",
    "ReferenceAsk",
    "ReferenceDecision",
    "ReferenceNode",
    "ReferenceScheduler",
]

_LOWEST: Final = -(2**31)
_INHERITED_AS: Final = {"priority.policy": "default", "priority.offset": "0"}
"""What children have of these properties of their parent, if they do not have their own."""


@final
@dataclass(slots=True)
class ReferenceNode:
    """A node, and what of it is used."""

    name: str
    size: Size
    used: Size = field(default_factory=dict)
    drained: bool = False

    def has_room_for(self, size: Size) -> bool:
        """Return whether it may be used, and something fits."""
        fits = all(self.used.get(name, 0) + value <= self.size.get(name, 0) for name, value in size.items())
        return fits and not self.drained

    def usage(self) -> float:
        """Return the mean of the parts that are used of memory and of vcore."""
        parts = [self.used.get(name, 0) / total for name, total in self.size.items() if total]
        return sum(parts) / len(parts) if parts else 0.0


@final
@dataclass(slots=True)
class ReferenceAsk:
    """An ask that waits."""

    key: str
    size: Size
    priority: int
    arrival: int
    since_ns: int = 0
    preempts: bool = False
    """It may end others."""
    willing: bool = True
    """Others may end it, before those that are not willing."""


class ReferenceDecision(NamedTuple):
    """An ask that is placed, or for which a victim has to end first, and its node."""

    key: str
    node: str
    victim: str = ""
    """The empty text if the ask is placed."""


class _RunningTask(NamedTuple):
    """Something that runs."""

    application: ReferenceApplication
    node: ReferenceNode
    ask: ReferenceAsk

    def place_as_victim(self) -> tuple[bool, int, int, str]:
        """Return its place among victims in a leaf: the willing, the lowest priority, the youngest first."""
        return not self.ask.willing, self.ask.priority, -self.ask.since_ns, self.ask.key


@final
@dataclass(slots=True)
class ReferenceApplication:
    """An application, what of it waits, and what it uses."""

    name: str
    queue: _ReferenceQueue
    arrival: int
    user: str = ""
    asks: dict[str, ReferenceAsk] = field(default_factory=dict)
    used: Size = field(default_factory=dict)

    def priority(self) -> int:
        """Return the highest priority of what waits."""
        return max((ask.priority for ask in self.asks.values()), default=_LOWEST)


@final
class _ReferenceQueue:
    """A queue, as the configuration has it, and what is used in it."""

    def __init__(self, document: dict[str, Any], parent: _ReferenceQueue | None) -> None:
        self.name: str = document["name"]
        self.parent = parent
        self.path: str = self.name if parent is None else f"{parent.path}.{self.name}"
        resources = document.get("resources", {})
        self.maximum = _quantities(resources.get("max"))
        self.guaranteed = _quantities(resources.get("guaranteed"))
        self.lend = _quantities(resources.get("lend")) or {}
        inherited = {} if parent is None else parent.properties | _INHERITED_AS
        inherited.pop("fair.weight", None)
        self.properties: dict[str, str] = inherited | document.get("properties", {})
        self.used: Size = {}
        self.used_from: list[tuple[int, Size]] = []
        """What it used, as far as it counts, from which moment on."""
        self.used_by: dict[str, list[tuple[int, Size]]] = {}
        """What each user used in it, likewise."""
        limits = document.get("limits", ())
        weighing = [limit for limit in limits if "weight" in limit]
        self.weights = {user: int(limit["weight"]) for limit in weighing for user in limit["users"]}
        self.limits = {
            user: _quantities(limit["maxresources"])
            for limit in limits
            if "maxresources" in limit
            for user in limit["users"]
        }
        """The most that users may use; of `*` for all that are not named."""
        self.children = [_ReferenceQueue(child, self) for child in document.get("queues", ())]
        self.applications: list[ReferenceApplication] = []

    def tree(self) -> Iterator[_ReferenceQueue]:
        """Return the queue and all below it."""
        yield self
        for child in self.children:
            yield from child.tree()

    def path_up(self) -> Iterator[_ReferenceQueue]:
        """Return the queue and all above it."""
        yield self
        if self.parent is not None:
            yield from self.parent.path_up()

    def asks(self) -> Iterator[ReferenceAsk]:
        """Return all that waits here and below."""
        for queue in self.tree():
            for application in queue.applications:
                yield from application.asks.values()

    def counted_for(self, name: str, path: Container[_ReferenceQueue]) -> int:
        """Return what it counts as for an ask of a path: outside of that no less than what is kept back."""
        below = sum(child.counted_for(name, path) for child in self.children)
        if not self.children:
            below = self.used.get(name, 0)
        if self in path or name not in self.lend:
            return below
        return max(below, (self.guaranteed or {}).get(name, 0) - self.lend[name])

    def above_guarantee(self) -> Size:
        """Return what is used above the guarantee."""
        guaranteed = self.guaranteed or {}
        return {name: max(value - guaranteed.get(name, 0), 0) for name, value in self.used.items()}

    def counted(self) -> Size:
        """Return what counts of what is used: what is above the guarantee, or all."""
        counts_all = self.parent is not None and self.parent.properties.get("fair.count") == "all"
        return dict(self.used) if counts_all else self.above_guarantee()

    def use_of(self, user: str, now_ns: int, possible: Size) -> tuple[float, float]:
        """Return what orders the users of a leaf; the smallest goes first."""
        history = self.used_by.get(user, [])
        used: dict[str, float] = {**(history[-1][1] if history else {})}
        weight = self.weights.get(user, self.weights.get("*", 1))
        share = _largest_share(used, possible) / weight
        half_life = self.properties.get("fair.half-life")
        if half_life is None:
            return share, share
        mean = _mean(history, now_ns, parse_duration_ns(half_life))
        return _largest_share(mean, possible) / weight, share

    def sorts_by_priority(self) -> bool:
        """Return whether priorities come before shares and times."""
        return self.properties.get("application.sort.priority") != "disabled"

    def priority(self) -> int:
        """Return the priority that the parent sees."""
        own = [application.priority() for application in self.applications]
        highest = max([*own, *(child.priority() for child in self.children)], default=_LOWEST)
        if highest == _LOWEST:
            return highest
        offset = int(self.properties.get("priority.offset", "0"))
        return offset if self.properties.get("priority.policy") == "fence" else highest + offset


@final
class ReferenceScheduler:
    """The second scheduler.

    Args:
        partition: The document of a partition's configuration.
    """

    def __init__(self, partition: dict[str, Any]) -> None:
        self._root = _ReferenceQueue(partition["queues"][0], None)
        self._fair = partition.get("nodesortpolicy", {}).get("type", "fair") == "fair"
        self.nodes: dict[str, ReferenceNode] = {}
        self.applications: dict[str, ReferenceApplication] = {}
        self.now_ns = 0
        self._running: dict[str, _RunningTask] = {}
        self._arrivals = 0

    # ------------------------------------------------------------------------------- what is reported

    def submit(self, name: str, path: str, user: str) -> None:
        """Take an application."""
        queue = next(queue for queue in self._root.tree() if queue.path == path)
        self._arrivals += 1
        application = self.applications[name] = ReferenceApplication(name, queue, self._arrivals, user)
        queue.applications.append(application)

    def ask(
        self, application: str, key: str, size: Size, priority: int, *, preempts: bool, willing: bool
    ) -> None:
        """Take an ask."""
        self._arrivals += 1
        asks = self.applications[application].asks
        asks[key] = ReferenceAsk(key, size, priority, self._arrivals, self.now_ns, preempts, willing)

    def end(self, key: str) -> None:
        """Forget something that runs or waits."""
        for application in self.applications.values():
            application.asks.pop(key, None)
        if key in self._running:
            application, node, ask = self._running.pop(key)
            self._count(application, node, ask.size, -1)

    def forget(self, name: str) -> None:
        """Forget an application that has ended."""
        application = self.applications.pop(name)
        application.queue.applications.remove(application)

    def application_of(self, key: str) -> str:
        """Return the application of something that runs."""
        return self._running[key].application.name

    # --------------------------------------------------------------------------------- what is decided

    def step(self) -> ReferenceDecision | None:
        """Place one ask, or decide what ends for one; return that, `None` if neither can be done."""
        for leaf in self._leaves(self._root):
            for application in self._applications(leaf):
                for ask in sorted(application.asks.values(), key=lambda ask: (-ask.priority, ask.arrival)):
                    is_limited = self._is_limited(application, ask.size)
                    has_quota = self._has_quota(leaf, ask.size)
                    node = self._node_for(ask) if has_quota and not is_limited else None
                    if node is not None:
                        self.place(ask.key, node.name)
                        return ReferenceDecision(ask.key, node.name)
                    users = (application.user,) if is_limited else None
                    preempted = self._preempt_inside(leaf, ask, users, has_quota=has_quota)
                    if preempted is not None:
                        return preempted
        return None

    def place(self, key: str, node_name: str) -> None:
        """Let an ask run on a node."""
        application = next(each for each in self.applications.values() if key in each.asks)
        ask, node = application.asks.pop(key), self.nodes[node_name]
        self._running[key] = _RunningTask(application, node, ask)
        self._count(application, node, ask.size, 1)

    def _preempt_inside(
        self, leaf: _ReferenceQueue, ask: ReferenceAsk, users: Container[str] | None, *, has_quota: bool
    ) -> ReferenceDecision | None:
        """Return the victim in its leaf and the node for an ask that has no room, `None` for no victim.

        Of one that is at a limit the victim is of these users; a node with room needs none then either.

        The node is the one where the victim is the first by willingness and priority, of equals the first by
        name. Where the queues have no room, a node that has room needs no victim: the first of all ends then.
        """
        properties = leaf.properties
        if not ask.preempts or properties.get("preemption.within") != "lower-priority":
            return None
        if properties.get("preemption.policy") == "disabled":
            return None
        running = [each for each in self._running.values() if each.application.queue is leaf]
        if users is not None:
            running = [each for each in running if each.application.user in users]
            has_quota = False
        possible = sorted(
            (each for each in running if each.ask.priority < ask.priority), key=_RunningTask.place_as_victim
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
        return ReferenceDecision(ask.key, node_name, victim)

    def _leaves(self, parent: _ReferenceQueue) -> Iterator[_ReferenceQueue]:
        if not parent.children:
            yield parent
            return
        by_priority = parent.sorts_by_priority()

        def place(queue: _ReferenceQueue) -> tuple[object, ...]:
            first, second = -queue.priority(), self._share(queue)
            waiting = -sum(sum(ask.size.values()) for ask in queue.asks())
            use = self._use(parent, queue)
            return (*((first, use, second) if by_priority else (use, second, first)), waiting, queue.name)

        for child in sorted((child for child in parent.children if any(child.asks())), key=place):
            yield from self._leaves(child)

    def _use(self, parent: _ReferenceQueue, queue: _ReferenceQueue) -> float:
        """Return what orders a queue by its past and its weight; the smallest goes first."""
        half_life = parent.properties.get("fair.half-life")
        if half_life is None and not any("fair.weight" in child.properties for child in parent.children):
            return 0.0
        if queue.guaranteed and any(queue.guaranteed.values()):
            parts = [_part(queue.used.get(name, 0), most) for name, most in queue.guaranteed.items()]
            if max(parts) < 1:
                return -1.0
        used: dict[str, float] = {**queue.counted()}
        if half_life is not None:
            used = _mean(queue.used_from, self.now_ns, parse_duration_ns(half_life))
        return _largest_share(used, self._possible(parent)) / int(queue.properties.get("fair.weight", "1"))

    def _possible(self, queue: _ReferenceQueue) -> Size:
        """Return what a queue could have: the nodes, and over them the maxima from above down to its own."""
        possible = self._total()
        for level in reversed([*queue.path_up()][:-1]):
            possible |= level.maximum or {}
        return possible

    def _share(self, queue: _ReferenceQueue) -> float:
        """Return the largest part that a queue uses of its guarantee, or else of what it could have."""
        limits = self._possible(queue) | (queue.guaranteed or {})
        parts = [_part(used, limits[name]) for name, used in queue.used.items() if name in limits]
        return max(parts, default=0.0)

    def _applications(self, leaf: _ReferenceQueue) -> list[ReferenceApplication]:
        by_priority = leaf.sorts_by_priority()
        possible = self._possible(leaf)

        def place(application: ReferenceApplication) -> tuple[object, ...]:
            priority, name = -application.priority(), (application.arrival, application.name)
            policy = leaf.properties.get("application.sort.policy")
            if policy == "users":
                user = (leaf.use_of(application.user, self.now_ns, possible), application.user)
                return (priority if by_priority else 0, user, application.arrival)
            if policy != "fair":
                arrival = application.arrival
                return (priority, arrival) if by_priority else (arrival, priority, application.name)
            guaranteed = leaf.guaranteed or {}
            parts = sorted(
                (
                    _part(used, guaranteed[kind]) if guaranteed.get(kind) else float(used)
                    for kind, used in application.used.items()
                    if used
                ),
                reverse=True,
            )
            return (*((priority, parts) if by_priority else (parts, priority)), name)

        return sorted((each for each in leaf.applications if each.asks), key=place)

    def _is_limited(self, application: ReferenceApplication, size: Size) -> bool:
        """Return whether a limit of its user, in its leaf or above, has no room for so much more."""
        user = application.user
        for queue in application.queue.path_up():
            most = queue.limits.get(user, queue.limits.get("*")) or {}
            used: Size = {}
            for each in self._running.values():
                if each.application.user == user and queue in each.application.queue.path_up():
                    _add(used, each.ask.size, 1)
            if any(used.get(name, 0) + size.get(name, 0) > value for name, value in most.items()):
                return True
        return False

    def _has_quota(self, leaf: _ReferenceQueue, size: Size) -> bool:
        """Return whether a leaf and all above it may use so much more."""
        total = self._total()
        path = [*leaf.path_up()]
        for queue in path:
            maximum = total if queue.parent is None else queue.maximum or {}
            for name, value in size.items():
                most = maximum.get(name, 0 if queue.parent is None else None)
                if most is not None and queue.counted_for(name, path) + value > most:
                    return False
        return True

    def _node_for(self, ask: ReferenceAsk) -> ReferenceNode | None:
        def place(node: ReferenceNode) -> tuple[float, str]:
            return (node.usage() if self._fair else 1.0 - node.usage(), node.name)

        return min(
            (node for node in self.nodes.values() if node.has_room_for(ask.size)), key=place, default=None
        )

    def _total(self) -> Size:
        total: Size = {}
        for node in self.nodes.values():
            _add(total, node.size, 1)
        return total

    def _count(self, application: ReferenceApplication, node: ReferenceNode, size: Size, sign: int) -> None:
        for used in (application.used, node.used, *(queue.used for queue in application.queue.path_up())):
            _add(used, size, sign)
        for queue in application.queue.path_up():
            queue.used_from.append((self.now_ns, queue.counted()))
        history = application.queue.used_by.setdefault(application.user, [(0, {})])
        now_used = dict(history[-1][1])
        _add(now_used, size, sign)
        history.append((self.now_ns, now_used))


def _add(used: Size, size: Size, sign: int) -> None:
    for name, value in size.items():
        used[name] = used.get(name, 0) + sign * value


def _mean(history: list[tuple[int, Size]], now_ns: int, half_life_ns: int) -> dict[str, float]:
    """Return what was used on average, where each moment counts half after a half-life."""
    total: dict[str, float] = {}
    ends = [*(begin for begin, _ in history), now_ns][1:]
    for (begin, used), end in zip(history, ends, strict=True):
        part = 2 ** ((end - now_ns) / half_life_ns) - 2 ** ((begin - now_ns) / half_life_ns)
        for name, value in used.items():
            total[name] = total.get(name, 0.0) + value * part
    return total


def _largest_share(used: dict[str, float], possible: Size) -> float:
    return max((value / possible[name] for name, value in used.items() if possible.get(name)), default=0.0)


def _part(used: int, limit: int) -> float:
    return used / limit if limit > 0 else float(used > 0)


def _quantities(texts: dict[str, str] | None) -> Size | None:
    """Read quantities of a configuration: thousandths of cores, and all else as it stands."""
    if texts is None:
        return None
    return {
        name: int(text[:-1]) if text.endswith("m") else int(text) * (1_000 if name == "vcore" else 1)
        for name, text in texts.items()
    }

"""The queues, nodes, applications and asks of the second scheduler, and their orders."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, final

from ....model.configuration.durations import parse_duration_ns
from ..manager.cluster_record import Size

LOWEST: Final = -(2**31)
_INHERITED_AS: Final = {"priority.policy": "default", "priority.offset": "0"}
"""The values that children inherit for these properties, unless they set them."""
_NOT_INHERITED: Final = ("fair.weight", "backfill.reservations", "backfill.order")
_WEIGHTS: Final = {"vcore": 1.0, "memory": 1.0}


@final
@dataclass(slots=True, eq=False)
class ReferenceNode:
    """A node, and its use."""

    name: str
    size: Size
    used: Size = field(default_factory=dict)
    foreign: dict[str, Size] = field(default_factory=dict)
    """The use of others there, by key."""
    drained: bool = False
    reserved_for: list[str] = field(default_factory=list)
    """The asks for which it is reserved: one, or some that need it."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    place: float = 0.0
    """Its last place in the order."""
    in_use: bool = False
    """Whether any of it was used when its place was found."""

    def available(self) -> Size:
        """Return the available room; negative if others use more, or it has become smaller."""
        left = dict(self.size)
        for size in (self.used, *self.foreign.values()):
            add_to(left, size, -1)
        return left

    def has_room_for(self, size: Size) -> bool:
        """Return whether it may be used, and a request fits."""
        return not self.drained and fits_within(self.available(), size) and fits_within(self.size, size)

    def is_used(self) -> bool:
        """Return whether any of it is used."""
        return any(left != self.size[name] for name, left in self.available().items() if name in self.size)

    def find_place(self, policy: str, weights: dict[str, float]) -> None:
        """Update its place: after a placement, an end, a new size, or its release for use."""
        left, used, counted = self.available(), 0.0, 0.0
        for name, weight in (weights or _WEIGHTS).items():
            if weight and self.size.get(name):
                used += weight * (1.0 - left[name] / self.size[name])
                counted += weight
        usage = used / counted if counted else 0.0
        self.place = usage if policy == "fair" else 1.0 - usage


@final
@dataclass(slots=True, eq=False)
class ReferenceAsk:
    """A waiting ask."""

    key: str
    size: Size
    priority: int
    arrival: int
    since_ns: int = 0
    preempts: bool = False
    """Whether it may end others."""
    willing: bool = True
    """Whether others may end it, before those that are not willing."""
    originator: bool = False
    """Whether it ends last of all."""
    group: str = ""
    """The task group of its gang."""
    placeholder: bool = False
    walltime_ns: int | None = None
    """How long it runs at most; `None` for no limit."""
    required_node: str = ""
    """The only node that it can run on; the empty text for any."""
    tags: Mapping[str, str] = field(default_factory=dict)

    def place(self) -> tuple[int, int, int]:
        """Return its place among the asks of its application."""
        return -self.priority, self.since_ns, self.arrival


@final
@dataclass(slots=True, eq=False)
class RunningTask:
    """A running task."""

    application: ReferenceApplication
    node: ReferenceNode
    ask: ReferenceAsk
    begun_ns: int = 0
    is_leaving: bool = False
    """Whether the RM was asked to end it."""

    def place_as_victim(self) -> tuple[bool, bool, int, int, str]:
        """Return its place among victims: first the willing, then the lowest priority, then the youngest."""
        ask = self.ask
        return ask.originator, not (ask.willing or ask.originator), ask.priority, -ask.since_ns, ask.key


@final
@dataclass(slots=True, eq=False)
class ReferenceApplication:
    """An application, its waiting asks, and its use."""

    name: str
    queue: ReferenceQueue
    arrival: int
    """The time of its submission, or of the creation of its oldest ask, in nanoseconds."""
    user: str = ""
    groups: tuple[str, ...] = ()
    group: str | None = None
    """The group whose limits it counts against."""
    announced: Size = field(default_factory=dict)
    """The sum of the placeholders of its gang."""
    hard: bool = False
    timeout_ns: int = 0
    state: str = "New"
    due_ns: int | None = None
    """When it leaves its state by a timer."""
    placeholders_due_ns: int | None = None
    runs: bool = False
    """Whether it counts as running for its user and its group."""
    asks: dict[str, ReferenceAsk] = field(default_factory=dict)
    used: Size = field(default_factory=dict)
    """The use of all tasks except placeholders."""
    placeholders: dict[str, RunningTask] = field(default_factory=dict)
    """The running placeholders, in the order of their placement."""
    backs_off_until_ns: int = 0
    has_reserved: bool = False
    """Whether a node is reserved for one of its asks."""
    reserved_since: int = 0
    """Its place among the applications with reserved nodes, which it keeps as long as it has one."""
    to_come: dict[str, int] = field(default_factory=dict)
    """By task group, the number of placeholders that were neither replaced nor have ended."""
    tags: Mapping[str, str] = field(default_factory=dict)
    fixed_key: Any = None
    """The key of a policy that depends on the submission alone, once it was asked."""
    is_held: bool = False
    """Whether a policy held it when it was last tried."""
    waits_for: str = ""
    """Why it waits besides for room: the name of the reason."""

    def priority(self) -> int:
        """Return the highest priority of its waiting asks, unless it waits for others."""
        if self.waits_for:
            return LOWEST
        return max((ask.priority for ask in self.asks.values()), default=LOWEST)

    def in_order(self) -> list[ReferenceAsk]:
        """Return the waiting asks, in the order in which they are tried."""
        return sorted(self.asks.values(), key=ReferenceAsk.place)

    def waits_for_placeholder(self, ask: ReferenceAsk) -> bool:
        """Return whether an ask is to replace a placeholder."""
        return bool(ask.group) and not ask.placeholder and self.to_come.get(ask.group, 0) > 0


class ReferenceDecision(NamedTuple):
    """The decision for an ask: it is placed, or a victim ends for it first."""

    key: str
    node: str
    victim: str = ""
    """The task that ends first; the empty text for none."""
    kind: str = "place"
    """`place`, `preempt`, `replace` a placeholder, `cancel` one that is too small, or `reserve` the node."""


class BlockedBy(NamedTuple):
    """A blocker of an ask or an application: the name of a reason, the holder of the limit, and its queue."""

    reason: str
    kind: str
    subject: str
    path: str = ""


class ReferenceLimit(NamedTuple):
    """The limit of a user or a group in a queue and below."""

    most: Size
    applications: int
    """How many applications may run; 0 for any number."""


@final
class ReferenceQueue:
    """A queue in its configuration, and its use."""

    def __init__(
        self, document: dict[str, Any], parent: ReferenceQueue | None, *, dynamic: bool = False
    ) -> None:
        self.name: str = document["name"]
        self.parent = parent
        self.path: str = self.name if parent is None else f"{parent.path}.{self.name}"
        self.is_dynamic = dynamic
        self.used: Size = {}
        self.used_from: list[tuple[int, Size]] = []
        """Its past use, as far as it counts, with the start of each amount."""
        self.used_by: dict[str, list[tuple[int, Size]]] = {}
        """The past use of each user in it, in the same form."""
        self.children: list[ReferenceQueue] = []
        self.applications: list[ReferenceApplication] = []
        self.maximum: Size | None = None
        self.quota_due_ns: int | None = None
        """When its use above its maximum has to end."""
        self.configure(document)

    def configure(self, document: dict[str, Any]) -> None:
        """Apply a configuration to the queue and all below it; its shape is the same as before."""
        resources = document.get("resources", {})
        self.maximum = _quota(resources.get("max"))
        self.guaranteed = _quota(resources.get("guaranteed"))
        self.lend = _quantities(resources.get("lend")) or {}
        inherited = {} if self.parent is None or self.is_dynamic else self.parent.properties | _INHERITED_AS
        for name in _NOT_INHERITED:
            inherited.pop(name, None)
        if inherited.get("preemption.policy") != "disabled":
            inherited.pop("preemption.policy", None)
        self.properties: dict[str, str] = inherited | document.get("properties", {})
        self.applications_max: int = document.get("maxapplications", 0)
        self.submitters: tuple[str, ...] = (document.get("submitacl", ""), document.get("adminacl", ""))
        self.is_parent: bool = bool(document.get("parent")) or bool(document.get("queues"))
        self.template: dict[str, Any] | None = document.get("childtemplate") or (
            None if self.parent is None else self.parent.template
        )
        limits = document.get("limits", ())
        self.weights = {
            user: int(limit["weight"]) for limit in limits if "weight" in limit for user in limit["users"]
        }
        self.limits = _limits(limits, "users")
        """The limits of users; those of `*` for each user without one."""
        self.group_limits = _limits(limits, "groups")
        """The limits of groups, in the order of the file."""
        for below in document.get("queues", ()):
            known = next((child for child in self.children if child.name == below["name"]), None)
            if known is None:
                self.children.append(ReferenceQueue(below, self))
            else:
                known.configure(below)

    def over_maximum(self) -> Size:
        """Return its use above its own maximum."""
        over = {name: self.used.get(name, 0) - most for name, most in (self.maximum or {}).items()}
        return {name: value for name, value in over.items() if value > 0}

    def watch_quota(self, before: Size | None, now_ns: int) -> None:
        """Record when a changed maximum is enforced: after it was lowered for any type."""
        delay = self.properties.get("quota.preemption.delay")
        if delay is None or not self.over_maximum():
            self.quota_due_ns = None
            return
        maximum, before = self.maximum or {}, before or {}
        is_lowered = any(name not in before or most < before[name] for name, most in maximum.items())
        if self.quota_due_ns is None and is_lowered:
            self.quota_due_ns = now_ns + parse_duration_ns(delay)

    def walltime_ns(self, own_ns: int | None) -> int | None:
        """Return how long work runs at most: by its own statement, or as the queue assumes."""
        assumed = self.properties.get("runtime.default", self.properties.get("runtime.max"))
        if own_ns is not None or assumed is None:
            return own_ns
        return parse_duration_ns(assumed)

    def ends_overruns(self) -> bool:
        """Return whether work that exceeds its walltime is ended."""
        return self.properties.get("runtime.overrun") == "end"

    def add_dynamic(self, name: str, *, leaf: bool) -> ReferenceQueue:
        """Create a queue below this one that is not in the configuration."""
        document = {"name": name, "parent": not leaf, **((self.template or {}) if leaf else {})}
        child = ReferenceQueue(document, self, dynamic=True)
        self.children.append(child)
        return child

    def limit_of(self, application: ReferenceApplication) -> Iterator[tuple[str, str, ReferenceLimit]]:
        """Return the limits of the user and of the group of an application here, each with its holder."""
        own = self.limits.get(application.user, self.limits.get("*"))
        if own is not None:
            yield "user", application.user, own
        if application.group is not None and application.group in self.group_limits:
            yield "group", application.group, self.group_limits[application.group]

    def group_for(self, groups: Sequence[str]) -> str | None:
        """Return the group that counts for a user in these groups: the first of the file, else `*`."""
        for level in self.path_up() if groups else ():
            for name in level.group_limits:
                if name in groups:
                    return name
            if "*" in level.group_limits:
                return "*"
        return None

    def may_submit(self, user: str, groups: Sequence[str]) -> bool:
        """Return whether the lists of the queue, or of one above, allow a user to submit to it."""
        texts = [text for level in self.path_up() for text in level.submitters]
        return any(_lets(text, user, groups) for text in texts)

    def tree(self) -> Iterator[ReferenceQueue]:
        """Return the queue and all below it."""
        yield self
        for child in self.children:
            yield from child.tree()

    def path_up(self) -> Iterator[ReferenceQueue]:
        """Return the queue and all above it."""
        yield self
        if self.parent is not None:
            yield from self.parent.path_up()

    def asks(self) -> Iterator[ReferenceAsk]:
        """Return all asks that wait here and below."""
        for queue in self.tree():
            for application in queue.applications:
                yield from application.asks.values()

    def counted_for(self, name: str, path: Container[ReferenceQueue]) -> int:
        """Return its use for an ask of a path: outside of it no less than the amount kept back."""
        below = sum(child.counted_for(name, path) for child in self.children)
        if not self.children:
            below = self.used.get(name, 0)
        if self in path or name not in self.lend:
            return below
        return max(below, (self.guaranteed or {}).get(name, 0) - self.lend[name])

    def running(self) -> int:
        """Return the number of running applications here and below, also of those with only placeholders."""
        below = [each for queue in self.tree() for each in queue.applications]
        return sum(each.state == "Running" or is_starting(each) for each in below)

    def above_guarantee(self) -> Size:
        """Return its use above the guarantee."""
        guaranteed = self.guaranteed or {}
        return {name: max(value - guaranteed.get(name, 0), 0) for name, value in self.used.items()}

    def counted(self) -> Size:
        """Return the part of its use that counts: the use above the guarantee, or all."""
        counts_all = self.parent is not None and self.parent.properties.get("fair.count") == "all"
        return dict(self.used) if counts_all else self.above_guarantee()

    def use_of(self, user: str, now_ns: int, possible: Size) -> tuple[float, float]:
        """Return the value that orders the users of a leaf; the smallest comes first."""
        history = self.used_by.get(user, [])
        used: dict[str, float] = {**(history[-1][1] if history else {})}
        weight = self.weights.get(user, self.weights.get("*", 1))
        share = largest_share(used, possible) / weight
        half_life = self.properties.get("fair.half-life")
        if half_life is None:
            return share, share
        mean = mean_of(history, now_ns, parse_duration_ns(half_life))
        return largest_share(mean, possible) / weight, share

    def sorts_by_priority(self) -> bool:
        """Return whether priorities come before shares and times."""
        return self.properties.get("application.sort.priority") != "disabled"

    def priority(self) -> int:
        """Return the priority of the queue for its parent."""
        own = [application.priority() for application in self.applications]
        highest = max([*own, *(child.priority() for child in self.children)], default=LOWEST)
        if highest == LOWEST:
            return highest
        offset = int(self.properties.get("priority.offset", "0"))
        return offset if self.properties.get("priority.policy") == "fence" else highest + offset


def add_to(used: Size, size: Size, sign: int) -> None:
    """Add an amount to its use, or subtract it with the sign -1."""
    for name, value in size.items():
        used[name] = used.get(name, 0) + sign * value


def mean_of(history: list[tuple[int, Size]], now_ns: int, half_life_ns: int) -> dict[str, float]:
    """Return the average use, where each moment counts half after a half-life."""
    total: dict[str, float] = {}
    ends = [*(begin for begin, _ in history), now_ns][1:]
    for (begin, used), end in zip(history, ends, strict=True):
        part = 2 ** ((end - now_ns) / half_life_ns) - 2 ** ((begin - now_ns) / half_life_ns)
        for name, value in used.items():
            total[name] = total.get(name, 0.0) + value * part
    return total


def largest_share(used: dict[str, float], possible: Size) -> float:
    """Return the largest used part of the possible room, of any type."""
    return max((value / possible[name] for name, value in used.items() if possible.get(name)), default=0.0)


def part_of(used: int, limit: int) -> float:
    """Return the used part of a limit; for a limit of zero, all or nothing."""
    return used / limit if limit > 0 else float(used > 0)


def _quantities(texts: dict[str, str] | None) -> Size | None:
    """Read quantities of a configuration: thousandths of cores, and all others unchanged."""
    if texts is None:
        return None
    return {
        name: int(text[:-1]) if text.endswith("m") else int(text) * (1_000 if name == "vcore" else 1)
        for name, text in texts.items()
    }


def _quota(texts: dict[str, str] | None) -> Size | None:
    """Read quantities; zeros alone count as no quota."""
    size = _quantities(texts)
    return size if size and any(size.values()) else None


def _limits(limits: Sequence[dict[str, Any]], kind: str) -> dict[str, ReferenceLimit]:
    """Read the limits of users or of groups, without those that only give a weight."""
    return {
        name: ReferenceLimit(_quota(limit.get("maxresources")) or {}, limit.get("maxapplications", 0))
        for limit in limits
        if "maxresources" in limit or "maxapplications" in limit
        for name in limit.get(kind, ())
    }


def _lets(text: str, user: str, groups: Sequence[str]) -> bool:
    """Return whether an access list names a user, or one of some groups: `users groups`."""
    users, _, of_groups = text.partition(" ")
    everyone = "*" in (users, of_groups)
    return everyone or user in users.split(",") or any(name in of_groups.split(",") for name in groups)


def is_starting(application: ReferenceApplication) -> bool:
    """Return whether an application that does not run yet counts: it has placeholders or a node."""
    holds = any(application.placeholders) or application.has_reserved
    return application.state in ("Accepted", "Resuming") and holds


def fits_within(limit: Size, size: Size, *, unlimited: bool = False) -> bool:
    """Return whether an amount fits; a type that the limit lacks is unlimited if `unlimited`, else zero."""
    return all(
        value <= max(limit[name], 0) if name in limit else unlimited
        for name, value in size.items()
        if value > 0
    )

"""Blockers of an ask or an application, as values: limits of queues and users, and the answers of nodes.

The checks are those of the cycle, one a level: `Queue.has_room` and `Queue.has_place_for` from the leaf
upwards, and the blockers of `UserLimits` from the root downwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import takewhile
from typing import Final

from ..configuration.problems import Position
from ..limits.limits import HolderKind
from ..limits.usage_tree import NOTHING_HELD
from ..nodes.entry import NodeEntry
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.quota import Withheld, kept_beside, withheld_from
from ..resources.comparisons import fit_score
from ..resources.resource import EMPTY, Resource, add, fits, subtract
from ..state.charges import held_of_holders, holding_policy
from ..state.claims import PreemptionClaim
from ..state.partition_state import PartitionState
from ..values.allocation import Ask, RefusalReason
from ..values.dependencies import ApplicationOutcome, Waits
from ..values.messages import User

APPLICATIONS = "applications"
"""The name of what is lacking if a number of applications is limited."""
EXAMPLES_MAX: Final = 3
"""How many nodes are named for each reason."""
_HELD: Final = "a part is kept for asks that have preempted"
_KEPT_BACK: Final = "others keep a part of their guarantees back"
_NONE_REFUSED: Final[Mapping[str, str]] = {}
CORDONED: Final = "cordoned"
_WITHHELD_MAX: Final = 3
"""How many of the queues that keep back a type are named, those that keep most."""


class SubjectKind(Enum):
    """The kind of a blocker."""

    PARTITION = "partition"
    QUEUE = "queue"
    USER = "user"
    GROUP = "group"
    NODE = "node"
    NODES = "nodes"
    TASK_GROUP = "task group"
    APPLICATION = "application"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """One quantity of which there is not enough.

    `available` is what is left of `limit`; it is negative where more is used than the limit allows.
    `position` is where the limit stands in the configuration, `None` where it does not come from there.
    """

    name: str
    asked: int
    available: int
    limit: int
    position: Position | None = None

    @property
    def missing(self) -> int:
        """How much higher the limit, or lower the usage, would have to be."""
        return self.asked - self.available


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One thing that blocks an ask or a whole application.

    `queue_path` is the queue where a limit of a user or a group stands. `position` is the setting that the
    reason is about, where it is about no quantity. `since_ns` is when it began, where that is known, and
    `until_ns` when time alone takes the blocker away.
    """

    reason: RefusalReason
    kind: SubjectKind
    subject: str
    queue_path: str = ""
    lacks: tuple[Lack, ...] = ()
    detail: str = ""
    position: Position | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    withheld: tuple[Withheld, ...] = ()
    """The largest amounts that other queues keep back of their guarantees, for the types that lack."""
    setting: str = ""
    """The key that limits resources in the configuration; empty without one, or from an older scheduler."""
    change: str = ""
    """The change that would remove it, if the reason alone does not determine it; else empty."""


def lacks_of(
    wanted: Resource,
    limit: Resource,
    used: Resource,
    positions: Mapping[str, Position],
    setting: str,
    *,
    is_closed: bool = False,
) -> tuple[Lack, ...]:
    """Return the types of which too little is left under a limit.

    Args:
        wanted: The request.
        limit: The limit by type.
        used: The use of it.
        positions: Where settings stand in the configuration.
        setting: The name of the limit there; that of one type is `<setting>.<type>`.
        is_closed: A type without a limit is not there at all, instead of unlimited.
    """
    found = []
    for name, asked in sorted(wanted.items()):
        if asked <= 0 or (not limit.has(name) and not is_closed):
            continue
        most = limit.get(name)
        if used.get(name) + asked > max(0, most):
            position = positions.get(f"{setting}.{name}") or positions.get(setting)
            available = most - used.get(name)
            found.append(Lack(name=name, asked=asked, available=available, limit=most, position=position))
    return tuple(found)


class NodeObstacle(Enum):
    """Why a node does not take an ask. A node is counted once, for the reason that is hardest to change."""

    TOO_SMALL = "too small even when empty"
    UNSCHEDULABLE = CORDONED
    NO_ROOM = "without enough room left"
    RESERVED = "with room, but reserved for another ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTally:
    """How many nodes refuse for one reason.

    `types` has the number of those with too little of each resource type; empty if the reason is not room.
    `examples` are the first of them in scheduling order, `reserved_for` the asks that hold these. Without the
    work of other schedulers those in `foreign` would have room.
    """

    obstacle: NodeObstacle
    nodes: int
    types: tuple[tuple[str, int], ...] = ()
    examples: tuple[str, ...] = ()
    reserved_for: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """The node that lacks least, among those that lack only room.

    `foreign` is what the work of other schedulers uses there of the types that lack.
    """

    node_id: str
    lacks: tuple[Lack, ...]
    foreign: Resource = EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSummary:
    """All nodes of a partition, summarised for one ask.

    `with_room` and `tallies` compare sizes. `first` is the node that the ask would be tried on first, the
    empty text if no node is available. `reasons` also count the refusals of the resource manager, as far as
    these are known: each node that is not available counts once, for its first reason, so the numbers and
    `available` add up to `total`. The most frequent reason comes first.
    """

    total: int
    with_room: int
    first: str
    tallies: tuple[NodeTally, ...]
    nearest: NearMiss | None
    reasons: tuple[tuple[str, int], ...] = ()

    @property
    def available(self) -> int:
        """The number of nodes without a reason; an older scheduler in another process sends no reasons."""
        return self.total - sum(count for _, count in self.reasons) if self.reasons else self.with_room

    def refused(self, reason: str) -> NodeSummary:
        """Return the summary in which the available nodes are refused for one reason."""
        counts = dict(self.reasons)
        counts[reason] = counts.get(reason, 0) + self.available
        return replace(self, reasons=_by_number(counts))


def obstacle_of(entry: NodeEntry, resource: Resource, *, own: bool = False) -> NodeObstacle | None:
    """Return why a node does not take an ask, `None` if it does: what `NodeOrder.fitting` asks of it.

    Args:
        entry: The node.
        resource: The request of the ask.
        own: The node is reserved for this very ask.
    """
    if not fits(entry.capacity, resource):
        return NodeObstacle.TOO_SMALL
    if not entry.schedulable:
        return NodeObstacle.UNSCHEDULABLE
    if not fits(entry.available, resource):
        return NodeObstacle.NO_ROOM
    return NodeObstacle.RESERVED if entry.reserved and not own else None


def node_lacks(resource: Resource, room: Resource, capacity: Resource) -> tuple[Lack, ...]:
    """Return what a node has too little of: `room` is what it has left, or all of it."""
    missing = lacks_of(resource, room, EMPTY, {}, "", is_closed=True)
    return tuple(
        Lack(name=lack.name, asked=lack.asked, available=lack.available, limit=capacity.get(lack.name))
        for lack in missing
    )


def used_by_others(entry: NodeEntry, lacks: Iterable[Lack]) -> Resource:
    """Return what the work of other schedulers uses on a node of the types that lack."""
    occupied = entry.node.facts().occupied
    return Resource({lack.name: used for lack in lacks if (used := occupied.get(lack.name)) > 0})


def summarise(
    nodes: Iterable[NodeEntry],
    resource: Resource,
    *,
    own_node: str = "",
    refused: Mapping[str, str] = _NONE_REFUSED,
) -> NodeSummary:
    """Ask every node, in scheduling order.

    Args:
        nodes: The nodes.
        resource: The request of the ask.
        own_node: The node that is reserved for the ask, or the empty text.
        refused: The nodes that the resource manager refuses to the ask, and why.
    """
    refusing: dict[NodeObstacle, list[NodeEntry]] = {obstacle: [] for obstacle in NodeObstacle}
    willing: list[NodeEntry] = []
    available: list[NodeEntry] = []
    reasons: dict[str, int] = {}
    for entry in nodes:
        obstacle = obstacle_of(entry, resource, own=entry.node_id == own_node)
        (willing if obstacle is None else refusing[obstacle]).append(entry)
        reason = refused.get(entry.node_id) or _reason(obstacle, entry, resource)
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            available.append(entry)
    own = (entry for entry in available if entry.node_id == own_node)
    first = next(own, available[0] if available else None)
    return NodeSummary(
        total=len(willing) + sum(map(len, refusing.values())),
        with_room=len(willing),
        first="" if first is None else first.node_id,
        tallies=tuple(
            _tally(obstacle, entries, resource) for obstacle, entries in refusing.items() if entries
        ),
        nearest=_nearest(refusing[NodeObstacle.NO_ROOM], resource),
        reasons=_by_number(reasons),
    )


def _reason(obstacle: NodeObstacle | None, entry: NodeEntry, resource: Resource) -> str:
    """Return in a few words why a node is not available; the empty text if it is."""
    match obstacle:
        case None:
            return ""
        case NodeObstacle.UNSCHEDULABLE:
            return CORDONED
        case NodeObstacle.RESERVED:
            return "reserved for another ask"
        case _:
            room = entry.capacity if obstacle is NodeObstacle.TOO_SMALL else entry.available
            lacking = (name for name, asked in sorted(resource.items()) if 0 < asked > room.get(name))
            return f"Insufficient {next(lacking)}"


def _by_number(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return counts as pairs, the largest first, equal ones by their names."""
    return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def _tally(obstacle: NodeObstacle, entries: list[NodeEntry], resource: Resource) -> NodeTally:
    types: dict[str, int] = {}
    if obstacle in (NodeObstacle.TOO_SMALL, NodeObstacle.NO_ROOM):
        for entry in entries:
            room = entry.capacity if obstacle is NodeObstacle.TOO_SMALL else entry.available
            for lack in node_lacks(resource, room, entry.capacity):
                types[lack.name] = types.get(lack.name, 0) + 1
    shown = entries[:EXAMPLES_MAX]
    held, is_full = obstacle is NodeObstacle.RESERVED, obstacle is NodeObstacle.NO_ROOM
    return NodeTally(
        obstacle=obstacle,
        nodes=len(entries),
        types=tuple(sorted(types.items())),
        examples=tuple(entry.node_id for entry in shown),
        reserved_for=tuple(key for entry in shown for key in entry.node.facts().reservations) if held else (),
        foreign=tuple(entry.node_id for entry in shown if is_full and _is_filled_by_others(entry, resource)),
    )


def _is_filled_by_others(entry: NodeEntry, resource: Resource) -> bool:
    """Return whether a node without room would have it if other schedulers had placed nothing there."""
    return fits(add(entry.available, entry.node.facts().occupied), resource)


def _nearest(entries: list[NodeEntry], resource: Resource) -> NearMiss | None:
    if not entries:
        return None
    best = min(entries, key=lambda entry: (fit_score(entry.available, resource), entry.key))
    lacks = node_lacks(resource, best.available, best.capacity)
    return NearMiss(node_id=best.node_id, lacks=lacks, foreign=used_by_others(best, lacks))


def queue_quota_blockers(
    leaf: Queue, levels: Sequence[Queue], ask: Ask, claim: PreemptionClaim | None
) -> Iterator[Blocker]:
    """Walk those of some queues above a leaf that have no room for an ask of it.

    The claim of the ask counts as room.
    """
    resource = ask.resource
    beside = kept_beside(leaf)
    for level in levels:
        maximum = level.maximum
        own = EMPTY if claim is None else claim.held_in(level)
        kept = beside.get(level, EMPTY)
        if maximum is None or level.has_room(resource, own, kept):
            continue
        is_root = level.parent is None
        held = subtract(level.held, own)
        used = add(add(level.allocated, held), kept)
        lacks = lacks_of(resource, maximum, used, level.positions, "max", is_closed=is_root)
        is_held = any(held.get(lack.name) > 0 for lack in lacks)
        withheld = _withheld(leaf, level, lacks) if len(kept) else ()
        yield Blocker(
            reason=RefusalReason.QUEUE_QUOTA,
            kind=SubjectKind.QUEUE,
            subject=level.path,
            lacks=lacks,
            setting="max",
            detail=_detail(is_held=is_held, is_withheld=bool(withheld), is_root=is_root),
            withheld=withheld,
        )


def _detail(*, is_held: bool, is_withheld: bool, is_root: bool) -> str:
    if is_held:
        return _HELD
    if is_withheld:
        return _KEPT_BACK
    return "the nodes together have no more" if is_root else ""


def _withheld(leaf: Queue, level: Queue, lacks: Sequence[Lack]) -> tuple[Withheld, ...]:
    """Return which queues keep back most of the types that lack in a queue above a leaf."""
    return tuple(each for lack in lacks for each in withheld_from(leaf, level, lack.name)[:_WITHHELD_MAX])


def user_quota_blockers(
    state: PartitionState, queue_path: str, application_id: str, user: User, ask: Ask
) -> Iterator[Blocker]:
    """Walk the limits that an ask does not fit under: the user's first, each from the root down."""
    holder = (queue_path, application_id, user)
    held = (
        held_of_holders(state, *holder, ask.allocation_key)
        if state.claims.by_key
        else (NOTHING_HELD, NOTHING_HELD)
    )
    resource = ask.resource
    for found in state.limits.blockers(*holder, resource, held):
        yield Blocker(
            reason=RefusalReason.USER_QUOTA,
            kind=_kind(found.kind),
            subject=found.name,
            queue_path=found.queue_path,
            lacks=lacks_of(resource, found.limit, found.used, found.positions, found.key),
            setting=found.key,
            position=found.position,
        )


def application_count_blockers(
    state: PartitionState, leaf: Queue, application_id: str, user: User
) -> Iterator[Blocker]:
    """Walk the limits to the number of applications that do not let one start."""
    for level in leaf.above:
        if not level.has_place_for(application_id):
            limit = level.max_applications
            running = level.running + len(level.accepted_allocating)
            position = level.positions.get("maxapplications")
            lack = Lack(name=APPLICATIONS, asked=1, available=limit - running, limit=limit, position=position)
            yield Blocker(
                reason=RefusalReason.QUEUE_APPLICATIONS,
                kind=SubjectKind.QUEUE,
                subject=level.path,
                lacks=(lack,),
            )
    for found in state.limits.application_blockers(leaf.path, application_id, user):
        lack = Lack(
            name=APPLICATIONS,
            asked=1,
            available=found.limit - found.running,
            limit=found.limit,
            position=found.positions.get("maxapplications", found.position),
        )
        yield Blocker(
            reason=RefusalReason.USER_APPLICATIONS,
            kind=_kind(found.kind),
            subject=found.name,
            queue_path=found.queue_path,
            lacks=(lack,),
        )


def admission_blockers(state: PartitionState, entry: ApplicationEntry) -> Iterator[Blocker]:
    """Walk the policy that keeps an application from starting; it is asked now."""
    held = holding_policy(state, entry)
    if held is not None:
        yield Blocker(
            reason=RefusalReason.POLICY,
            kind=SubjectKind.APPLICATION,
            subject=entry.application_id,
            detail=f"{held.policy}: {held.wait.reason}",
            until_ns=held.wait.until_ns,
        )


def wait_blockers(state: PartitionState, entry: ApplicationEntry) -> Iterator[Blocker]:
    """Walk what an application waits for besides room: the end of others, or its turn in its array."""
    waits = entry.waits
    if waits is None:
        return
    reason = RefusalReason.ARRAY_LIMIT if waits.is_ready else RefusalReason.DEPENDENCY
    detail, change = _turn_texts(state, entry, waits) if waits.is_ready else _end_texts(state, waits)
    subject = entry.application_id
    yield Blocker(reason=reason, kind=SubjectKind.APPLICATION, subject=subject, detail=detail, change=change)


def _turn_texts(state: PartitionState, entry: ApplicationEntry, waits: Waits) -> tuple[str, str]:
    name = waits.terms.array
    array = state.dependencies.arrays[name]
    ahead = sum(1 for _ in takewhile(lambda other: other != entry.application_id, array.waiting))
    detail = f"{len(array.running)} of array {name}, which runs {array.limit} at once; {ahead} wait before it"
    return detail, f"one of array {name} must end, or a new one must name a higher arrayLimit"


def _end_texts(state: PartitionState, waits: Waits) -> tuple[str, str]:
    if waits.never:
        how, other = (
            ("well", "to fail")
            if waits.terms.names[waits.never] is ApplicationOutcome.FAILED
            else ("failed", "")
        )
        detail = (
            f"{waits.never} has ended {how}, and it waits for it {other or 'to end well'}: it can never start"
        )
        return detail, f"it must be submitted again without {waits.never}"
    names = [*waits.unmet]
    known = state.entries.keys() | state.dependencies.arrays.keys()
    texts = [
        f"{name} {'has not ended' if name in known else 'is not known'}" for name in names[:EXAMPLES_MAX]
    ]
    more = [f"{len(names) - EXAMPLES_MAX} more"] if len(names) > EXAMPLES_MAX else []
    return ", ".join(texts + more), f"{', '.join(names[:EXAMPLES_MAX] + more)} must end"


def _kind(kind: HolderKind) -> SubjectKind:
    return SubjectKind.USER if kind == "user" else SubjectKind.GROUP

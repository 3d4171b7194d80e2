"""An explanation as frozen values, with the places of what waits in the orders of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ..applications.effects import ApplicationState
from ..applications.report import Noted, TaskGroupCounts
from ..configuration.durations import short_duration_text
from ..configuration.problems import Position
from ..configuration.queue_properties import (
    APPLICATION_SORT_POLICY,
    APPLICATION_SORT_PRIORITY,
    FAIR_HALF_LIFE,
    FAIR_WEIGHT,
    QUEUE_SORT_POLICY,
)
from ..placement.rules import RuleOutcome
from ..preemption.protection import position_of_property
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.quota import fair_maximum, ranked_children
from ..queues.tree import QueueTree
from ..queues.use_order import is_below_guarantee, mean_share, mean_use, weight_of
from ..queues.users import LeafUsers
from ..resources.decayed_use import level_in_ns, rounded
from ..resources.resource import Resource, quantity_text
from ..state.preemption_log import PreemptionRecord, VictimRecord
from ..values.messages import User
from .blockers import Blocker, NodeSummary
from .planned_starts import PlannedStart

AHEAD_MAX: Final = 5
"""How many of those that go before are named."""


class AskStatus(Enum):
    """The status of an ask."""

    WAITING = "waits"
    REPLACING = "takes the place of its placeholder once the resource manager has confirmed its end"
    PLACED = "runs"
    LEAVING = "runs until the resource manager confirms its end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The gang of an application: it runs when the placeholders that are placed are all that it announced."""

    announced: Resource
    placed: Resource
    hard: bool
    task_groups: tuple[TaskGroupCounts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskExplanation:
    """One ask: where it runs, or everything that blocks it.

    `node_id` is where it runs, `reserved_node` the node reserved for it; each the empty text without one.
    `place` is its place among the waiting asks of its application. `nodes` is `None` if the nodes do not
    decide. A waiting ask without blockers, whose application has no blockers either, is placed when its turn
    comes.
    """

    allocation_key: str
    status: AskStatus
    resource: Resource
    priority: int
    created_at_ns: int
    placeholder: bool = False
    task_group_name: str = ""
    required_node: str = ""
    node_id: str = ""
    reserved_node: str = ""
    place: Place | None = None
    blockers: tuple[Blocker, ...] = ()
    nodes: NodeSummary | None = None
    noted: tuple[Noted, ...] = ()
    planned_start: PlannedStart | None = None
    """When it is expected to start; `None` where the queues do not backfill."""
    ending: tuple[VictimRecord, ...] = ()
    """The victims that it waits for: the resource manager has not confirmed that these have ended."""
    ending_since_ns: int | None = None
    """When it preempted them."""
    preemption: str = ""
    """Why the last attempt to preempt for it failed; empty without an attempt, or if it has preempted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One application at one moment.

    `limit_group` is the group whose limits it counts against, the empty text without one. `blockers` block
    all its asks. `places` are its place in its queue, then the place of that queue among its siblings, and so
    on up. `asks` are the waiting ones in the order in which they are tried, then the others. `rules` has the
    answers of the placement rules for an application that was rejected. `preemptions` are those that it took
    part in, the oldest first, as far as the partition remembers, and `loops` how many of them repeat one
    without result.
    """

    time_ns: int
    partition: str
    application_id: str
    state: ApplicationState
    state_text: str
    state_since_ns: int | None
    submitted_at_ns: int
    finished_at_ns: int | None
    user: User
    queue_path: str
    limit_group: str = ""
    is_draining: bool = False
    rejection: str = ""
    rules: tuple[RuleOutcome, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    places: tuple[Place, ...] = ()
    gang: Gang | None = None
    asks: tuple[AskExplanation, ...] = ()
    preemptions: tuple[PreemptionRecord, ...]

    @property
    def loops(self) -> int:
        """How many of the preemptions repeat one that had no result."""
        return sum(bool(record.loop) for record in self.preemptions)

    @property
    def waiting(self) -> tuple[AskExplanation, ...]:
        """The asks that wait, in the order in which they are tried."""
        return tuple(ask for ask in self.asks if ask.status is AskStatus.WAITING)

    def ask(self, allocation_key: str) -> AskExplanation | None:
        """Return the explanation of one ask, `None` if the application has no ask with this key."""
        return next((ask for ask in self.asks if ask.allocation_key == allocation_key), None)

    def preemptions_of(self, allocation_key: str) -> tuple[PreemptionRecord, ...]:
        """Return the preemptions that an allocation was a victim of."""
        return tuple(
            record
            for record in self.preemptions
            if any(
                victim.allocation_key == allocation_key and victim.application_id == self.application_id
                for victim in record.victims
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in an order, counted from one.

    `subject` is what has the place, `among` where, `order` the rule of the order in words. `ahead` are the
    first of those that go before. `position` is the setting of the order, `None` for the default.
    """

    subject: str
    among: str
    number: int
    of: int
    ahead: tuple[str, ...]
    order: str
    position: Position | None = None


def place_in(
    names: Sequence[str], index: int, among: str, order: str, position: Position | None = None
) -> Place:
    """Return the place of one of the names that stand in an order."""
    return Place(
        subject=names[index],
        among=among,
        number=index + 1,
        of=len(names),
        ahead=tuple(names[: min(index, AHEAD_MAX)]),
        order=order,
        position=position,
    )


def application_place(leaf: Queue, entry: ApplicationEntry, *, is_new: bool = False) -> Place | None:
    """Return the place of an application in its leaf, `None` while nothing of it waits.

    Args:
        leaf: The leaf.
        entry: The application.
        is_new: It is not in the leaf, and the place is the one that it would have.
    """
    ranked = list(leaf.entries.ranked(leaf, entry) if is_new else leaf.entries.ranked(leaf))
    names = [other.application_id for other in ranked]
    if entry.application_id not in names:
        return None
    index = names.index(entry.application_id)
    order = leaf.application_order.sentence(leaf)
    if leaf.application_order.takes_turns:
        order = f"{order}: {_users_text(leaf, entry, ranked)}"
    if leaf.application_order.policy is not None:
        others = ranked[index - 1 : index] if index else ranked[1:2]
        texts = [
            _key_text(each.application_id, leaf.application_order.key(each, leaf)[0])
            for each in (entry, *others)
        ]
        order = f"{order}: {'; '.join(texts)}"
    settings = (APPLICATION_SORT_POLICY, APPLICATION_SORT_PRIORITY)
    found = [leaf.positions.get(f"properties.{name}") for name in settings]
    position = next((position for position in found if position is not None), None)
    return place_in(names, index, leaf.path, order, position)


def queue_places(tree: QueueTree, leaf: Queue) -> tuple[Place, ...]:
    """Return the place of a leaf among its siblings, and of each queue above it; without idle queues."""
    places = []
    for level in leaf.above[:-1]:
        parent = level.parent
        assert parent is not None, "the root has been left out"
        ranked = list(ranked_children(tree, parent))
        if level not in ranked:
            continue
        index = ranked.index(level)
        order, position = parent.queue_order.sentence(parent), None
        if parent.queue_order.policy is not None:
            others = ranked[index - 1 : index] if index else ranked[1:2]
            texts = [_key_text(each.path, _key_among(each, parent)) for each in (level, *others)]
            order = f"{order}: {'; '.join(texts)}"
            position = position_of_property(parent, QUEUE_SORT_POLICY)
        elif parent.weighs_use:
            order = f"{order}: {_uses_text(parent, level, ranked)}"
            position = _setting_of_use(parent)
        names = [child.path for child in ranked]
        places.append(place_in(names, index, parent.path, order, position))
    return tuple(places)


def _key_among(child: Queue, parent: Queue) -> object:
    """Return the key that a policy gives to a queue."""
    return parent.queue_order.key(child, None, by_priority=False)[0]


def _key_text(name: str, key: object) -> str:
    """Return the key that a policy gives to something."""
    parts = key[1] if isinstance(key, tuple) and len(key) > 1 else None
    if not isinstance(parts, tuple):
        return f"{name} has no key, as the policy has failed"
    return f"{name} has {', '.join(map(str, parts))}"


def _half_life(half_life_ns: int | None) -> str:
    return "" if half_life_ns is None else f", half-life {short_duration_text(half_life_ns)}"


def _users_text(leaf: Queue, entry: ApplicationEntry, ranked: Sequence[ApplicationEntry]) -> str:
    """Return what a user has used and, to compare, the user just before them, else the one just after."""
    users = leaf.entries.users
    assert users is not None, f"{leaf.path} does not order its users: please report"
    own = entry.user.name
    names = list(dict.fromkeys(other.user.name for other in ranked))
    index = names.index(own)
    others = names[index - 1 : index] if index else names[1:2]
    text = "; ".join(_user_text(leaf, users, name) for name in (own, *others))
    return text + _level_text(users.level_in_ns(own, others[0]) if others else None)


def _user_text(leaf: Queue, users: LeafUsers, name: str) -> str:
    used = "uses" if leaf.settings.fair_half_life_ns is None else "used on average"
    amounts = _amounts(users.seen(name).mean(leaf.now_ns()))
    share = f"{users.share_now(name):.4f} of {leaf.path}"
    return f"{name} {used} {amounts}, weight {users.weight_of(name)}: {share}"


def _amounts(means: Mapping[str, float]) -> str:
    amounts = sorted(rounded(means).items())
    return ", ".join(f"{name} {quantity_text(name, amount)}" for name, amount in amounts) or "nothing"


def _uses_text(parent: Queue, level: Queue, ranked: Sequence[Queue]) -> str:
    """Return what a queue has used and, to compare, the sibling just before it, else the one just after."""
    now_ns = parent.now_ns() if parent.settings.fair_half_life_ns is not None else 0
    limits = fair_maximum(parent)
    index = ranked.index(level)
    others = ranked[index - 1 : index] if index else ranked[1:2]
    text = "; ".join(_use_text(parent, child, limits, now_ns) for child in (level, *others))
    return text + _level_text(_queues_level_in_ns(level, others[0], limits, now_ns) if others else None)


def _queues_level_in_ns(queue: Queue, other: Queue, limits: Resource | None, now_ns: int) -> int | None:
    """Return after how long two siblings are level, `None` if time does not make them."""
    uses = queue.decayed, other.decayed
    if uses[0] is None or uses[1] is None or is_below_guarantee(queue) or is_below_guarantee(other):
        return None
    return level_in_ns((uses[0], uses[1]), (weight_of(queue), weight_of(other)), limits, now_ns)


def _level_text(after_ns: int | None) -> str:
    return "" if after_ns is None else f"; level in {short_duration_text(after_ns)} if nothing changes"


def _use_text(parent: Queue, child: Queue, limits: Resource | None, now_ns: int) -> str:
    if is_below_guarantee(child):
        return f"{child.path} is below its guarantee"
    amounts = _amounts(mean_use(child, now_ns))
    used = "uses" if child.decayed is None else "used on average"
    counts_all = child.guaranteed is None or parent.settings.fair_count.counts_all
    beyond = "" if counts_all else " above its guarantee"
    share = f"{mean_share(child, limits, now_ns):.4f} of {parent.path}"
    return f"{child.path} {used} {amounts}{beyond}, weight {weight_of(child)}: {share}"


def _setting_of_use(parent: Queue) -> Position | None:
    """Return where the half-life stands, or else the first weight of a queue below the parent."""
    children = [parent.children[name] for name in sorted(parent.children)]
    found = [level.positions.get(f"properties.{FAIR_HALF_LIFE}") for level in parent.above]
    found += [child.positions.get(f"properties.{FAIR_WEIGHT}") for child in children]
    return next((position for position in found if position is not None), None)

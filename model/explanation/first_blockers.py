"""The first blocker of waiting applications, in few words: what a person sees in a list, and what sums count.

The blocker is the first one of the explanation of an application and its first waiting ask. Two parts are not
checked here, since they would cost as much as a cycle: a gang that is placed whole and has its quotas counts
as waiting for room, and the answers of policies and resource managers are those of the last walk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Final, NamedTuple, final

from ..applications.effects import ApplicationState
from ..applications.gang import whole_members
from ..nodes.gang_room import slots, usable_rooms
from ..planning.planned_jobs import backfilling_queue
from ..queues.application_entry import ApplicationEntry
from ..resources.comparisons import is_zero
from ..resources.resource import Resource, total_of
from ..state.partition_state import PartitionState
from ..values.allocation import Ask, RefusalReason
from ..values.states import ObjectState
from .asks import AskChecker
from .blockers import (
    Blocker,
    NodeObstacle,
    NodeSummary,
    SubjectKind,
    application_count_blockers,
    queue_quota_blockers,
    summarise,
    user_quota_blockers,
    wait_blockers,
)
from .explain import partition_blockers

_WORDS: Final = {
    RefusalReason.USER_QUOTA: "user limit",
    RefusalReason.QUEUE_QUOTA: "queue max",
    RefusalReason.PREDICATES: "refused by the manager",
    RefusalReason.WINDOW: "nodes reserved by a window",
    RefusalReason.GANG_ROOM: "gang",
    RefusalReason.DOMAIN_ROOM: "gang: domain",
    RefusalReason.GANG_INCOMPLETE: "gang incomplete",
    RefusalReason.REQUIRED_NODE_UNKNOWN: "node unknown",
    RefusalReason.REQUIRED_NODE_FULL: "node full",
    RefusalReason.WOULD_DELAY: "behind a promise",
    RefusalReason.QUEUE_APPLICATIONS: "queue max: applications",
    RefusalReason.USER_APPLICATIONS: "user limit: applications",
    RefusalReason.POLICY: "held back",
    RefusalReason.DEPENDENCY: "after others",
    RefusalReason.ARRAY_LIMIT: "array limit",
    RefusalReason.BACKOFF: "back-off",
    RefusalReason.PARTITION_STOPPED: "partition stopped",
    RefusalReason.NO_CAPACITY: "no nodes",
    RefusalReason.CONGESTED: "manager behind",
    RefusalReason.MANAGER_PAUSED: "manager lost",
    RefusalReason.MANAGER_STOPPED: "manager stopped",
}
_TURN: Final = "its turn"


class FirstBlocker(NamedTuple):
    """The first blocker of an application; `counts` are those of a gang (`8 of 10`), empty otherwise.

    There are few values of `words`, so that they can be counted.
    """

    application_id: str
    queue_path: str
    words: str
    counts: str = ""
    since_ns: int = 0
    """When its first waiting ask was made."""

    def text(self) -> str:
        """Return both, as a person reads them."""
        return f"{self.words} {self.counts}".rstrip()


def first_blockers(state: PartitionState, application_ids: Iterable[str]) -> tuple[FirstBlocker, ...]:
    """Return the first blockers of those of some applications that wait, with the counts of gangs."""
    checker = _Checker(state, with_counts=True)
    entries = (state.entries.get(application_id) for application_id in application_ids)
    return tuple(found for entry in entries if entry is not None and (found := checker.check(entry)))


class WaitingSums(NamedTuple):
    """What waits in a partition."""

    counts: Counter[tuple[str, str]]
    """How many applications, by the path of their queue and the words of their first blocker."""
    oldest_ns: dict[str, int]
    """How long the first waiting ask of an application has waited at most, by the path of its queue."""


def waiting_sums(state: PartitionState) -> WaitingSums:
    """Return the sums of the applications that wait."""
    checker = _Checker(state, with_counts=False)
    sums = WaitingSums(Counter(), {})
    now_ns = state.now_ns()
    for found in filter(None, map(checker.check, state.entries.values())):
        path = found.queue_path
        sums.counts[path, found.words] += 1
        sums.oldest_ns[path] = max(sums.oldest_ns.get(path, 0), now_ns - found.since_ns)
    return sums


@final
class _Checker:
    """Finds first blockers at one moment; asks of one size share the answers of the nodes."""

    def __init__(self, state: PartitionState, *, with_counts: bool) -> None:
        self._state = state
        self._with_counts = with_counts
        self._halt = next(partition_blockers(state), None)
        self._no_room: dict[Resource, str] = {}
        self._slots: dict[Resource, int] = {}

    def check(self, entry: ApplicationEntry) -> FirstBlocker | None:
        """Return the first blocker of an application, `None` if nothing of it waits."""
        tried = entry.application.asks.first_waiting(1)
        if not tried:
            return None
        words, counts = self._of_application(entry), ""
        if not words and entry.facts.gang_waits:
            words, counts = self._of_gang(entry)
        elif not words:
            words = self._of_ask(entry, tried[0].ask, tried[0].reserved_node)
            if words and tried[0].ask.placeholder and not is_zero(entry.facts.placeholder_allocated):
                words, counts = _WORDS[RefusalReason.GANG_ROOM], self._placed(entry)
        since_ns = tried[0].ask.created_at_ns
        return FirstBlocker(entry.application_id, entry.queue.path, words or _TURN, counts, since_ns)

    def _of_application(self, entry: ApplicationEntry) -> str:
        """Return what blocks all asks of an application, except for its gang."""
        state, leaf = self._state, entry.queue
        if self._halt is not None:
            return self._words(self._halt)
        if any(queue.state is ObjectState.STOPPED for queue in leaf.above[:-1]):
            return "queue stopped"
        if (waits := next(wait_blockers(state, entry), None)) is not None:
            return self._words(waits)
        if entry.facts.state is ApplicationState.ACCEPTED:
            counts = application_count_blockers(state, leaf, entry.application_id, entry.user)
            if (blocker := next(counts, None)) is not None:
                return self._words(blocker)
        if entry.held is not None:
            return _WORDS[RefusalReason.POLICY]
        until_ns = entry.backoff_until_ns
        is_backed_off = until_ns is not None and until_ns > state.now_ns()
        return _WORDS[RefusalReason.BACKOFF] if is_backed_off else ""

    def _of_ask(self, entry: ApplicationEntry, ask: Ask, reserved_node: str) -> str:
        """Return what blocks one ask."""
        state = self._state
        if ask.required_node:
            checker = AskChecker(state, entry.queue, entry.application_id, entry.user, tags=entry.tags)
            blocker = next(iter(checker.check(ask, reserved_node=reserved_node).blockers), None)
            return self._of_last_walk(entry, ask) if blocker is None else self._words(blocker)
        return self._of_quotas(entry, ask) or (
            self._of_nodes(ask.resource, reserved_node) or self._of_last_walk(entry, ask)
        )

    def _of_quotas(self, entry: ApplicationEntry, ask: Ask) -> str:
        """Return the limit or the maximum that an ask does not fit."""
        state, leaf = self._state, entry.queue
        users = user_quota_blockers(state, leaf.path, entry.application_id, entry.user, ask)
        queues = queue_quota_blockers(leaf, leaf.above, ask, state.claims.find(ask.allocation_key))
        blocker = next(chain(users, queues), None)
        return "" if blocker is None else self._words(blocker)

    def _of_nodes(self, resource: Resource, reserved_node: str) -> str:
        """Return what the nodes have too little of, or the node that is reserved for the ask."""
        own = self._state.nodes.get(reserved_node) if reserved_node else None
        if own is not None:
            return _no_room(summarise([own], resource, own_node=reserved_node))
        if resource not in self._no_room:
            self._no_room[resource] = _no_room(summarise(self._state.nodes, resource))
        return self._no_room[resource]

    def _of_last_walk(self, entry: ApplicationEntry, ask: Ask) -> str:
        """Return the refusal of the RM, or for the sake of a promise, in the last walk that tried an ask."""
        backfills = backfilling_queue(entry.queue)
        if backfills is None:
            refusals = entry.application.asks.refusals()
        else:
            denied = self._state.ends.denied.get(backfills.path, {}).get(ask.allocation_key)
            refusals = () if denied is None else (denied,)
        reasons = {RefusalReason.PREDICATES, RefusalReason.WINDOW, RefusalReason.WOULD_DELAY}
        return next((_WORDS[each.reason] for each in refusals if each.reason in reasons), "")

    def _of_gang(self, entry: ApplicationEntry) -> tuple[str, str]:
        """Return what blocks a gang that is placed whole, and for how many of its members there is room."""
        waiting = [record.ask for record in entry.application.asks.waiting()]
        members = whole_members(entry.application.gang_settings, waiting)
        if not members:
            return _WORDS[RefusalReason.GANG_INCOMPLETE], ""
        whole = members[0].resized(total_of(ask.resource for ask in members))
        words = self._of_quotas(entry, whole)
        is_one_domain = bool(entry.application.gang_settings.needed_level)
        of_room = _WORDS[RefusalReason.DOMAIN_ROOM if is_one_domain else RefusalReason.GANG_ROOM]
        if words or not self._with_counts or is_one_domain:
            return words or of_room, ""
        sizes = Counter(ask.resource for ask in members)
        has_room = sum(min(count, self._slots_for(size)) for size, count in sizes.items())
        return of_room, f"{has_room} of {len(members)}"

    def _slots_for(self, size: Resource) -> int:
        if size not in self._slots:
            self._slots[size] = slots(size, usable_rooms(self._state.nodes))
        return self._slots[size]

    def _placed(self, entry: ApplicationEntry) -> str:
        """Return how many placeholders of a gang are placed."""
        if not self._with_counts:
            return ""
        groups = entry.application.report(only_key="").task_groups
        return f"{sum(group.placed for group in groups)} of {sum(group.placeholders for group in groups)}"

    def _words(self, blocker: Blocker) -> str:
        if blocker.kind is SubjectKind.GROUP:
            return _WORDS[blocker.reason].replace("user", "group")
        if blocker.reason is RefusalReason.QUEUE_QUOTA and blocker.subject == self._state.tree.root.path:
            # The maximum of the root is what the nodes have together.
            return f"no room: {blocker.lacks[0].name}"
        return _WORDS.get(blocker.reason, blocker.reason.value)


def _no_room(summary: NodeSummary) -> str:
    """Return the type that the nearest node lacks, or why no node is near; empty if one has room."""
    if summary.with_room:
        return ""
    if summary.nearest is not None and summary.nearest.lacks:
        return f"no room: {summary.nearest.lacks[0].name}"
    obstacles = {tally.obstacle for tally in summary.tallies}
    if NodeObstacle.RESERVED in obstacles:
        return "no room: nodes reserved"
    return "no node so large" if NodeObstacle.TOO_SMALL in obstacles else "no node takes work"

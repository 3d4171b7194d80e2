"""The accounts of a partition: sums over all running work, and their changes by requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from .queues import RecordedQueue, RecordedSettings, Size, positive, size_of, total

REPLACED: Final = "PLACEHOLDER_REPLACED"
"""The termination type of a placeholder that a member replaces."""
_FAILED: Final = "SCHEDULING_FAILED_ON_RM"
_TIMEOUT: Final = "TIMEOUT"


@dataclass
class RecordedNode:
    """A node."""

    name: str
    capacity: Size
    occupied: Size = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    is_drained: bool = False


@dataclass
class RecordedApplication:
    """An application."""

    name: str
    leaf: RecordedQueue
    user: str
    group: str
    """The group whose limits count, the empty text without one."""
    is_gang: bool
    groups: Sequence[str] = ()
    walltime: str = ""
    """The text of its tag."""


@dataclass
class RecordedAsk:
    """An ask, waiting or running."""

    key: str
    application: RecordedApplication
    size: Size
    priority: int
    created_ns: int
    task_group: str
    is_placeholder: bool
    is_originator: bool
    is_willing: bool
    preempts: bool
    required_node: str
    walltime: str = ""
    """The text of its tag."""

    @property
    def path(self) -> Sequence[RecordedQueue]:
        """The leaf and all queues above it."""
        return tuple(self.application.leaf.up)


@dataclass
class RecordedAllocation:
    """An allocation that runs, or whose end is not confirmed."""

    ask: RecordedAsk
    node: str
    since_ns: int
    is_preempted: bool = False
    is_leaving: bool = False
    """Whether its resource manager was asked to end it for another reason."""


@dataclass
class RecordedClaim:
    """The resources that are kept for an ask that has preempted, or for all members of a gang."""

    ask: RecordedAsk
    """All members of a gang as one."""
    keys: Sequence[str]
    """The key of the ask, or the keys of the members."""
    nodes: Sequence[str]
    line: int
    ending: set[str]
    ended_ns: int | None
    """The time when its last victim ended."""
    had_cycle: bool = False
    """Whether a cycle has run since then."""
    is_unclear: bool = False
    """Whether it may have ended: a node has changed, an ask needs it, or a gang may have other members."""

    @property
    def waits_for_cycle(self) -> bool:
        """Whether its time starts with the first cycle after all victims have ended."""
        return len(self.keys) > 1 or any(level.says("backfill.reservations") for level in self.ask.path)


class Bound(NamedTuple):
    """A maximum or a limit that applies to an ask."""

    text: str
    most: Size
    counts: Callable[[RecordedAsk], bool]
    """Returns whether an ask counts for it."""
    is_root: bool
    is_limit: bool


class RecordedAccounts:
    """The accounts of one partition at one moment."""

    def __init__(self) -> None:
        self.settings = RecordedSettings()
        self.nodes: dict[str, RecordedNode] = {}
        self.applications: dict[str, RecordedApplication] = {}
        self.asks: dict[str, RecordedAsk] = {}
        self.running: dict[str, RecordedAllocation] = {}
        self.foreign: dict[str, tuple[str, Size]] = {}
        self.claims: list[RecordedClaim] = []
        self.swaps: set[str] = set()
        """Placeholders that a member will replace on a node that is not known yet."""
        self.withdrawn: dict[str, RecordedAsk] = {}
        """Asks that were withdrawn while a placeholder was replaced in their task group, possibly by them."""
        self.losses: list[tuple[int, Sequence[RecordedQueue]]] = []
        """The losses of queues to guarantees and priorities, with their times."""
        self.has_hidden_claims = False
        """Whether room that ended for no ask may be kept for one that needs its node, without a record."""

    def used(self, queue: RecordedQueue, ask: RecordedAsk | None = None) -> Size:
        """Return the counted use: without preempted work, and above an ask with the claims of others."""
        runs = self.running.values()
        sizes = [run.ask.size for run in runs if queue in run.ask.path and not run.is_preempted]
        if ask is not None and queue in ask.path:
            sizes += [claim.ask.size for claim in self.others(ask) if queue in claim.ask.path]
        return total(sizes)

    def allocated(self, bound: Bound) -> Size:
        """Return the amount that counts for a bound, with the work that is being preempted."""
        return total(run.ask.size for run in self.running.values() if bound.counts(run.ask))

    def most(self, bound: Bound, ask: RecordedAsk) -> Size:
        """Return the amount that counts for a bound now, or after all preempted work has ended, if larger."""
        asks = [run.ask for run in self.running.values() if not run.is_preempted]
        asks += [claim.ask for claim in self.others(ask)]
        now, then = self.allocated(bound), total(each.size for each in asks if bound.counts(each))
        return {name: max(now.get(name, 0), then.get(name, 0)) for name in {*now, *then}}

    def others(self, ask: RecordedAsk) -> list[RecordedClaim]:
        """Return the claims of other asks."""
        return [claim for claim in self.claims if ask.key not in claim.keys]

    def needed(self, claim: RecordedClaim, counts: Callable[[RecordedAllocation], bool]) -> Size:
        """Return how much the asks of a claim need beyond the remaining use of its victims that counts."""
        ending = [self.running[key] for key in claim.ending if key in self.running]
        coming = total(run.ask.size for run in ending if counts(run))
        return positive({name: one - coming.get(name, 0) for name, one in claim.ask.size.items()})

    def free(self, node: RecordedNode) -> Size:
        """Return the free resources of a node."""
        sizes = [run.ask.size for run in self.running.values() if run.node == node.name]
        sizes += [size for where, size in self.foreign.values() if where == node.name]
        return less(node.capacity, total([*sizes, node.occupied]))

    def unclaimed(self) -> list[RecordedAllocation]:
        """Return the allocations that end for no ask."""
        claimed = {key for claim in self.claims for key in claim.ending}
        return [run for key, run in self.running.items() if run.is_preempted and key not in claimed]

    def bounds(self, ask: RecordedAsk) -> Iterator[Bound]:
        """Walk the maxima and limits that apply to an ask, from its leaf up."""
        for level in ask.path:
            is_root = level.parent is None
            most = total(node.capacity for node in self.nodes.values()) if is_root else level.maximum
            if most is not None:
                yield Bound(f"the maximum of {level.path}", most, _counts(level), is_root, is_limit=False)
            for kind, holder, limit in level.limits_of(ask.application.user, ask.application.group):
                text = f"the limit of {kind} {holder} in {level.path}"
                yield Bound(text, limit, _counts(level, kind, holder), is_root=False, is_limit=True)

    def lack_of_room(self, ask: RecordedAsk) -> str:
        """Return the maximum or limit without room for an ask besides the claims of others, or nothing."""
        for bound in self.bounds(ask):
            claims = [each for each in self.others(ask) if bound.counts(each.ask) and not each.is_unclear]
            held = [self.needed(claim, lambda run: bound.counts(run.ask)) for claim in claims]  # noqa: B023
            used = total([self.allocated(bound), *held, ask.size])
            for name in sorted(positive(ask.size)):
                if name in bound.most and used[name] > bound.most[name]:
                    return f"{bound.text}, {name} {bound.most[name]}"
        return ""

    def end(self, key: str, now_ns: int) -> RecordedAllocation | None:
        """Remove an ended allocation."""
        run = self.running.pop(key, None)
        self.swaps.discard(key)
        for claim in self.claims:
            claim.ending.discard(key)
            if not claim.ending and claim.ended_ns is None:
                claim.ended_ns = now_ns
        return run

    def withdraw(self, key: str) -> None:
        """Remove an ask, and its claim: for a gang the claim of all members."""
        ask = self.asks.pop(key, None)
        self.claims = [claim for claim in self.claims if key not in claim.keys]
        groups = {self.running[each].ask.task_group for each in self.swaps}
        if ask is not None and ask.task_group in groups:
            self.withdrawn[key] = ask

    def remove_application(self, name: str, now_ns: int) -> set[str]:
        """Remove an application with all its contents; return the keys of its allocations."""
        for key in [key for key, ask in self.asks.items() if ask.application.name == name]:
            self.withdraw(key)
        keys = {key for key, run in self.running.items() if run.ask.application.name == name}
        for key in keys:
            self.end(key, now_ns)
        return keys


def less(size: Size, other: Size) -> Size:
    """Return the difference of two sizes, with negative quantities."""
    return {name: size.get(name, 0) - other.get(name, 0) for name in {*size, *other}}


def _counts(level: RecordedQueue, kind: str = "", holder: str = "") -> Callable[[RecordedAsk], bool]:
    """Return the function for the asks that count in a queue, of all or of a user or a group."""

    def counts(ask: RecordedAsk) -> bool:
        return level in ask.path and (not kind or getattr(ask.application, kind) == holder)

    return counts


class Turn:
    """One turn of a partition: a request or a step, and its messages to the resource manager."""

    def __init__(self, line: int, at_ns: int, document: Mapping[str, Any]) -> None:
        self.line = line
        self.at_ns = at_ns
        self.document = document
        self.outcomes: list[tuple[int, Mapping[str, Any]]] = []
        """The outcomes, each with its line."""
        self.reported: dict[str, RecordedAllocation] = {}
        """The allocations that the resource manager reports, by key: these are not decisions."""
        self.ended: set[str] = set()
        """The keys that the request ends."""
        self.swapped: dict[str, RecordedAllocation] = {}
        """Placeholders that have ended for a member, by key."""
        self.disturbs = False
        """Whether the request changes room, or its use, by more than the end of work."""

    @property
    def schedules(self) -> bool:
        """Whether cycles run in it."""
        is_step = self.document.get("step") in ("cycle", "run_until_idle")
        return ("schedule" in self.document or is_step) and not self.document.get("halted")

    def rejected(self, message: str, field: str, key: str) -> set[str]:
        """Return the names that are rejected in it."""
        found = [outcome.get(message, {}).get(field, ()) for _, outcome in self.outcomes]
        return {str(entry.get(key, "")) for entries in found for entry in entries}


def carry_out(accounts: RecordedAccounts, turn: Turn) -> None:
    """Apply the request of a turn, without the rejected entries."""
    document = turn.document
    if "node" in document:
        rejected = turn.rejected("nodeResponse", "rejected", "nodeID")
        for update in document["node"].get("nodes", ()):
            if update.get("nodeID") not in rejected:
                _update_node(accounts, turn, update)
    elif "application" in document:
        _update_applications(accounts, turn, document["application"])
    elif "allocation" in document:
        _update_allocations(accounts, turn, document["allocation"])
    elif document.get("step") == "shut_down":
        for name in [*accounts.applications]:
            turn.ended |= accounts.remove_application(name, turn.at_ns)


def _update_node(accounts: RecordedAccounts, turn: Turn, update: Mapping[str, Any]) -> None:
    name, action = str(update["nodeID"]), str(update.get("action"))
    turn.disturbs = True
    if action.startswith("CREATE"):
        attributes = {key: str(value) for key, value in (update.get("attributes") or {}).items()}
        is_drained = action == "CREATE_DRAIN"
        accounts.nodes[name] = RecordedNode(name, {}, attributes=attributes, is_drained=is_drained)
    node = accounts.nodes.get(name)
    if node is None:
        return
    if action == "DECOMISSION":
        _lose_node(accounts, turn, name)
    elif action.startswith("DRAIN"):
        node.is_drained = action == "DRAIN_NODE"
    else:
        if "schedulableResource" in update:
            node.capacity = size_of(update["schedulableResource"])
        if "occupiedResource" in update:
            node.occupied = size_of(update["occupiedResource"])
        for each in update.get("existingAllocations", ()):
            _report(accounts, turn, each)


def _lose_node(accounts: RecordedAccounts, turn: Turn, name: str) -> None:
    del accounts.nodes[name]
    accounts.foreign = {key: each for key, each in accounts.foreign.items() if each[0] != name}
    for key in [key for key, run in accounts.running.items() if run.node == name]:
        if key in accounts.swaps:
            turn.swapped[key] = accounts.running[key]
        turn.ended.add(key)
        accounts.end(key, turn.at_ns)


def _update_applications(accounts: RecordedAccounts, turn: Turn, request: Mapping[str, Any]) -> None:
    queues = {name: path for _, each in turn.outcomes for name, path in each.get("queues", {}).items()}
    for new in request.get("new", ()):
        name, user = str(new["applicationID"]), new.get("ugi") or {}
        if name not in queues:
            continue
        leaf = accounts.settings.queue(queues[name])
        leaf.take_tags(new.get("tags") or {})
        known = accounts.applications.get(name)
        if known is None or known.leaf is not leaf:
            found = turn.document.get("groups", {}).get(user.get("user"))
            groups = user.get("groups") or (found if isinstance(found, list) else [])
            is_gang = any(tag.startswith("gang") for tag in new.get("tags") or ())
            owner, group = str(user.get("user", "")), _group_of(leaf, groups)
            walltime = str((new.get("tags") or {}).get("walltime", ""))
            accounts.applications[name] = RecordedApplication(
                name, leaf, owner, group, is_gang, groups, walltime
            )
    for name in [str(gone["applicationID"]) for gone in request.get("remove", ())]:
        turn.ended |= accounts.remove_application(name, turn.at_ns)
        accounts.applications.pop(name, None)


def _group_of(leaf: RecordedQueue, groups: list[str]) -> str:
    """Return the group whose limits count for a user with some groups."""
    for level in leaf.up if groups else ():
        named = [name for limit in level.limits for name in limit.groups]
        found = next((name for name in named if name in groups), "*" if "*" in named else "")
        if found:
            return found
    return ""


def _update_allocations(accounts: RecordedAccounts, turn: Turn, request: Mapping[str, Any]) -> None:
    rejected = turn.rejected("allocationResponse", "rejectedAllocations", "allocationKey")
    for each in request.get("allocations", ()):
        key = str(each.get("allocationKey", ""))
        if key not in rejected and "foreign" in each.get("allocationTags", {}):
            turn.disturbs = True
            accounts.foreign[key] = (str(each.get("nodeID", "")), size_of(each.get("resourcePerAlloc")))
        elif key not in rejected:
            _report(accounts, turn, each)
    for release in request.get("releases", {}).get("allocationsToRelease", ()):
        _release(accounts, turn, release)


def _report(accounts: RecordedAccounts, turn: Turn, each: Mapping[str, Any]) -> None:
    """Read an ask or an allocation; a known one may have a new size."""
    key, size = str(each.get("allocationKey", "")), size_of(each.get("resourcePerAlloc"))
    known = accounts.running[key].ask if key in accounts.running else accounts.asks.get(key)
    if known is not None:
        turn.disturbs |= key in accounts.running
        known.size = size
    ask = known or _ask(accounts, turn, each, size)
    if ask is None or key in accounts.running:
        return
    if each.get("nodeID"):
        turn.disturbs = True
        started = str(each.get("allocationTags", {}).get("licorne/start-time", ""))
        since_ns = min(turn.at_ns, int(started) * 10**9) if started.isdecimal() else turn.at_ns
        turn.reported[key] = RecordedAllocation(ask, str(each["nodeID"]), since_ns)
    else:
        accounts.asks[key] = ask
        for claim in accounts.claims:  # It may be a member instead of another one, or have another size.
            claim.is_unclear |= len(claim.keys) > 1 and claim.ask.application is ask.application


def _ask(accounts: RecordedAccounts, turn: Turn, each: Mapping[str, Any], size: Size) -> RecordedAsk | None:
    application = accounts.applications.get(str(each.get("applicationID", "")))
    if application is None:
        return None
    tags, policy = each.get("allocationTags") or {}, each.get("preemptionPolicy") or {}
    created = str(tags.get("creationTime", ""))
    return RecordedAsk(
        str(each["allocationKey"]),
        application,
        size,
        int(each.get("priority", 0)),
        int(created) * 10**9 if created.isdecimal() and len(created) <= 10 else turn.at_ns,
        str(each.get("taskGroupName", "")),
        bool(each.get("placeholder")),
        bool(each.get("originator")),
        bool(policy.get("allowPreemptSelf")),
        bool(policy.get("allowPreemptOther")),
        str(tags.get("yunikorn.apache.org/requiredNode", "")),
        str(tags.get("walltime", "")),
    )


def _release(accounts: RecordedAccounts, turn: Turn, release: Mapping[str, Any]) -> None:
    name, key = str(release.get("applicationID", "")), str(release.get("allocationKey", ""))
    why = release.get("terminationType", "")
    if not name:
        turn.disturbs = True
        accounts.foreign.pop(key, None)
        return

    def meant(one: str, ask: RecordedAsk) -> bool:
        return ask.application.name == name and key in ("", one)

    if why not in (_FAILED, _TIMEOUT):
        for each in [one for one, ask in accounts.asks.items() if meant(one, ask)]:
            accounts.withdraw(each)
    for each, run in [*accounts.running.items()]:
        if meant(each, run.ask):
            accounts.end(each, turn.at_ns)
            turn.ended.add(each)
            if why == REPLACED or run.is_leaving:
                turn.swapped[each] = run
            if why == _FAILED:
                accounts.asks[each] = run.ask

"""Applies the requests of a resource manager to the accounts of a partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .accounts import RecordedAccounts, RecordedAllocation, RecordedApplication, RecordedAsk, RecordedNode
from .queues import RecordedQueue, Size, size_of

REPLACED: Final = "PLACEHOLDER_REPLACED"
"""The termination type of a placeholder that a member replaces."""
_FAILED: Final = "SCHEDULING_FAILED_ON_RM"
_TIMEOUT: Final = "TIMEOUT"


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
        accounts.nodes[name] = RecordedNode(name, {}, is_drained=action == "CREATE_DRAIN")
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
            group = _group_of(leaf, groups)
            is_gang = any(tag.startswith("gang") for tag in new.get("tags") or ())
            owner = str(user.get("user", ""))
            accounts.applications[name] = RecordedApplication(name, leaf, owner, group, is_gang)
    for gone in request.get("remove", ()):
        name = str(gone["applicationID"])
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

"""The accounts of a partition: sums over all running work, from requests and answers alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .queues import RecordedQueue, RecordedSettings, Size, positive, total


@dataclass
class RecordedNode:
    """A node."""

    name: str
    capacity: Size
    occupied: Size = field(default_factory=dict)
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

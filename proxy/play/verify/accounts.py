"""Who uses what in a partition: sums over all that runs, from requests and answers alone."""

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
    """The group whose limits count, the empty text for none."""
    is_gang: bool


@dataclass
class RecordedAsk:
    """An ask, also of what runs."""

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
    """Something that runs, or has not been confirmed as ended."""

    ask: RecordedAsk
    node: str
    since_ns: int
    is_preempted: bool = False
    is_leaving: bool = False
    """Its resource manager was asked to end it for another reason."""


@dataclass
class RecordedClaim:
    """What is kept for an ask that has preempted, or for all members of a gang."""

    ask: RecordedAsk
    """All members of a gang as one."""
    keys: Sequence[str]
    """The key of the ask, or those of the members."""
    nodes: Sequence[str]
    line: int
    ending: set[str]
    ended_ns: int | None
    """When its last victim ended."""
    had_cycle: bool = False
    """A cycle has run since then."""
    is_unclear: bool = False
    """A node has changed, or an ask needs it, or a gang may have other members: it may have ended."""

    @property
    def waits_for_cycle(self) -> bool:
        """Whether its time runs from the first cycle after all has ended."""
        return len(self.keys) > 1 or any(level.says("backfill.reservations") for level in self.ask.path)


class Bound(NamedTuple):
    """A maximum or a limit that an ask is under."""

    text: str
    most: Size
    counts: Callable[[RecordedAsk], bool]
    """Whether something counts for it."""
    is_root: bool
    is_limit: bool


class RecordedAccounts:
    """Those of one partition at one moment."""

    def __init__(self) -> None:
        self.settings = RecordedSettings()
        self.nodes: dict[str, RecordedNode] = {}
        self.applications: dict[str, RecordedApplication] = {}
        self.asks: dict[str, RecordedAsk] = {}
        self.running: dict[str, RecordedAllocation] = {}
        self.foreign: dict[str, tuple[str, Size]] = {}
        self.claims: list[RecordedClaim] = []
        self.swaps: set[str] = set()
        """Placeholders that a member is to replace: its node is not known yet."""
        self.withdrawn: dict[str, RecordedAsk] = {}
        """Asks that were withdrawn while a placeholder was replaced in their task group, perhaps by them."""
        self.losses: list[tuple[int, Sequence[RecordedQueue]]] = []
        """When queues have lost something to guarantees and priorities."""
        self.has_hidden_claims = False
        """Room that ended for no ask may be kept for one that needs its node: no record says so."""

    def used(self, queue: RecordedQueue, ask: RecordedAsk | None = None) -> Size:
        """Return what counts as used: without what is preempted, and above an ask with others' claims."""
        runs = self.running.values()
        sizes = [run.ask.size for run in runs if queue in run.ask.path and not run.is_preempted]
        if ask is not None and queue in ask.path:
            sizes += [claim.ask.size for claim in self.others(ask) if queue in claim.ask.path]
        return total(sizes)

    def allocated(self, bound: Bound) -> Size:
        """Return what counts for a bound, with what is being preempted."""
        return total(run.ask.size for run in self.running.values() if bound.counts(run.ask))

    def most(self, bound: Bound, ask: RecordedAsk) -> Size:
        """Return what counts for a bound now, or once all that is preempted has ended, if that is more."""
        asks = [run.ask for run in self.running.values() if not run.is_preempted]
        asks += [claim.ask for claim in self.others(ask)]
        now, then = self.allocated(bound), total(each.size for each in asks if bound.counts(each))
        return {name: max(now.get(name, 0), then.get(name, 0)) for name in {*now, *then}}

    def others(self, ask: RecordedAsk) -> list[RecordedClaim]:
        """Return the claims of other asks."""
        return [claim for claim in self.claims if ask.key not in claim.keys]

    def needed(self, claim: RecordedClaim, counts: Callable[[RecordedAllocation], bool]) -> Size:
        """Return what the asks of a claim need beyond what those of its victims use still that count."""
        ending = [self.running[key] for key in claim.ending if key in self.running]
        coming = total(run.ask.size for run in ending if counts(run))
        return positive({name: one - coming.get(name, 0) for name, one in claim.ask.size.items()})

    def free(self, node: RecordedNode) -> Size:
        """Return what a node has left."""
        sizes = [run.ask.size for run in self.running.values() if run.node == node.name]
        sizes += [size for where, size in self.foreign.values() if where == node.name]
        return less(node.capacity, total([*sizes, node.occupied]))

    def unclaimed(self) -> list[RecordedAllocation]:
        """Return what ends for no ask."""
        claimed = {key for claim in self.claims for key in claim.ending}
        return [run for key, run in self.running.items() if run.is_preempted and key not in claimed]

    def bounds(self, ask: RecordedAsk) -> Iterator[Bound]:
        """Walk the maxima and limits that an ask is under, from its leaf up."""
        for level in ask.path:
            is_root = level.parent is None
            most = total(node.capacity for node in self.nodes.values()) if is_root else level.maximum
            if most is not None:
                yield Bound(f"the maximum of {level.path}", most, _counts(level), is_root, is_limit=False)
            for kind, holder, limit in level.limits_of(ask.application.user, ask.application.group):
                text = f"the limit of {kind} {holder} in {level.path}"
                yield Bound(text, limit, _counts(level, kind, holder), is_root=False, is_limit=True)

    def lack_of_room(self, ask: RecordedAsk) -> str:
        """Return which maximum or limit has no room for an ask beside what is kept for others, or nothing."""
        for bound in self.bounds(ask):
            claims = [each for each in self.others(ask) if bound.counts(each.ask) and not each.is_unclear]
            held = [self.needed(claim, lambda run: bound.counts(run.ask)) for claim in claims]  # noqa: B023
            used = total([self.allocated(bound), *held, ask.size])
            for name in sorted(positive(ask.size)):
                if name in bound.most and used[name] > bound.most[name]:
                    return f"{bound.text}, {name} {bound.most[name]}"
        return ""

    def end(self, key: str, now_ns: int) -> RecordedAllocation | None:
        """Take out what has ended."""
        run = self.running.pop(key, None)
        self.swaps.discard(key)
        for claim in self.claims:
            claim.ending.discard(key)
            if not claim.ending and claim.ended_ns is None:
                claim.ended_ns = now_ns
        return run

    def withdraw(self, key: str) -> None:
        """Take out an ask, and its claim: for a gang that of all members."""
        ask = self.asks.pop(key, None)
        self.claims = [claim for claim in self.claims if key not in claim.keys]
        groups = {self.running[each].ask.task_group for each in self.swaps}
        if ask is not None and ask.task_group in groups:
            self.withdrawn[key] = ask

    def remove_application(self, name: str, now_ns: int) -> set[str]:
        """Take out an application with all it has; return the keys of what ran."""
        for key in [key for key, ask in self.asks.items() if ask.application.name == name]:
            self.withdraw(key)
        keys = {key for key, run in self.running.items() if run.ask.application.name == name}
        for key in keys:
            self.end(key, now_ns)
        return keys


def less(size: Size, other: Size) -> Size:
    """Return a size without another one, also below zero."""
    return {name: size.get(name, 0) - other.get(name, 0) for name in {*size, *other}}


def _counts(level: RecordedQueue, kind: str = "", holder: str = "") -> Callable[[RecordedAsk], bool]:
    """Return what counts in a queue, of all or of a user or a group."""

    def counts(ask: RecordedAsk) -> bool:
        return level in ask.path and (not kind or getattr(ask.application, kind) == holder)

    return counts

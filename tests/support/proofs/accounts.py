"""Who uses what, and what a preemption may take, from the requests and the answers alone.

These are the definitions of `docs/preemption.md` ("For a guarantee") once more, as plain sums over all
allocations. Nothing of the scheduler's own arithmetic is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from support.proofs.configured import LEAST_DEMANDED
from support.proofs.rules import Rules
from support.proofs.worlds import LimitIn, QueueIn, Size, World, have_room, path_of


@dataclass
class Ran:
    """An allocation."""

    key: str
    leaf: str
    node: int
    size: Size
    needs_node: bool = False
    ending: bool = False
    priority: int = 0
    objection: int = 0
    user: str = "ann"
    since: float = 0.0
    """When it was bound to its node, in seconds."""


@dataclass(frozen=True)
class Asked:
    """An ask that waits, or all members of a gang as one ask for their sum."""

    key: str
    leaf: str
    size: Size
    node: int = -1
    priority: int = 0
    may_preempt: bool = True
    user: str = "ann"
    gang: int = 0
    members: tuple[Asked, ...] = ()
    """Those of a gang; none for a single ask."""

    @property
    def asks(self) -> tuple[Asked, ...]:
        """The members, or the ask itself."""
        return self.members or (self,)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of these."""
        return tuple(each.key for each in self.asks)


@dataclass
class Claim:
    """What an ask has preempted for: its nodes, and the victims that have not ended."""

    ask: Asked
    nodes: tuple[int, ...]
    """One, or each of those of a gang."""
    ending: set[str]
    is_over: bool = False
    """Its node was used by an ask that needs it or is gone, or it was not placed in time."""
    is_excused: bool = False
    """The configuration was loaded anew since: it may take the room away."""


@dataclass
class Accounts:
    """All of them at one moment."""

    world: World
    running: dict[str, Ran] = field(default_factory=dict)
    asks: dict[str, Asked] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    maximum: dict[str, int] = field(default_factory=dict)
    """Of the first type, of queues."""
    now: float = 0.0
    """The time, in seconds."""
    lost: set[int] = field(default_factory=set)
    """The nodes that are gone."""

    def __post_init__(self) -> None:
        self.rules = Rules(self.world.queues)
        self.load(self.world.queues)
        self.types = range(len(self.world.nodes[0]))

    def load(self, queues: Sequence[QueueIn]) -> None:
        """Take guarantees and maxima as a configuration gives them."""
        self.guaranteed = {each.path: each.guaranteed for each in queues}
        self.maximum = {each.path: each.maximum for each in queues if each.maximum is not None}

    # ---------------------------------------------------------------------------------------- asks

    def waiting(self) -> list[Asked]:
        """Return what waits: single asks, and gangs of which all members wait."""
        waiting = [self.whole(ask) for ask in self.asks.values()]
        return list({ask.key: ask for ask in waiting if len(ask.members) == ask.gang}.values())

    def whole(self, ask: Asked) -> Asked:
        """Return all members of the gang of an ask that wait as one ask, or the ask if it has none."""
        if not ask.gang:
            return ask
        members = tuple(each for each in self.asks.values() if each.gang)
        size = tuple(map(sum, zip(*(each.size for each in members), strict=True)))
        return replace(members[0], size=size, members=members)

    def end_claim(self, key: str) -> None:
        """End the claim of an ask, that of a gang with the first of its members."""
        for claim in [each for each in self.claims.values() if key in each.ask.keys]:
            del self.claims[claim.ask.key]

    # ---------------------------------------------------------------------------------------- sums

    def used(self, queue: str, index: int) -> int:
        """Return what a queue uses of a type, without what is being preempted."""
        return sum(
            ran.size[index] for ran in self.running.values() if not ran.ending and queue in path_of(ran.leaf)
        )

    def claimed(self, queue: str, index: int, but_for: str) -> int:
        """Return what asks below a queue are to use that have preempted, without one of them."""
        open_claims = (
            claim for claim in self.claims.values() if not claim.is_over and claim.ask.key != but_for
        )
        return sum(claim.ask.size[index] for claim in open_claims if queue in path_of(claim.ask.leaf))

    def most(self, queue: str, index: int, but_for: str) -> int:
        """Return what a queue uses now, or will use once all victims have ended, if that is more."""
        now = sum(ran.size[index] for ran in self.running.values() if queue in path_of(ran.leaf))
        return max(now, self.used(queue, index) + self.claimed(queue, index, but_for))

    def free(self, node: int, index: int) -> int:
        """Return what a node has left."""
        if node in self.lost:
            return 0
        return self.world.nodes[node][index] - sum(
            ran.size[index] for ran in self.running.values() if ran.node == node
        )

    def unclaimed(self) -> list[Ran]:
        """Return what ends for no ask."""
        claimed = {key for claim in self.claims.values() if not claim.is_over for key in claim.ending}
        return [ran for ran in self.running.values() if ran.ending and ran.key not in claimed]

    # --------------------------------------------------------------------------------- definitions

    def guarantee(self, queue: str, index: int) -> int:
        """Return what is guaranteed to a queue; nothing if its guarantee does not name the type."""
        return self.guaranteed[queue][index] if queue in self.guaranteed else 0

    def serving(self, leaf: str, index: int) -> str | None:
        """Return the nearest queue from a leaf up whose guarantee names a type."""
        return next((queue for queue in path_of(leaf) if self.guarantee(queue, index)), None)

    def served(self, ask: Asked) -> list[int]:
        """Return the types asked for that a guarantee on the path names."""
        return [index for index in self.types if ask.size[index] and self.serving(ask.leaf, index)]

    def is_entitled(self, ask: Asked, victims: Sequence[Ran] = ()) -> bool:
        """Return whether the ask is within the guarantees that serve it once the victims have ended."""
        served = self.served(ask)
        for index in served:
            queue = self.serving(ask.leaf, index)
            assert queue is not None
            used = self.used(queue, index) + self.claimed(queue, index, ask.key)
            gone = sum(victim.size[index] for victim in victims if queue in path_of(victim.leaf))
            if used - gone + ask.size[index] > self.guarantee(queue, index):
                return False
        return bool(served)

    def _owes(self, ask: Asked, victims: Sequence[Ran]) -> bool:
        """Return whether no more ends of a type that is served than is owed before.

        What ends below the serving queue gives it nothing, but it must not be above its guarantee.
        """
        for index in self.served(ask):
            queue = self.serving(ask.leaf, index)
            assert queue is not None
            used = self.used(queue, index) + self.claimed(queue, index, ask.key)
            gone = sum(victim.size[index] for victim in victims if queue not in path_of(victim.leaf))
            if any(victim.size[index] for victim in victims) and used + gone > self.guarantee(queue, index):
                return False
        return True

    def _protectors(self, ask: Asked, leaf: str) -> list[str]:
        return [queue for queue in path_of(leaf) if queue not in path_of(ask.leaf)]

    def gives(self, ask: Asked, victim: Ran, index: int) -> bool:
        """Return whether the queues of a victim are above their guarantees in a type that serves the ask."""
        protectors = self._protectors(ask, victim.leaf)
        if victim.leaf == ask.leaf or index not in self.served(ask) or not victim.size[index]:
            return False
        if not any(self.guarantee(queue, index) for queue in protectors):
            return self.serving(ask.leaf, index) not in path_of(victim.leaf)
        return all(self.used(queue, index) > self.guarantee(queue, index) for queue in protectors)

    def _above(self, ask: Asked, queue: str, index: int) -> int | None:
        """Return what a queue above an ask uses more than it may; `None` if it has room for the ask."""
        if queue != "root" and (queue not in self.maximum or index):
            return None
        total = sum(size[index] for node, size in enumerate(self.world.nodes) if node not in self.lost)
        above = self.most(queue, index, ask.key) - (total if queue == "root" else self.maximum[queue])
        return above if ask.size[index] and above + ask.size[index] > 0 else None

    def taken_over(self, ask: Asked, nodes: Sequence[int]) -> set[str]:
        """Return what ends for no ask until now on the nodes of an ask, or in its full queues."""
        full = {
            queue
            for queue in path_of(ask.leaf)
            for index in self.types
            if self._above(ask, queue, index) is not None
        }
        return {
            ran.key for ran in self.unclaimed() if ran.node in nodes or full.intersection(path_of(ran.leaf))
        }

    def _lack_of_queue(self, ask: Asked, queue: str, index: int) -> int:
        """Return what a queue above an ask must get back of a type, more than ends there for no ask."""
        above = self._above(ask, queue, index)
        if above is None:
            return 0
        coming = sum(ran.size[index] for ran in self.unclaimed() if queue in path_of(ran.leaf))
        # What a queue without room has left is not held for the ask; what the root has left is on a node.
        return ask.size[index] + (above if queue == "root" else max(0, above)) - coming

    def nodes_fit(
        self, ask: Asked, nodes: Iterable[int], ending: Iterable[Ran], types: Sequence[int] | None = None
    ) -> bool:
        """Return whether nodes have room for an ask, or all of a gang, once some allocations have ended."""
        rooms = {node: [self.free(node, index) for index in self.types] for node in nodes}
        for ran in ending:
            if ran.node in rooms and ran.node not in self.lost:
                rooms[ran.node] = [left + one for left, one in zip(rooms[ran.node], ran.size, strict=True)]
        asked = [index for index in self.types if ask.size[index]] if types is None else types
        return have_room([each.size for each in ask.asks], rooms, asked)

    def _has_room(self, ask: Asked, nodes: Sequence[int], victims: Sequence[Ran]) -> bool:
        """Return whether the nodes and all queues have room for the ask once victims have ended."""
        if not self.nodes_fit(ask, nodes, (*victims, *self.unclaimed())):
            return False
        for index in self.types:
            if not ask.size[index]:
                continue
            for queue in path_of(ask.leaf):
                given = sum(victim.size[index] for victim in victims if queue in path_of(victim.leaf))
                if given < self._lack_of_queue(ask, queue, index):
                    return False
        return True

    def _is_short(self, ask: Asked, nodes: Sequence[int], index: int) -> bool:
        """Return whether the nodes or a queue lack a type without victims."""
        lacks = any(self._lack_of_queue(ask, queue, index) > 0 for queue in path_of(ask.leaf))
        return lacks or not self.nodes_fit(ask, nodes, self.unclaimed(), (index,))

    # ------------------------------------------------------------------------------------ judgement

    def faults_for_guarantee(self, ask: Asked, nodes: Sequence[int], victims: Sequence[Ran]) -> list[str]:
        """Return the promises that a preemption for a guarantee would break."""
        faults = []
        if not self.is_entitled(ask, victims):
            faults.append(f"P-entitled: {ask.key} is above its guarantee")
        if not self._owes(ask, victims):
            faults.append(f"P-entitled: more ends than is owed to {ask.key}")
        for victim in victims:
            gives = [index for index in self.types if ask.size[index] and self.gives(ask, victim, index)]
            if not any(self._is_short(ask, nodes, index) for index in gives):
                faults.append(f"P-gives: {victim.key} gives nothing that {ask.key} lacks")
            if victim.needs_node:
                faults.append(f"P-gives: {victim.key} needs its node")
            forbidden = self.rules.forbidden(ask.leaf, ask.priority, victim)
            if forbidden:
                faults.append(forbidden)
        faults += self._refused(ask, nodes, victims)
        faults += self._protected(ask.leaf, victims, for_guarantee=True)
        faults += self.rules.over_budget((victim.leaf for victim in victims), self.now)
        if any(self.lacks_of_limit(ask, limit) > 0 for limit in self.world.limits):
            faults.append(f"P-limit: {ask.key} is at the limit of {ask.user}")
        return [*faults, *self._guarantees_ended(ask, victims), *self._needless(ask, nodes, victims)]

    def _guarantees_ended(self, ask: Asked, victims: Sequence[Ran]) -> Iterable[str]:
        queues = {queue for victim in victims for queue in self._protectors(ask, victim.leaf)}
        for queue in sorted(queues):
            for index in self.types:
                promised, before = self.guarantee(queue, index), self.used(queue, index)
                lost = sum(victim.size[index] for victim in victims if queue in path_of(victim.leaf))
                if not (ask.size[index] and promised and lost) or before - lost >= promised:
                    continue
                if before > promised or index not in self.served(ask):
                    yield f"P-guarantee: {queue} falls from {before} to {before - lost} of {promised}"

    def _needless(self, ask: Asked, nodes: Sequence[int], victims: Sequence[Ran]) -> Iterable[str]:
        if not self._has_room(ask, nodes, victims):
            yield f"P-needed: {ask.key} has no room on node {_text(nodes)} all the same"
        for victim in victims:
            if self._is_demanded(victim, nodes, victims):
                continue
            if self._has_room(ask, nodes, [other for other in victims if other is not victim]):
                yield f"P-needed: {victim.key} could be spared"

    def _is_demanded(self, victim: Ran, nodes: Sequence[int], victims: Sequence[Ran]) -> bool:
        there = sum(other.node == victim.node for other in victims)
        return self.world.demands and victim.node in nodes and there <= LEAST_DEMANDED

    def _refused(self, ask: Asked, nodes: Sequence[int], victims: Sequence[Ran]) -> Iterable[str]:
        for node in nodes:
            there = sum(victim.node == node for victim in victims)
            if node in self.world.refused or (self.world.demands and 0 < there < LEAST_DEMANDED):
                yield f"P-refused: {ask.key} may not run on node {node}"

    def _protected(self, outside: str, victims: Sequence[Ran], *, for_guarantee: bool) -> Iterable[str]:
        for victim in victims:
            reason = self.rules.protected(outside, victim, self.now, for_guarantee=for_guarantee)
            if reason:
                yield reason

    def lacks_of_limit(self, ask: Asked, limit: LimitIn, coming: Sequence[Ran] = ()) -> int:
        """Return what a limit lacks for an ask beside what is used and claimed; positive without room."""
        if limit.user != ask.user or limit.queue not in path_of(ask.leaf):
            return 0

        def counts(each: Ran | Asked) -> bool:
            return each.user == limit.user and limit.queue in path_of(each.leaf)

        now = sum(ran.size[0] for ran in self.running.values() if counts(ran))
        later = sum(ran.size[0] for ran in self.running.values() if counts(ran) and not ran.ending)
        later += sum(
            claim.ask.size[0]
            for claim in self.claims.values()
            if counts(claim.ask) and claim.ask.key != ask.key and not claim.is_over
        )
        gone = sum(victim.size[0] for victim in coming if counts(victim))
        return max(now, later) - gone + ask.size[0] - limit.amount

    def faults_inside(self, ask: Asked, nodes: Sequence[int], victims: Sequence[Ran]) -> list[str]:
        """Return the promises that a preemption inside of a queue would break."""
        faults = [
            f"P-priority: {victim.key} is no lower work of {ask.leaf}"
            for victim in victims
            if victim.leaf != ask.leaf or victim.priority >= ask.priority or victim.needs_node
        ]
        if self.rules.value(ask.leaf, "preemption.within") != "lower-priority":
            faults.append(f"P-priority: nothing ends inside of {ask.leaf}")
        faults += self._refused(ask, nodes, victims)
        faults += self._protected(ask.leaf, victims, for_guarantee=True)
        faults += self.rules.over_budget((victim.leaf for victim in victims), self.now)
        limits = [limit for limit in self.world.limits if self.lacks_of_limit(ask, limit) > 0]
        faults += [
            f"P-limit: {victim.key} is of {victim.user}"
            for victim in victims
            for limit in limits
            if victim.user != limit.user or limit.queue not in path_of(victim.leaf)
        ]

        def is_enough(some: Sequence[Ran]) -> bool:
            given = sum(victim.size[0] for victim in some)
            # As in a queue, what is left below a limit without room does not count.
            lacks = (max(ask.size[0], self.lacks_of_limit(ask, limit)) for limit in limits)
            return self._has_room(ask, nodes, some) and all(given >= lack for lack in lacks)

        if not is_enough(victims):
            faults.append(f"P-needed: {ask.key} has no room on node {_text(nodes)} all the same")
        for victim in victims:
            if not self._is_demanded(victim, nodes, victims) and is_enough(
                [other for other in victims if other is not victim]
            ):
                faults.append(f"P-needed: {victim.key} could be spared")
        return faults

    def faults_for_node(self, ask: Asked, victims: Sequence[Ran]) -> list[str]:
        """Return the promises that a preemption for an ask that needs its node would break."""
        faults = [
            f"P-node: {victim.key} is elsewhere, or needs its node"
            for victim in victims
            if victim.node != ask.node or victim.needs_node
        ]
        faults += [
            f"P-priority: {victim.key} is of a higher priority than {ask.key}"
            for victim in victims
            if victim.priority > ask.priority
        ]
        faults += self._protected(ask.leaf, victims, for_guarantee=False)
        coming = sum(ran.size[0] for ran in self.unclaimed() if ran.node == ask.node)
        room = self.free(ask.node, 0) + coming - self._held_on(ask)
        gone = sum(victim.size[0] for victim in victims)
        if room + gone < ask.size[0]:
            faults.append(f"P-needed: {ask.key} has no room on node {ask.node} all the same")
        for victim in victims:
            if room + gone - victim.size[0] >= ask.size[0]:
                faults.append(f"P-needed: {victim.key} could be spared")
        return faults

    def _held_on(self, ask: Asked) -> int:
        """Return what is kept on the node of an ask that needs it for others that need it."""
        held = 0
        for claim in self.claims.values():
            if claim.ask.node == ask.node and claim.ask.key != ask.key and not claim.is_over:
                ends = (self.running[key] for key in claim.ending)
                coming = sum(ran.size[0] for ran in ends if ran.node == ask.node)
                held += max(0, claim.ask.size[0] - coming)
        return held

    def faults_for_maximum(self, queue: str, victims: Sequence[Ran]) -> list[str]:
        """Return the promises that enforcing a maximum would break."""
        gone = sum(victim.size[0] for victim in victims)
        faults = list(self._protected(queue, victims, for_guarantee=False))
        if self.used(queue, 0) - gone < self.maximum[queue]:
            faults.append(f"P-maximum: {queue} falls below its maximum")
        for level in {level for victim in victims for level in path_of(victim.leaf)}:
            lost = sum(victim.size[0] for victim in victims if level in path_of(victim.leaf))
            if self.used(level, 0) - lost < self.guarantee(level, 0):
                faults.append(f"P-guarantee: {level} falls below its guarantee")
        return faults

    def could_end_for_maximum(self, queue: str) -> list[str]:
        """Return what may end still by itself for a queue above its maximum."""
        return [
            ran.key
            for ran in self.running.values()
            if queue in path_of(ran.leaf)
            and not (ran.ending or ran.needs_node)
            and self.used(queue, 0) > self.maximum[queue]
            and not self.faults_for_maximum(queue, [ran])
        ]

    def can_be_served(self, ask: Asked) -> bool:
        """Return whether an ask has room on the node that it needs once all has ended that may end for it."""
        may_end = [
            ran for ran in self.running.values() if not ran.needs_node and ran.priority <= ask.priority
        ]
        return all(
            self.free(ask.node, index) + sum(ran.size[index] for ran in may_end if ran.node == ask.node)
            >= one
            for index, one in enumerate(ask.size)
        )

    def is_stopped(self, ask: Asked) -> bool:
        """Return whether a maximum or a limit has no room for an ask."""
        return any(
            self.most(queue, 0, ask.key) + ask.size[0] > self.maximum[queue]
            for queue in path_of(ask.leaf)
            if queue in self.maximum
        ) or any(self.lacks_of_limit(ask, limit) > 0 for limit in self.world.limits)


def _text(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes))

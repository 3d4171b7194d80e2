"""Who uses what, and what a preemption may take, from the requests and the answers alone.

These are the definitions of `docs/preemption.md` ("For a guarantee") once more, as plain sums over all
allocations. Nothing of the scheduler's own arithmetic is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from support.proofs.worlds import Size, World, path_of

__all__ = ["Accounts", "Asked", "Claim", "Ran"]


@dataclass
class Ran:
    """An allocation."""

    key: str
    leaf: str
    node: int
    size: Size
    needs_node: bool = False
    ending: bool = False


@dataclass(frozen=True)
class Asked:
    """An ask that waits."""

    key: str
    leaf: str
    size: Size
    node: int = -1


@dataclass
class Claim:
    """What an ask has preempted for: a node, and the victims that have not ended."""

    ask: Asked
    node: int
    ending: set[str]
    is_over: bool = False
    """Its node was used by an ask that needs it, or it was not placed in time."""


@dataclass
class Accounts:
    """All of them at one moment."""

    world: World
    running: dict[str, Ran] = field(default_factory=dict)
    asks: dict[str, Asked] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    maximum: dict[str, int] = field(default_factory=dict)
    """Of the first type, of queues."""

    def __post_init__(self) -> None:
        self.guaranteed = dict(self.world.queues)
        self.types = range(len(self.world.nodes[0]))

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

    def _lack_of_queue(self, ask: Asked, queue: str, index: int) -> int:
        """Return what a queue above an ask must get back of a type, more than ends there for no ask."""
        if queue != "root" and (queue not in self.maximum or index):
            return 0
        total = sum(node[index] for node in self.world.nodes)
        above = self.most(queue, index, ask.key) - (total if queue == "root" else self.maximum[queue])
        if above + ask.size[index] <= 0 or not ask.size[index]:
            return 0
        coming = sum(ran.size[index] for ran in self.unclaimed() if queue in path_of(ran.leaf))
        # What a queue without room has left is not held for the ask; what the root has left is on a node.
        return ask.size[index] + (above if queue == "root" else max(0, above)) - coming

    def _has_room(self, ask: Asked, node: int, victims: Sequence[Ran]) -> bool:
        """Return whether the node and all queues have room for the ask once victims have ended."""
        for index in self.types:
            if not ask.size[index]:
                continue
            coming = [ran for ran in (*victims, *self.unclaimed()) if ran.node == node]
            if self.free(node, index) + sum(ran.size[index] for ran in coming) < ask.size[index]:
                return False
            given = sum(victim.size[index] for victim in victims)
            if any(given < self._lack_of_queue(ask, queue, index) for queue in path_of(ask.leaf)):
                return False
        return True

    def _is_short(self, ask: Asked, node: int, index: int) -> bool:
        """Return whether the node or a queue lacks a type without victims."""
        free = self.free(node, index) + sum(ran.size[index] for ran in self.unclaimed() if ran.node == node)
        lacks = any(self._lack_of_queue(ask, queue, index) > 0 for queue in path_of(ask.leaf))
        return free < ask.size[index] or lacks

    # ------------------------------------------------------------------------------------ judgement

    def faults_for_guarantee(self, ask: Asked, node: int, victims: Sequence[Ran]) -> list[str]:
        """Return the promises that a preemption for a guarantee would break."""
        faults = []
        if not self.is_entitled(ask, victims):
            faults.append(f"P-entitled: {ask.key} is above its guarantee")
        if not self._owes(ask, victims):
            faults.append(f"P-entitled: more ends than is owed to {ask.key}")
        for victim in victims:
            gives = [index for index in self.types if ask.size[index] and self.gives(ask, victim, index)]
            if not any(self._is_short(ask, node, index) for index in gives):
                faults.append(f"P-gives: {victim.key} gives nothing that {ask.key} lacks")
            if victim.needs_node:
                faults.append(f"P-gives: {victim.key} needs its node")
        return [*faults, *self._guarantees_ended(ask, victims), *self._needless(ask, node, victims)]

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

    def _needless(self, ask: Asked, node: int, victims: Sequence[Ran]) -> Iterable[str]:
        if not self._has_room(ask, node, victims):
            yield f"P-needed: {ask.key} has no room on node {node} all the same"
        for victim in victims:
            if self._has_room(ask, node, [other for other in victims if other is not victim]):
                yield f"P-needed: {victim.key} could be spared"

    def faults_for_node(self, ask: Asked, victims: Sequence[Ran]) -> list[str]:
        """Return the promises that a preemption for an ask that needs its node would break."""
        faults = [
            f"P-node: {victim.key} is elsewhere, or needs its node"
            for victim in victims
            if victim.node != ask.node or victim.needs_node
        ]
        for victim in victims:
            rest = sum(other.size[0] for other in victims if other is not victim)
            coming = sum(ran.size[0] for ran in self.unclaimed() if ran.node == ask.node)
            if self.free(ask.node, 0) + rest + coming >= ask.size[0]:
                faults.append(f"P-needed: {victim.key} could be spared")
        return faults

    def faults_for_maximum(self, queue: str, victims: Sequence[Ran]) -> list[str]:
        """Return the promises that enforcing a maximum would break."""
        gone = sum(victim.size[0] for victim in victims)
        faults = []
        if self.used(queue, 0) - gone < self.maximum[queue]:
            faults.append(f"P-maximum: {queue} falls below its maximum")
        for level in {level for victim in victims for level in path_of(victim.leaf)}:
            lost = sum(victim.size[0] for victim in victims if level in path_of(victim.leaf))
            if self.used(level, 0) - lost < self.guarantee(level, 0):
                faults.append(f"P-guarantee: {level} falls below its guarantee")
        return faults

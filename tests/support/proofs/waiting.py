"""Who waits although there is room, or something may end: what no fair final state has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from support.proofs.accounts import Accounts, Asked, Ran

from licorne.model.state.partition_state import PartitionState
from licorne.model.state.preemption_log import PreemptionCause

OPTED_OUT: Final = 1
ORIGINATOR: Final = 2
_OBJECTIONS: Final = (0, OPTED_OUT, ORIGINATOR)
"""For a node, the mildest first."""
_OBJECTIONS_FOR_QUEUES: Final = (0, ORIGINATOR, OPTED_OUT)
"""For a guarantee and inside a queue."""


@dataclass(frozen=True)
class Waiting:
    """Those that wait in a partition."""

    accounts: Accounts
    state: PartitionState
    """Which nodes are reserved, and what queues hold, is looked up here; nothing else."""
    asked: Mapping[str, Asked]
    """Every ask that there was, by its key."""

    def faults(self) -> Iterator[str]:
        """Yield who waits although something may end on one node, or has room."""
        accounts = self.accounts
        if not accounts.claims and not self.state.claims.by_key:
            for queue in self.state.tree:
                if any(queue.held.values()):
                    yield f"P-room: {queue.path} holds room for nobody"
        for ask in accounts.waiting():
            if ask.node >= 0:
                if accounts.can_be_served(ask) and not accounts.is_stopped(ask):
                    yield f"P-node: {ask.key} waits although enough may end on its node"
                continue
            for nodes in self._choices(ask):
                yield from self._faults_on(ask, nodes)

    def _choices(self, ask: Asked) -> Iterator[tuple[int, ...]]:
        """Yield the nodes that an ask may have: one by one, for a gang all of them together."""
        accounts = self.accounts
        nodes = tuple(
            node
            for node in range(len(accounts.world.nodes))
            if node not in accounts.lost and not self._is_kept_for_others(ask, node)
        )
        yield from (nodes,) if ask.members else ((node,) for node in nodes)

    def _faults_on(self, ask: Asked, nodes: tuple[int, ...]) -> Iterator[str]:
        if self._has_room(ask, nodes):
            yield f"P-stuck: {ask.key} waits although node {', '.join(map(str, nodes))} has room"
        for cause in (PreemptionCause.GUARANTEE, PreemptionCause.PRIORITY):
            victims = self._enough(ask, nodes, cause) if ask.may_preempt else ()
            if victims:
                names = ", ".join(victim.key for victim in victims)
                yield f"P1: {ask.key} waits although {names} may end for it"

    def unwilling(self, ask: Asked, cause: PreemptionCause, victims: Sequence[Ran]) -> Iterator[str]:
        """Yield that something ends which opted out, or is an originator, where milder victims are enough."""
        order = _OBJECTIONS if ask.node >= 0 else _OBJECTIONS_FOR_QUEUES
        worst = max((order.index(victim.objection) for victim in victims), default=0)
        if not worst:
            return
        for nodes in ((ask.node,),) if ask.node >= 0 else self._choices(ask):
            others = self._enough(ask, nodes, cause, order[:worst])
            if others:
                keys = ", ".join(other.key for other in others)
                yield f"P-willing: {keys} would be enough for {ask.key}"

    def too_many(self, ask: Asked, victims: Sequence[Ran]) -> Iterator[str]:
        """Yield that fewer victims would do for a gang, on any of the nodes that it may have."""
        for nodes in self._choices(ask) if ask.members else ():
            others = self._enough(ask, nodes, PreemptionCause.GUARANTEE)
            if 0 < len(others) < len(victims):
                keys = ", ".join(other.key for other in others)
                yield f"P-needed: {keys} would be enough for {ask.key}"

    def _has_room(self, ask: Asked, nodes: Sequence[int]) -> bool:
        accounts = self.accounts
        left = [
            node
            for node in nodes
            if node not in accounts.world.refused and not self.state.reserved.on_node(f"n{node}")
        ]
        return not accounts.is_stopped(ask) and accounts.nodes_fit(ask, left, ())

    def _is_kept_for_others(self, ask: Asked, node: int) -> bool:
        """Return whether a node is reserved for another ask, and that does not yield to this one."""
        for reserved in self.state.reserved.on_node(f"n{node}"):
            other = self.asked[reserved.ask.allocation_key]
            if other.key in ask.keys:
                continue
            is_kept = (
                self.accounts.can_be_served(other)
                if other.node >= 0
                else any(other.key in claim.ask.keys for claim in self.accounts.claims.values())
                or other.priority > ask.priority
                or (other.may_preempt and self.accounts.is_entitled(other))
            )
            if is_kept:
                return True
        return False

    def _enough(
        self,
        ask: Asked,
        nodes: Sequence[int],
        cause: PreemptionCause,
        objections: Sequence[int] = _OBJECTIONS,
    ) -> Sequence[Ran]:
        """Return the fewest victims on nodes that may end for an ask, with no other objections than these."""
        accounts = self.accounts
        possible = [
            ran
            for ran in accounts.running.values()
            if not ran.ending and ran.node in nodes and ran.objection in objections
        ]
        for count in range(1, len(possible) + 1):
            for victims in combinations(possible, count):
                if cause is PreemptionCause.GUARANTEE:
                    faults = accounts.faults_for_guarantee(ask, nodes, victims)
                elif cause is PreemptionCause.PRIORITY:
                    faults = accounts.faults_inside(ask, nodes, victims)
                else:
                    faults = accounts.faults_for_node(ask, victims)
                if not faults:
                    return victims
        return ()

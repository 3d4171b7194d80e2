"""Work that has been preempted, and the asks that it ends for, in plans.

* Work that has been preempted is expected to end as if it had reached its walltime at that moment: a minute
  later, then five, and so on.
* An ask that has preempted runs from that moment on, in a plan, on the node that is reserved for it. What its
  victims give back is its own; what they give back beyond that is there when they are expected to have
  ended. So is the rest of its node: till then the reservation keeps it from all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import final

from ..resources.resource import EMPTY, Resource, add, subtract_eliminating_negative, total_of
from ..state.claims import PreemptionClaim
from ..state.expected_ends import RunningWork, assumed_walltime_ns, corrected_end_ns
from ..state.partition_state import PartitionState
from .plan import JobInPlan, NoPlan, Promise, StartPlan


def plan_nodes(state: PartitionState) -> dict[str, Resource]:
    """Return what the nodes of a plan have now: those without a reservation, or with that of a claim."""
    claimed = {node_id for claim in state.claims for node_id in _reserved(state, claim)}
    return {
        node.node_id: EMPTY if node.node_id in claimed else node.available
        for node in state.nodes
        if node.usable or (node.schedulable and node.node_id in claimed)
    }


def _reserved(state: PartitionState, claim: PreemptionClaim) -> Iterator[str]:
    """Walk the nodes that are reserved for a claim, without those that its ask needs."""
    for key, node_id in claim.reserving.items():
        reserved = state.reserved.get(key)
        if reserved is not None and reserved.node_id == node_id:
            yield node_id


def preempted_work(state: PartitionState, works: Sequence[RunningWork]) -> list[RunningWork]:
    """Return what runs with what has been preempted, and with the asks that have preempted."""
    claims = state.claims
    claim_of = {key: claim for claim in claims for key in claim.ending}
    found = []
    for work in works:
        since_ns = claims.preempted_ns.get(work.allocation_key)
        if since_ns is None:
            found.append(work)
            continue
        ended = work._replace(walltime_ns=since_ns - work.begun_ns)
        claim = claim_of.get(work.allocation_key)
        if claim is None:
            found.append(ended)
            continue
        own = {level.path for level in claim.entry.queue.above}
        others = tuple(path for path in work.levels if path not in own)
        found.append(ended._replace(node_id="", levels=others))
    for claim in claims:
        found += _claimed(state, claim)
    return found


def _claimed(state: PartitionState, claim: PreemptionClaim) -> Iterator[RunningWork]:
    """Walk the asks of a claim as work that runs, and what is left beside them later."""
    entry, begun_ns = claim.entry, claim.begun_ns
    levels = tuple(level.path for level in entry.queue.above)
    group = state.limits.group_of(entry.queue.path, entry.application_id, entry.user)
    for key, ask in claim.asks.items():
        walltime_ns = assumed_walltime_ns(ask, entry.tags, entry.queue)
        node_id = claim.node_of.get(key, "")
        yield RunningWork(key, ask.resource, node_id, levels, entry.user.name, group, begun_ns, walltime_ns)
    for level in entry.queue.above:
        below = total_of(each.resource for each in claim.ending.values() if level in each.queue.above)
        yield _room(subtract_eliminating_negative(below, claim.size), "", (level.path,), begun_ns)
    for node_id in _reserved(state, claim):
        node = state.nodes.get(node_id)
        assert node is not None, f"{node_id} is reserved and not known: please report"
        back = total_of(each.resource for each in claim.ending.values() if each.node_id == node_id)
        taken = total_of(ask.resource for key, ask in claim.asks.items() if claim.node_of.get(key) == node_id)
        left = subtract_eliminating_negative(add(node.available, back), taken)
        yield _room(left, node_id, (), begun_ns)


def _room(resource: Resource, node_id: str, levels: tuple[str, ...], begun_ns: int) -> RunningWork:
    """Return room that is there when what was preempted at a moment is expected to have ended."""
    return RunningWork("", resource, node_id, levels, "", None, begun_ns, 0)


@final
class JobBesidePromises:
    """A job that may preempt, and the promises that it may not delay.

    Args:
        state: The partition.
        job: Returns the job.
        promises: The promises to others, in order.
        running: Returns all that runs, see `preempted_work`.
    """

    def __init__(
        self,
        state: PartitionState,
        job: Callable[[], JobInPlan],
        promises: Sequence[Promise],
        running: Callable[[], Sequence[RunningWork]],
    ) -> None:
        self._state = state
        self._job = job
        self._promises = promises
        self._running = running
        self._is_any_delayed = False

    def awaited(self) -> Collection[str]:
        """Return the keys of work that is expected to end by the time of the last promise."""
        now_ns = self._state.now_ns()
        last_ns = max((promise.start_ns for promise in self._promises), default=now_ns)
        ends = {
            work.allocation_key: corrected_end_ns(work.begun_ns, work.walltime_ns, now_ns)
            for work in self._running()
        }
        return frozenset(key for key, end_ns in ends.items() if end_ns is not None and end_ns <= last_ns)

    def any_delayed(self) -> bool:
        """Return whether a promise would not have been kept, of what was asked so far."""
        return self._is_any_delayed

    def keeps(self, node_ids: Sequence[str], victims: Collection[str]) -> bool:
        """Return whether no promise is later if the job preempts, given by its nodes and victims' keys."""
        if not self._promises:
            return True
        trial = self._plan_with(self._job(), node_ids, victims)
        for promise in self._promises:
            found = trial.earliest(promise.job)
            if isinstance(found, NoPlan) or found.start_ns > promise.start_ns:
                self._is_any_delayed = True
                return False
            trial.take(found)
        return True

    def _plan_with(self, job: JobInPlan, node_ids: Sequence[str], victims: Collection[str]) -> StartPlan:
        """Return the plan of all that runs, once the job has preempted."""
        state = self._state
        now_ns = state.now_ns()
        taken = job.by_node(node_ids)
        nodes = {**plan_nodes(state), **taken}  # The job takes it at once: nothing is left now.
        works: list[RunningWork] = []
        back: dict[str, Resource] = {}
        for work in self._running():
            if work.allocation_key in victims:
                back[work.node_id] = add(back.get(work.node_id), work.resource)
                works.append(work._replace(node_id="", begun_ns=now_ns, walltime_ns=0))
            else:
                works.append(work)
        for node_id, size in taken.items():
            node = state.nodes.get(node_id)
            room = add(EMPTY if node is None else node.available, back.get(node_id))
            works.append(_room(subtract_eliminating_negative(room, size), node_id, (), now_ns))
        plan = StartPlan(now_ns, nodes, works)
        plan.take(Promise(job, now_ns, tuple(node_ids)))
        return plan

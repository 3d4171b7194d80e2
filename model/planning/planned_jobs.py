"""Jobs below a queue with backfilling: which may start now, and which are promised a start.

The order is strict: a job that is refused for room, or for a maximum that others fill, is promised the first
moment at which it fits, if fewer jobs than `backfill.reservations` have a promise. Any job behind it may
start only if each of these jobs can still start as early as it was promised. A job that only the work of its
own user holds back gets no promise, and nothing waits for it.

Nothing of this is kept: the promises are found anew each time. While work ends no later than expected they do
not move back.

* Work that has been preempted is expected to end as if it had reached its walltime at that moment: a minute
  later, then five, and so on.
* An ask that has preempted runs from that moment on, in a plan, on the node that is reserved for it.
  Resources that its victims give back are its own; any beyond that are there when they are expected to have
  ended. So is the rest of its node: till then the reservation keeps it from all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, Protocol, final

from ..applications.gang import whole_members
from ..configuration.queue_properties import BackfillSettings
from ..limits.user_limits import rooms_of_levels
from ..policies.interface import JobView
from ..policies.policies import PolicyKey
from ..queues.application_entry import ApplicationEntry
from ..queues.child_orders import view_of
from ..queues.queue import Queue
from ..queues.quota import kept_beside
from ..resources.resource import (
    EMPTY,
    Resource,
    add,
    fits_undefined_unlimited,
    is_any_positive,
    subtract_eliminating_negative,
    total_of,
)
from ..state.charges import held_of_holders
from ..state.claims import PreemptionClaim
from ..state.expected_ends import RunningWork, corrected_end_ns
from ..state.partition_state import PartitionState
from ..values.allocation import Allocation, Ask
from ..values.domains import DomainTerms
from ..values.messages import User
from .plan import JobInPlan, LimitKey, NoPlan, Promise, StartPlan, has_room_now, left_beside


class JobOwner(NamedTuple):
    """The application of a job: one that runs, or one that does not exist yet."""

    leaf: Queue
    application_id: str
    user: User
    tags: Mapping[str, str]
    domains: DomainTerms | None = None
    """Of a whole gang that waits and names domains."""

    @staticmethod
    def of(entry: ApplicationEntry) -> JobOwner:
        """Return the application of an entry."""
        domains = entry.application.gang_settings.domains if entry.facts.gang_waits else None
        return JobOwner(entry.queue, entry.application_id, entry.user, entry.tags, domains)


class Standing(NamedTuple):
    """The decision about a job now."""

    may_start: bool
    """It fits, and delays nothing on nodes but these:"""
    without: frozenset[str] = frozenset()
    delays: Promise | None = None
    """The promise that it would delay wherever it started."""
    limit: LimitKey | None = None
    """The limit under which both do not fit; `None`: the node of the promise."""


def backfilling_queue(leaf: Queue) -> Queue | None:
    """Return the nearest queue above a leaf that backfills, if any."""
    for level in leaf.above[1:]:
        if level.settings.backfill is not None:
            return level
    return None


def gang_members(entry: ApplicationEntry) -> tuple[Ask, ...]:
    """Return the asks of a gang that waits to be placed whole; none while some have not been asked for."""
    waiting = (record.ask for record in entry.application.asks.waiting())
    return whole_members(entry.application.gang_settings, waiting)


def job_of(state: PartitionState, owner: JobOwner, *asks: Ask) -> JobInPlan:
    """Return a single ask, or all members of a gang, as a job of a plan.

    A gang ends with its last member, and never if one has no walltime.
    """
    leaf, user = owner.leaf, owner.user
    limits = limits_of_queues(leaf)
    held = held_of_holders(state, leaf.path, owner.application_id, user, "") if state.claims.by_key else None
    for kind, holder, path, room in rooms_of_levels(state.limits, leaf.path, owner.application_id, user):
        taken = None if held is None else held[kind != "user"].get(path)
        limits[LimitKey(kind, holder, path)] = room if taken is None else _room_less(room, taken)
    sizes = tuple(ask.resource for ask in asks)
    first_of_tags = [next(alike) for _, alike in groupby(asks, key=attrgetter("tags"))]
    of_each = asks if leaf.settings.runtime.expected_word else first_of_tags
    walltimes = [state.ends.run_times.of(ask, owner.tags, leaf) for ask in of_each]
    levels = tuple(level.path for level in leaf.above)
    known = [walltime_ns for walltime_ns in walltimes if walltime_ns is not None]
    return JobInPlan(
        asks[0].allocation_key,
        owner.application_id,
        sizes,
        max(known) if len(known) == len(walltimes) else None,
        levels,
        user.name,
        state.limits.group_of(leaf.path, owner.application_id, user),
        limits,
        sizes[0] if len(sizes) == 1 else total_of(sizes),
        asks[0].priority,
        state.topology.domains(owner.domains),
        state.windows.binding(user, owner.application_id, levels) if state.windows.all else (),
    )


def limits_of_queues(leaf: Queue) -> dict[LimitKey, Resource]:
    """Return what the maxima of a leaf and the queues above leave; the root's is what the nodes have."""
    limits: dict[LimitKey, Resource] = {}
    beside = kept_beside(leaf)
    for level in leaf.above[:-1]:
        left = level.room(beside.get(level, EMPTY))
        if level.maximum is not None and left is not None:
            limited = {name: quantity for name, quantity in left.items() if level.maximum.has(name)}
            limits[LimitKey("queue", "", level.path)] = Resource(limited)
    return limits


def orders_by_key(settings: BackfillSettings) -> bool:
    """Return whether jobs behind those with promises are tried by keys instead of as they wait."""
    return bool(settings.order_word) or settings.order.is_shortest_first


def key_behind_promises(
    state: PartitionState, settings: BackfillSettings, entry: ApplicationEntry, job: JobInPlan
) -> float | PolicyKey:
    """Return the place of a job behind those with promises, the smallest first."""
    if settings.order_word:
        return state.host.policies.named(settings.order_word).backfill_key(_view_of_job(entry, job))
    return float("inf") if job.walltime_ns is None else job.walltime_ns


def may_be_promised(state: PartitionState, settings: BackfillSettings, job: JobInPlan) -> bool:
    """Return whether a policy lets a job be promised a start; one of an unknown application may be."""
    entry = state.entries.get(job.application_id) if settings.promises_word else None
    if entry is None:
        return True
    return state.host.policies.named(settings.promises_word).promises(_view_of_job(entry, job))


def _view_of_job(entry: ApplicationEntry, job: JobInPlan) -> JobView:
    return JobView(job.key, view_of(entry), job.sizes, job.walltime_ns, job.priority)


def running_work(state: PartitionState) -> Sequence[RunningWork]:
    """Return all that runs in a partition, with its walltimes; see `preempted_work` as well."""
    works = state.ends.running(lambda: _held(state))
    return preempted_work(state, works) if state.claims.preempted_ns or state.claims.by_key else works


def find_run_times(state: PartitionState) -> None:
    """Call policies about the run times of work where that is due, before a walk plans with them."""
    entries = state.entries.values()
    state.ends.find_run_times(
        lambda: _held(state), lambda: (entry for entry in entries if is_any_positive(entry.facts.pending))
    )


def bare_plan(state: PartitionState) -> StartPlan:
    """Return a plan of what runs in a partition, on the nodes that asks may be placed on."""
    return StartPlan(state.now_ns(), plan_nodes(state), running_work(state))


def next_correction_ns(state: PartitionState) -> int | None:
    """Return when the first work that has not ended by then is expected to end later."""
    now_ns = state.now_ns()
    ends = [corrected_end_ns(work.begun_ns, work.walltime_ns, now_ns) for work in running_work(state)]
    return min((end_ns for end_ns in ends if end_ns is not None), default=None)


def _held(state: PartitionState) -> Iterator[tuple[ApplicationEntry, Allocation, str | None]]:
    for entry in state.entries.values():
        group = state.limits.group_of(entry.queue.path, entry.application_id, entry.user)
        for held in entry.application.report().held:
            yield entry, held.allocation, group


def _room_less(room: Resource, taken: Resource) -> Resource:
    return Resource({name: left - taken.get(name) for name, left in room.items()})


@final
class PlannedJobs:
    """The jobs below one queue with backfilling, as one walk comes to them.

    Args:
        state: The partition; nothing of it is changed.
        settings: Those of the queue.
    """

    def __init__(self, state: PartitionState, settings: BackfillSettings) -> None:
        self._state = state
        self._settings = settings
        self._running = running_work(state)
        self._node_ids: Collection[str] = [node.node_id for node in state.nodes if node.usable]
        self._plan = bare_plan(state)
        """Running work and promises."""
        self._bare = self._plan.copy()
        """Running work."""
        self.promises: list[Promise] = []
        self._own: dict[LimitKey, bool] = {}

    @property
    def plan(self) -> StartPlan:
        """The expected ends of running and promised work."""
        return self._plan

    @property
    def is_full(self) -> bool:
        """Whether as many jobs have promises as are to have one."""
        return len(self.promises) >= self._settings.reservations

    def promise(self, job: JobInPlan) -> Promise | NoPlan | None:
        """Promise a refused job a start, if it may have a promise.

        Returns:
            The promise; why there is none; `None` if the job is to have none: enough others have one, only
            work of its own user holds it back, or a policy promises it none.
        """
        if self.is_full or self._is_held_by_own(job) or not may_be_promised(self._state, self._settings, job):
            return None
        found = self._plan.earliest(job)
        if len(job.sizes) > 1 and isinstance(found, Promise) and found.start_ns == self._plan.now_ns:
            return None  # The search of now has not found the nodes of the plan: others are not held up.
        if isinstance(found, Promise):
            self._plan.take(found)
            self.promises.append(found)
        return found

    def _is_held_by_own(self, job: JobInPlan) -> bool:
        """Return whether a limit refuses a job that no work of others counts against."""
        return any(
            not fits_undefined_unlimited(room, job.total) and self._is_own(key, job)
            for key, room in job.limits.items()
        )

    def _is_own(self, key: LimitKey, job: JobInPlan) -> bool:
        return key.kind == "user" or all(work.user == job.user for work in self._running if key.counts(work))

    def standing(self, job: JobInPlan) -> Standing:
        """Return whether a job that has room now may start now, and on which nodes it may not."""
        if not self.promises:
            return Standing(may_start=True)
        limit = self._plan.exceeded_limit(job)
        promised = {node_id for promise in self.promises for node_id in promise.node_ids}
        # Elsewhere nothing on nodes is promised; under an exceeded limit another node helps nothing.
        at_risk = self._node_ids if limit is not None else promised
        delaying: set[str] = set()
        delayed: Promise | None = None
        for node_id in at_risk:
            if has_room_now(self._bare, job, node_id):
                found = self._delayed_by(job, (node_id,), limit)
                if found is not None:
                    delaying.add(node_id)
                    delayed = delayed or found
        elsewhere = self._fits_elsewhere(job, delaying)
        if delayed is None or elsewhere:
            return Standing(may_start=True, without=frozenset(delaying))
        return Standing(may_start=False, delays=delayed, limit=limit)

    def standing_on(self, job: JobInPlan, node_ids: Sequence[str]) -> Standing:
        """Return whether a job may start now on nodes that have room for it, one for each of its sizes."""
        limit = self._plan.exceeded_limit(job)
        delayed = self._delayed_by(job, node_ids, limit) if self.promises else None
        return Standing(may_start=delayed is None, delays=delayed, limit=limit)

    def left_beside(self, job: JobInPlan) -> Mapping[str, Resource]:
        """Return what promises leave a job for its walltime of the nodes that they are for."""
        return left_beside(self._plan, self.promises, job)

    def _fits_elsewhere(self, job: JobInPlan, delaying: Collection[str]) -> bool:
        return any(
            has_room_now(self._bare, job, node_id) for node_id in self._node_ids if node_id not in delaying
        )

    def _delayed_by(self, job: JobInPlan, node_ids: Sequence[str], limit: LimitKey | None) -> Promise | None:
        """Return the first promise that is not kept if a job starts on nodes now, `None` if all are."""
        if limit is None and self._plan.fits_on(job, node_ids):
            return None
        if len(self.promises) == 1 and (limit is not None or len(self._node_ids) == 1):
            return self.promises[0]  # One promise waits for room there is only there.
        trial = self._bare.copy()
        trial.take(Promise(job, trial.now_ns, tuple(node_ids)))
        for promise in self.promises:
            found = trial.earliest(promise.job)
            if isinstance(found, NoPlan) or found.start_ns > promise.start_ns:
                return promise
            trial.take(found)
        return None


class Promises(Protocol):
    """The promises to other jobs, as a whole gang sees them."""

    def standing_on(self, job: JobInPlan, node_ids: Sequence[str]) -> Standing:
        """Return whether a job may start now on nodes that have room for it, one for each of its sizes."""

    def left_beside(self, job: JobInPlan) -> Mapping[str, Resource]:
        """Return what promises leave a job for its walltime of the nodes that they are for."""


@final
class GangStart:
    """Whether a whole gang may start now beside promises, and on which nodes.

    Args:
        jobs: Those with promises.
        job: Returns the gang; it is asked only if room is found.
    """

    def __init__(self, jobs: Promises, job: Callable[[], JobInPlan]) -> None:
        self._jobs = jobs
        self._job = job
        self.delays: Standing | None = None
        """The jobs that it would delay on the nodes that were found for it; `None` without such nodes."""

    def plan(
        self, search: Callable[[Mapping[str, Resource]], tuple[str, ...] | None]
    ) -> tuple[str, ...] | None:
        """Return nodes on which it delays no promise, `None` if none were found.

        Args:
            search: Returns nodes with room for all members; of some nodes it may use no more than it is
                given. It is called twice at most: for any nodes, then for what the promises leave.
        """
        self.delays = None
        node_ids = search({})
        if node_ids is None or self._is_kept(node_ids):
            return node_ids
        node_ids = search(self._jobs.left_beside(self._job()))
        return node_ids if node_ids is not None and self._is_kept(node_ids) else None

    def _is_kept(self, node_ids: Sequence[str]) -> bool:
        standing = self._jobs.standing_on(self._job(), node_ids)
        self.delays = None if standing.may_start else standing
        return standing.may_start


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
        walltime_ns = state.ends.run_times.of(ask, entry.tags, entry.queue)
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

"""Jobs below a queue with backfilling: which may start now, and which are promised a start.

The order is strict: a job that is refused for room, or for a maximum that others fill, is promised the first
moment at which it fits, if fewer jobs than `backfill.reservations` have a promise. Any job behind it may
start only if each of these jobs can still start as early as it was promised. A job that only the work of its
own user holds back is promised nothing, and nothing waits for it.

Nothing of this is kept: the promises are found anew each time. While work ends no later than expected they do
not move back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, final

from ..configuration.queue_properties import BackfillOrder, BackfillSettings
from ..limits.user_limits import rooms_of_levels
from ..queues.application_entry import ApplicationEntry
from ..queues.lending import kept_beside
from ..queues.queue import Queue
from ..resources.resource import EMPTY, Resource, fits_undefined_unlimited
from ..state.expected_ends import RunningWork, assumed_walltime_ns, corrected_end_ns
from ..state.partition_state import PartitionState
from ..values.allocation import Allocation, Ask
from ..values.users import User
from .plan import JobInPlan, LimitKey, NoPlan, Promise, StartPlan

__all__ = ["JobOwner", "PlannedJobs", "Standing", "backfilling_queue", "job_of", "running_work"]


class JobOwner(NamedTuple):
    """Whose job it is: an application that runs, or one that does not exist yet."""

    leaf: Queue
    application_id: str
    user: User
    tags: Mapping[str, str]

    @staticmethod
    def of(entry: ApplicationEntry) -> JobOwner:
        """Return the application of an entry."""
        return JobOwner(entry.queue, entry.application_id, entry.user, entry.application.tags)


class Standing(NamedTuple):
    """What a job may do now."""

    may_start: bool
    """It fits, and delays nothing on nodes but these:"""
    without: frozenset[str] = frozenset()
    delays: Promise | None = None
    """The promise that it would delay wherever it started."""
    limit: LimitKey | None = None
    """The limit under which both do not fit; `None`: the node of the promise."""


def backfilling_queue(leaf: Queue) -> Queue | None:
    """Return the nearest queue above a leaf that backfills, `None` if none does."""
    for level in leaf.above[1:]:
        if level.settings.backfill is not None:
            return level
    return None


def job_of(state: PartitionState, owner: JobOwner, ask: Ask) -> JobInPlan:
    """Return a single ask as a job of a plan."""
    leaf, user = owner.leaf, owner.user
    limits: dict[LimitKey, Resource] = {}
    beside = kept_beside(leaf)
    for level in leaf.above[:-1]:  # The root's maximum is what the nodes have.
        left = level.room(beside.get(level, EMPTY))
        if level.maximum is not None and left is not None:
            limited = {name: quantity for name, quantity in left.items() if level.maximum.has(name)}
            limits[LimitKey("queue", "", level.path)] = Resource(limited)
    for kind, holder, path, room in rooms_of_levels(state.limits, leaf.path, owner.application_id, user):
        limits[LimitKey(kind, holder, path)] = room
    return JobInPlan(
        ask.allocation_key,
        owner.application_id,
        (ask.resource,),
        assumed_walltime_ns(ask, owner.tags, leaf),
        tuple(level.path for level in leaf.above),
        user.name,
        state.limits.group_of(leaf.path, owner.application_id, user),
        limits,
    )


def running_work(state: PartitionState) -> tuple[RunningWork, ...]:
    """Return all that runs in a partition, with its walltimes."""
    return state.ends.running(lambda: _held(state))


def _held(state: PartitionState) -> Iterator[tuple[ApplicationEntry, Allocation, str | None]]:
    for entry in state.entries.values():
        group = state.limits.group_of(entry.queue.path, entry.application_id, entry.user)
        for held in entry.application.report().held:
            yield entry, held.allocation, group


@final
class PlannedJobs:
    """The jobs below one queue with backfilling, as one walk comes to them.

    Args:
        state: The partition; nothing of it is changed.
        settings: Those of the queue.
    """

    def __init__(self, state: PartitionState, settings: BackfillSettings) -> None:
        self._settings = settings
        self._running = running_work(state)
        nodes = {node.node_id: node.available for node in state.nodes if node.usable}
        self._node_ids: Collection[str] = nodes
        self._plan = StartPlan(state.now_ns(), nodes, self._running)
        """What runs, and what is promised."""
        self._bare = self._plan.copy()
        """What runs."""
        self.promises: list[Promise] = []
        self._own: dict[LimitKey, bool] = {}

    @property
    def plan(self) -> StartPlan:
        """What runs, and what is promised, ends as expected."""
        return self._plan

    @property
    def shortest_first(self) -> bool:
        """Whether jobs behind those with promises are tried by their walltimes."""
        return self._settings.order is BackfillOrder.SHORTEST

    @property
    def is_full(self) -> bool:
        """Whether as many jobs have promises as are to have one."""
        return len(self.promises) >= self._settings.reservations

    def next_correction_ns(self) -> int | None:
        """Return when the first work that has not ended by then is expected to end later."""
        now_ns = self._plan.now_ns
        ends = [corrected_end_ns(work.begun_ns, work.walltime_ns, now_ns) for work in self._running]
        return min((end_ns for end_ns in ends if end_ns is not None), default=None)

    def promise(self, job: JobInPlan) -> Promise | NoPlan | None:
        """Promise a refused job a start, if it may have a promise.

        Returns:
            The promise; why there is none; `None` if the job is to have none: enough others have one, or only
            work of its own user holds it back.
        """
        if self.is_full or self._is_held_by_own(job):
            return None
        found = self._plan.earliest(job)
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
            if self._bare.fits_on(job._replace(walltime_ns=1), node_id):
                found = self._delayed_by(job, node_id, limit)
                if found is not None:
                    delaying.add(node_id)
                    delayed = delayed or found
        elsewhere = self._fits_elsewhere(job, delaying)
        if delayed is None or elsewhere:
            return Standing(may_start=True, without=frozenset(delaying))
        return Standing(may_start=False, delays=delayed, limit=limit)

    def _fits_elsewhere(self, job: JobInPlan, delaying: Collection[str]) -> bool:
        now = job._replace(walltime_ns=1)
        return any(self._bare.fits_on(now, node_id) for node_id in self._node_ids if node_id not in delaying)

    def _delayed_by(self, job: JobInPlan, node_id: str, limit: LimitKey | None) -> Promise | None:
        """Return the first promise that is not kept if a job starts on a node now, `None` if all are."""
        if limit is None and self._plan.fits_on(job, node_id):
            return None
        if len(self.promises) == 1 and (limit is not None or len(self._node_ids) == 1):
            return self.promises[0]  # One promise waits for room there is only there.
        trial = self._bare.copy()
        trial.take(Promise(job, trial.now_ns, (node_id,)))
        for promise in self.promises:
            found = trial.earliest(promise.job)
            if isinstance(found, NoPlan) or found.start_ns > promise.start_ns:
                return promise
            trial.take(found)
        return None

"""The plan of all jobs below a queue that promises each a start when it comes: conservative backfilling.

A promise is kept: a later job starts no sooner than leaves it unchanged. It moves in three cases alone.

* *Room comes sooner than planned*: work ends before its walltime, a node comes, a job is withdrawn or planned
  elsewhere. Then each job in order is taken out of the plan and put in again at the first moment at which it
  fits beside all others. So none moves back.
* *It cannot be kept*: a node goes, work does not end when it was expected to, a limit is lowered.
* *A job comes that goes first*, by its priority or its queue's share.

In the last two cases the jobs are planned in order: each keeps its promise if it fits beside those before it,
and has the first moment at which it does otherwise.

A promise is passed no more often than it may be (`licorne.model.planning.passing`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, final

from ..configuration.durations import short_duration_text
from ..nodes.windows import Window
from ..queues.queue import Queue
from ..resources.resource import Resource
from ..state.expected_ends import NEVER_PASSED, KeptPromise, KeptPromises, PassCount
from ..state.partition_state import PartitionState
from ..state.rates import report_of_ask
from .passing import PassOrder, next_standing_ns
from .plan import JobInPlan, NoPlan, Promise, StartPlan, has_room_now, left_beside
from .planned_jobs import Standing, bare_plan, next_correction_ns, plan_nodes, running_work

PROMISES_MAX: int = 1000
"""How many jobs have promises, whosever they are; those behind them wait until they are among them."""
_FURTHER_MAX: int = 1000
"""How many more have, of users who have few in their leaf."""
_FEW: int = 10
"""Up to how many promises a user has few in a leaf."""
_FURTHER_OF_ONE_MAX: int = 100
"""How many of the further promises one user may have, and one leaf."""
_NOTHING_KEPT: Final = KeptPromises({}, ())
_NO_ROOM: Final = Standing(may_start=False)
_Shape: TypeAlias = (
    "tuple[tuple[str, ...], str, str | None, tuple[Resource, ...], int | None, tuple[Window, ...]]"
)


class MovedPromise(NamedTuple):
    """A promise that is later than it was."""

    job: JobInPlan
    before_ns: int
    after_ns: int | None
    """`None` if it no longer exists."""
    newcomer: str
    """The first application before it that had no promise, the empty text without one."""


@final
class KeptPlan:
    """The promises to all jobs below a queue, found from those that were kept.

    Args:
        state: The partition; nothing of it is changed but by `keep`.
        queue: The queue.
        jobs: The waiting jobs below it, in order.
        without: The keys of jobs that get no promise.
    """

    def __init__(
        self,
        state: PartitionState,
        queue: Queue,
        jobs: Sequence[JobInPlan],
        without: Collection[str] = (),
    ) -> None:
        self._state = state
        self._queue = queue
        self._path = queue.path
        self.without = without
        self._bare: StartPlan | None = None
        """The expected ends of running work, once that was asked for."""
        self.plan = bare_plan(state)
        """The expected ends of running and promised work."""
        self.promises: dict[str, Promise] = {}
        """By the key of their job; in order, except those that have moved."""
        self.reasons: dict[str, NoPlan] = {}
        """Why jobs have no promise, by their key."""
        self._moved: list[MovedPromise] = []
        self._kept = 0
        """How many promises are kept unchanged."""
        self._stamp = _stamp(state)
        self._changed: dict[str, None] = {}
        """The keys of promises that are not those of the walk before."""
        self._places = _Places()
        self._unplannable: dict[_Shape, NoPlan] = {}
        """Why jobs of a shape have no start: other promises leave no further room."""
        self._first_ns: dict[_Shape, int] = {}
        """Before when no job of a shape fits, as long as no room is given back."""
        kept = state.ends.kept.get(self._path, _NOTHING_KEPT)
        self.counts = _counts_of(state, queue, jobs)
        """How often the promises of jobs that wait were passed, by key."""

        serials = {key: promise.serial for key, promise in kept.by_key.items()}
        self._order = PassOrder(state, queue, serials, self.counts)
        self._jobs = self._order.ordered([job for job in jobs if job.key not in without])
        self._are_single = _are_single(self._jobs)
        self._passing: dict[str, list[str]] = {}
        """The jobs that are planned before others for the sake of shares, and delay them, by their keys."""
        self._make(self._jobs, kept)

    def _make(self, jobs: Sequence[JobInPlan], kept: KeptPromises) -> None:
        known = [index for index, job in enumerate(jobs) if job.key in kept.by_key]
        old = known[-1] + 1 if known else 0
        for job in jobs[:old]:
            self._promise(job, kept.by_key.get(job.key))
        lost = len(kept.by_key) - self._kept
        if kept.stamp != self._stamp or lost:
            self._unplannable.clear()
            self._move_up(jobs[:old])
        self._note_moved(jobs[:old], kept.by_key)
        for job in jobs[old:]:
            self._promise(job)

    def goes_on(self, jobs: Sequence[JobInPlan]) -> bool:
        """Go on with the jobs of the next walk; return whether that was possible.

        It is if new jobs have come behind the others alone, and the plan goes on. The promises are then those
        that a plan made anew would find.
        """
        count, state = len(self._jobs), self._state
        if not _is_plain(state) or jobs[:count] != self._jobs:
            return False
        now_ns, before = state.now_ns(), self.plan.running
        if any(promise.start_ns < now_ns for promise in self.promises.values()):
            return False
        if not self.plan.goes_on(now_ns, plan_nodes(state), running_work(state)):
            return False
        stamp, self._stamp = self._stamp, _stamp(state)
        self._are_single = self._are_single and _are_single(jobs[count:])
        self._jobs, self._moved, self._bare = [*jobs], [], None
        self.counts = _counts_of(state, self._queue, jobs)
        if stamp != self._stamp:
            self._move_up(jobs[: len(self.promises)])
        if stamp != self._stamp or before is not self.plan.running:
            self._unplannable.clear()
            self._first_ns.clear()
            self.reasons.clear()
            count = len(self.promises)
        for job in jobs[count:]:
            self._promise(job)
        return True

    def _note_moved(self, jobs: Iterable[JobInPlan], kept: Mapping[str, KeptPromise]) -> None:
        """Note which promises are later than they were, and who goes first now."""
        newcomer = ""
        for job in jobs:
            before, after = kept.get(job.key), self.promises.get(job.key)
            if before is None:
                newcomer = newcomer or job.application_id
            elif after is None or after.start_ns > max(before.start_ns, self.plan.now_ns):
                start_ns = None if after is None else after.start_ns
                self._moved.append(MovedPromise(job, before.start_ns, start_ns, newcomer))
                count = self.counts.get(job.key, NEVER_PASSED)
                self.counts[job.key] = count.passed_by(self._passing.get(job.key, ()), self.plan.now_ns)

    def _find_passing(self, job: JobInPlan, found: Promise | NoPlan) -> None:
        """Find the later comers before a job without which it would start sooner, if there are any."""
        passing = self._order.passing(job, self.promises)
        for promise in passing:
            self.plan.give_back(promise)
        without = self.plan.earliest(job) if passing else found
        for promise in passing:
            self.plan.take(promise)
        is_sooner = isinstance(found, NoPlan) or (
            isinstance(without, Promise) and without.start_ns < found.start_ns
        )
        if passing and isinstance(without, Promise) and is_sooner:
            self._passing[job.key] = [promise.job.key for promise in passing]

    def _promise(self, job: JobInPlan, kept: KeptPromise | None = None) -> None:
        """Promise a job what it was promised, or else the first moment at which it fits."""
        if not self._places.has_one(job, len(self.promises)):
            return
        if kept is not None and len(kept.node_ids) == len(job.sizes):
            promise = Promise(job, max(kept.start_ns, self.plan.now_ns), kept.node_ids)
            if self.plan.fits(promise):
                self._take(promise)
                self._kept += 1
                if promise.start_ns == kept.start_ns:
                    del self._changed[job.key]
                return
        shape = _shape_of(job)
        found = self._unplannable.get(shape) or self.plan.earliest(job, self._first_ns.get(shape, 0))
        if kept is not None and self._order.is_mixed:
            self._find_passing(job, found)
        if isinstance(found, NoPlan):
            self.reasons[job.key] = self._unplannable[shape] = found
        else:
            self._take(found)
            if len(job.sizes) == 1 and not job.windows:  # Others are searched moment by moment.
                self._first_ns[shape] = found.start_ns

    def _take(self, promise: Promise) -> None:
        job = promise.job
        if job.key not in self.promises:
            self._places.take(job, len(self.promises))
        self.plan.take(promise)
        self.promises[job.key] = promise
        self._changed[job.key] = None

    def _move_up(self, jobs: Iterable[JobInPlan]) -> None:
        """Put jobs, in order, in again where they start sooner."""
        self._first_ns.clear()
        moves = _Moves()
        for job in jobs:
            promise = self.promises.get(job.key)
            if promise is None or promise.start_ns <= self.plan.now_ns:
                continue
            shape = _shape_of(job)
            self.plan.give_back(promise)
            found = self.plan.earliest(job, moves.first_ns(shape, promise))
            if isinstance(found, Promise) and found.start_ns < promise.start_ns:
                self._take(found)
                moves.note_free(promise.start_ns)
            else:
                self.plan.take(promise)
            moves.note_found(shape, self.promises[job.key].start_ns)

    def keep(self, started: str = "") -> None:
        """Keep the promises for the next walk, except that of a job that has started; report moved ones."""
        self._state.setbacks.promises_moved[self._path] += len(self._moved)
        for moved in self._moved:
            _report(self._state, moved)
        ends = self._state.ends
        before = ends.kept.get(self._path, _NOTHING_KEPT).by_key
        if started:
            self._leave(started)
        promises = {key: known for key, known in before.items() if key in self.promises}
        for key in self._changed:
            promise, known = self.promises[key], before.get(key)
            ends.promised += known is None
            serial = ends.promised if known is None else known.serial
            promises[key] = KeptPromise(promise.start_ns, promise.node_ids, serial)
        self._changed.clear()
        ends.kept[self._path] = KeptPromises(promises, self._stamp)
        counts = self.counts.items()
        ends.passed[self._path] = {key: count for key, count in counts if count.keys and key != started}
        promised = self._jobs[: len(self.promises)]
        if (
            _is_plain(self._state)
            and not (self.without or self._order.is_mixed)
            and self._are_single
            and all(job.key in self.promises for job in promised)
        ):  # A plan for whole gangs is searched moment by moment, and limits are not compared.
            ends.plans[self._path] = self

    def _leave(self, started: str) -> None:
        """Take a job that has started out of the promises: it runs."""
        promise = self.promises.pop(started, None)
        self._changed.pop(started, None)
        self._jobs = [job for job in self._jobs if job.key != started]
        if promise is not None:
            self.plan.give_back(promise)
            self._first_ns.clear()
            self._places.leave(promise.job, self.promises.values())

    def starts_now(self, key: str) -> bool:
        """Return whether the promised start of a job has come."""
        promise = self.promises.get(key)
        return promise is not None and promise.start_ns <= self.plan.now_ns

    def due(self) -> set[str]:
        """Return the keys of the jobs whose promised start has come."""
        now_ns = self.plan.now_ns
        return {key for key, promise in self.promises.items() if promise.start_ns <= now_ns}

    def next_change_ns(self) -> int | None:
        """Return when time alone changes something: a promised start, or work that has not ended by then."""
        starts = (promise.start_ns for promise in self.promises.values())
        moments = [start_ns for start_ns in starts if start_ns > self.plan.now_ns]
        others = next_correction_ns(self._state), next_standing_ns(self._state, self._queue)
        return min([*moments, *(at_ns for at_ns in others if at_ns is not None)], default=None)

    # ----------------------------------------------------------------- one job beside all others

    def set_aside(self, job: JobInPlan) -> None:
        """Take the promise of a job out of the plan, until `put_back`: what is asked then is about others."""
        promise = self.promises.get(job.key)
        if promise is not None:
            self.plan.give_back(promise)

    def put_back(self, job: JobInPlan) -> None:
        """Take the promise of a job into the plan again."""
        promise = self.promises.get(job.key)
        if promise is not None:
            self.plan.take(promise)

    def standing_on(self, job: JobInPlan, node_ids: Sequence[str]) -> Standing:
        """Return whether a job that is set aside may start now on nodes, one for each of its sizes."""
        limit = self.plan.exceeded_limit(job)
        if limit is None and self.plan.fits_on(job, node_ids):
            return Standing(may_start=True)
        return Standing(may_start=False, delays=self._delayed_by(job, node_ids), limit=limit)

    def standing(self, job: JobInPlan) -> Standing:
        """Return whether a job of one size that is set aside may start now on a node that has room for it."""
        bare = self._without_promises()
        usable = [node.node_id for node in self._state.nodes if node.usable]
        found = [self.standing_on(job, (node_id,)) for node_id in usable if has_room_now(bare, job, node_id)]
        return next((each for each in found if each.may_start), found[0] if found else _NO_ROOM)

    def left_beside(self, job: JobInPlan) -> Mapping[str, Resource]:
        """Return what promises leave a job for its walltime of the nodes that they are for."""
        return left_beside(self.plan, self.promises.values(), job)

    def _without_promises(self) -> StartPlan:
        if self._bare is None:
            self._bare = bare_plan(self._state)
        return self._bare

    def _delayed_by(self, job: JobInPlan, node_ids: Sequence[str]) -> Promise | None:
        """Return the first promise that cannot be kept if a job starts on nodes now."""
        trial = self._without_promises().copy()
        trial.take(Promise(job, trial.now_ns, tuple(node_ids)))
        for promise in self.promises.values():
            if promise.job.key == job.key:
                continue
            if not trial.fits(promise):
                return promise
            trial.take(promise)
        return None


def next_plan(
    state: PartitionState, queue: Queue, jobs: Sequence[JobInPlan], without: Collection[str]
) -> KeptPlan:
    """Return the plan of a walk: that of the walk before, if it goes on, or a new one; see `KeptPlan`."""
    before = state.ends.plans.pop(queue.path, None)
    if isinstance(before, KeptPlan) and not without and before.goes_on(jobs):
        return before
    return KeptPlan(state, queue, jobs, without)


@final
class _Places:
    """The promises by users and leaves: beyond the first ones, neither a leaf nor a user takes all places."""

    def __init__(self) -> None:
        self._held: Counter[tuple[str, str]] = Counter()
        """How many promises a user has in a leaf."""
        self._further: Counter[str] = Counter()
        """How many of the further promises a user has, or a leaf."""

    def has_one(self, job: JobInPlan, promised: int) -> bool:
        """Return whether a job may have a promise beside so many.

        Those without one, as they can be planned nowhere, take no place.
        """
        if promised < PROMISES_MAX:
            return True
        further, leaf = self._further, job.levels[0]
        return (
            self._held[leaf, job.user] < _FEW
            and promised < PROMISES_MAX + _FURTHER_MAX
            and max(further[f"leaf {leaf}"], further[f"user {job.user}"]) < _FURTHER_OF_ONE_MAX
        )

    def take(self, job: JobInPlan, before: int) -> None:
        """Count a promise behind so many others."""
        self._held[job.levels[0], job.user] += 1
        if before >= PROMISES_MAX:
            self._further.update((f"leaf {job.levels[0]}", f"user {job.user}"))

    def leave(self, job: JobInPlan, left: Collection[Promise]) -> None:
        """Count a promise no longer; those that are left are counted anew where they are many."""
        self._further.clear()
        if len(left) < PROMISES_MAX:
            self._held[job.levels[0], job.user] -= 1
            return
        self._held.clear()
        for before, promise in enumerate(left):
            self.take(promise.job, before)


@final
class _Moves:
    """Until when jobs of a shape are known not to fit, while jobs are put in again in order.

    A job that was put in where it fits first leaves no room sooner to the next one of its shape, but what
    that one takes itself, and what others have freed since.
    """

    def __init__(self) -> None:
        self._found: dict[_Shape, tuple[int, int]] = {}
        """Where the last one of a shape is, and how many had moved by then."""
        self._count = 0
        """How many have moved."""
        self._moved: list[int] = []
        self._from_ns: list[int] = []
        """Since when room is free that jobs had before they moved, and which of them: the earliest behind
        each."""

    def first_ns(self, shape: _Shape, promise: Promise) -> int:
        """Return the first moment at which the job of a promise may fit."""
        length_ns, found = promise.job.walltime_ns, self._found.get(shape)
        if length_ns is None or len(promise.job.sizes) > 1 or promise.job.windows or found is None:
            return 0
        first_ns, moved = found
        place = bisect_left(self._moved, moved)
        freed_ns = self._from_ns[place] if place < len(self._moved) else promise.start_ns
        return min(first_ns, min(freed_ns, promise.start_ns) - length_ns + 1)

    def note_free(self, from_ns: int) -> None:
        """Note that a job has moved, and from when on it had room before."""
        while self._from_ns and self._from_ns[-1] >= from_ns:
            self._from_ns.pop()
            self._moved.pop()
        self._from_ns.append(from_ns)
        self._moved.append(self._count)
        self._count += 1

    def note_found(self, shape: _Shape, start_ns: int) -> None:
        """Note where a job of a shape fits first."""
        self._found[shape] = start_ns, self._count


def _counts_of(state: PartitionState, queue: Queue, jobs: Sequence[JobInPlan]) -> dict[str, PassCount]:
    counts = state.ends.passed.get(queue.path)
    return {job.key: counts[job.key] for job in jobs if job.key in counts} if counts else {}


def _is_plain(state: PartitionState) -> bool:
    """Return whether work takes what it has alone: nothing is kept back, reserved, limited or preempted."""
    claims = state.claims
    is_limited = bool(state.tree.root.lending or state.limits.is_limited or state.windows.all)
    return not (claims.by_key or claims.preempted_ns or is_limited or state.ends.run_times.is_used)


def _are_single(jobs: Iterable[JobInPlan]) -> bool:
    """Return whether jobs need one node each, and have no limits below the root."""
    return all(len(job.sizes) == 1 and not job.limits for job in jobs)


def _stamp(state: PartitionState) -> tuple[int, int]:
    return state.ends.unplanned, state.node_changes


def _shape_of(job: JobInPlan) -> _Shape:
    return job.levels, job.user, job.group, job.sizes, job.walltime_ns, job.windows


def _report(state: PartitionState, moved: MovedPromise) -> None:
    """Report that a promise has moved back, and why."""
    job = moved.job
    why = "work runs longer than it was to, or there is less room"
    if moved.newcomer:
        why = f"application {moved.newcomer} goes first"
    then = "no start is known"
    if moved.after_ns is not None:
        then = f"it is to start {short_duration_text(moved.after_ns - moved.before_ns)} later"
    message = f"The promised start of '{job.key}' has moved back: {why}; {then}"
    report_of_ask(state, "promise", (job.application_id, job.key), job.total, message)

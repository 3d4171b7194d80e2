"""Plans: when the next jobs can start, from when the work that runs is expected to end.

A *job* is a multiset of sizes that start together; a single ask is a job of one size. It needs a node for
each size, and room under each of its *limits*: the maxima of the queues on its path, and the limits of its
user and its group. For each node and each limit a plan has a *profile*, the room
from each moment on. It is made on its first use, so that a plan costs only what it is used for.

A plan knows no clock, no queue tree and no node: it is made of values and answers the same each time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, final

from ..nodes.gang_room import NodeRoom, assign
from ..nodes.topology import Domains
from ..nodes.windows import Window, free_from_ns, next_end_ns
from ..resources.comparisons import prune
from ..resources.resource import EMPTY, Resource, add, fits, fits_undefined_unlimited, subtract, total_of
from ..state.expected_ends import RunningWork, corrected_end_ns

Fits: TypeAlias = "Callable[[Resource, Resource], bool]"


class LimitKey(NamedTuple):
    """A limit that work counts against: of a queue, or of a user or a group in a queue and below it."""

    kind: str
    """`queue`, `user` or `group`."""
    holder: str
    """The user or the group; empty for a queue."""
    path: str
    """The queue."""

    def counts(self, work: RunningWork | JobInPlan) -> bool:
        """Return whether work counts against this limit."""
        if self.path not in work.levels:
            return False
        return self.kind == "queue" or self.holder == (work.user if self.kind == "user" else work.group)


class JobInPlan(NamedTuple):
    """A job, as a plan sees it."""

    key: str
    """The key of its ask."""
    application_id: str
    sizes: tuple[Resource, ...]
    walltime_ns: int | None
    """Without one it never ends."""
    levels: tuple[str, ...]
    """The paths of its queue and of those above."""
    user: str
    group: str | None
    limits: Mapping[LimitKey, Resource]
    """Its limits, each with what it leaves now; a type that is not there is not limited."""
    total: Resource
    """The sum of its sizes: what it takes of its limits."""
    priority: int = 0
    domains: Domains | None = None
    """The domains of nodes that a gang may have; `None` for all nodes."""
    windows: tuple[Window, ...] = ()
    """The windows that it has to leave room for."""

    def by_node(self, node_ids: Sequence[str]) -> Mapping[str, Resource]:
        """Return what it takes of each node, if each size is on the node in its place."""
        if len(set(node_ids)) == 1:
            return {node_ids[0]: self.total}
        taken: dict[str, Resource] = {}
        for size, node_id in zip(self.sizes, node_ids, strict=True):
            taken[node_id] = add(taken[node_id], size) if node_id in taken else size
        return taken


class Promise(NamedTuple):
    """When a job can start, and where: if work ends when it is expected to, it can."""

    job: JobInPlan
    start_ns: int
    node_ids: tuple[str, ...]
    """A node for each size."""

    @property
    def end_ns(self) -> int | None:
        """When the job is expected to end, `None` for never."""
        return None if self.job.walltime_ns is None else self.start_ns + self.job.walltime_ns


class NoPlan(NamedTuple):
    """That a job has no expected start."""

    reason: str


@final
class _Profile:
    """How much room there is, from each moment to the next one; it never changes."""

    __slots__ = ("_fits", "_grows", "_rooms", "_times")

    def __init__(
        self, times: list[int], rooms: list[Resource], fits_in: Fits, *, grows: bool = False
    ) -> None:
        self._times = times
        self._rooms = rooms
        self._fits = fits_in
        self._grows = grows
        """There is never less room than before."""

    @staticmethod
    def of(now_ns: int, room: Resource, gains: Iterable[tuple[int, Resource]], *, is_limit: bool) -> _Profile:
        """Return the profile of room that grows: each gain with its moment."""
        sums: dict[int, Resource] = {}
        for at_ns, size in gains:
            part = _limited(size, room) if is_limit else size
            before = sums.get(at_ns)
            sums[at_ns] = part if before is None else add(before, part)
        times, rooms = [now_ns], [room]
        for at_ns in sorted(sums):
            after = add(rooms[-1], sums[at_ns])
            if at_ns <= now_ns:
                rooms[-1] = after
            else:
                times.append(at_ns)
                rooms.append(after)
        return _Profile(times, rooms, fits_undefined_unlimited if is_limit else fits, grows=True)

    def less(self, size: Resource, begin_ns: int, end_ns: int | None) -> _Profile:
        """Return the profile with something taken from one moment to another, `None` for ever."""
        times, rooms = self._times.copy(), self._rooms.copy()
        part = _limited(size, rooms[0]) if self._fits is fits_undefined_unlimited else size
        first = _cut(times, rooms, begin_ns)
        last = len(times) if end_ns is None else _cut(times, rooms, end_ns)
        rooms[first:last] = [subtract(room, part) for room in rooms[first:last]]
        return _Profile(times, rooms, self._fits)

    def first_fit_ns(self, size: Resource, from_ns: int, length_ns: int | None) -> int | None:
        """Return the first moment from which there is room for a time, `None` if there never is."""
        times, rooms, has_room = self._times, self._rooms, self._fits
        count = len(times)
        index = max(0, bisect_right(times, from_ns) - 1)
        while True:
            while index < count and not has_room(rooms[index], size):
                index += 1
            if index == count:
                return None
            start_ns = max(from_ns, times[index])
            end_ns = None if length_ns is None else start_ns + length_ns
            index += 1
            while index < count and (end_ns is None or times[index] < end_ns):
                if not has_room(rooms[index], size):
                    break
                index += 1
            else:
                return start_ns

    def least(self, from_ns: int, length_ns: int | None) -> Resource:
        """Return the most that there is room for from a moment on, for so long."""
        index = max(0, bisect_right(self._times, from_ns) - 1)
        room = self._rooms[index]
        if self._grows:
            return room
        for at_ns, other in zip(self._times[index + 1 :], self._rooms[index + 1 :], strict=True):
            if length_ns is not None and at_ns >= from_ns + length_ns:
                break
            room = Resource({name: min(most, other.get(name)) for name, most in room.items()})
        return room

    def next_change_ns(self, after_ns: int) -> int | None:
        """Return the first moment after this one at which the room changes, `None` if it does not."""
        index = bisect_right(self._times, after_ns)
        return self._times[index] if index < len(self._times) else None


def _limited(size: Resource, room: Resource) -> Resource:
    """Return what counts against a limit: the types that it has."""
    return Resource({name: quantity for name, quantity in size.items() if room.has(name)})


def _cut(times: list[int], rooms: list[Resource], at_ns: int) -> int:
    """Have a step of a profile begin at a moment; return its index."""
    index = bisect_right(times, at_ns) - 1
    if index < 0:
        return 0
    if times[index] != at_ns:
        index += 1
        times.insert(index, at_ns)
        rooms.insert(index, rooms[index - 1])
    return index


_WINDOWS_MAX: Final = 64
"""How many windows a job is planned behind at most."""
_NO_WORK: Final[tuple[RunningWork, ...]] = ()


@final
class StartPlan:
    """The expected events: work ends, and jobs with a promise start and end.

    Args:
        now_ns: The time.
        nodes: The nodes that asks may be placed on, in their order, with what each has available.
        running: All that runs in the partition.
    """

    __slots__ = (
        "_all",
        "_limits",
        "_nodes",
        "_on_nodes",
        "_profiles",
        "_running",
        "_taken",
        "_untaken",
        "now_ns",
    )

    def __init__(self, now_ns: int, nodes: Mapping[str, Resource], running: Sequence[RunningWork]) -> None:
        self.now_ns = now_ns
        self._nodes = nodes
        self._running = running
        self._on_nodes: dict[str, list[RunningWork]] | None = None
        self._profiles: dict[str, _Profile] = {}
        """Those of nodes that a promise takes something of."""
        self._untaken: dict[str, _Profile] = {}
        """Those of what runs; copies share them."""
        self._all: _Profile | None = None
        """The capacity of all nodes together; a job of many sizes starts no sooner than it fits there."""
        self._limits: dict[LimitKey, _Profile] = {}
        self._taken: list[Promise] = []

    def copy(self) -> StartPlan:
        """Return a plan that is changed without changing this one."""
        plan = StartPlan(self.now_ns, self._nodes, self._running)
        plan._on_nodes = self._on_nodes
        plan._profiles = self._profiles.copy()
        plan._untaken = self._untaken
        plan._all = self._all
        plan._limits = self._limits.copy()
        plan._taken = self._taken.copy()
        return plan

    def take(self, promise: Promise) -> None:
        """Have a job start as promised."""
        self._change(promise, given_back=False)
        self._taken.append(promise)

    def give_back(self, promise: Promise) -> None:
        """Have a job no longer start as promised: the value is the one that was taken."""
        self._change(promise, given_back=True)
        self._taken = [taken for taken in self._taken if taken is not promise]

    def _change(self, promise: Promise, *, given_back: bool) -> None:
        job, begin_ns, end_ns = promise.job, promise.start_ns, promise.end_ns
        for node_id, size in job.by_node(promise.node_ids).items():
            taken = subtract(EMPTY, size) if given_back else size
            self._profiles[node_id] = self._node(node_id).less(taken, begin_ns, end_ns)
        total = subtract(EMPTY, job.total) if given_back else job.total
        if self._all is not None:
            self._all = self._all.less(total, begin_ns, end_ns)
        for key, profile in self._limits.items():
            if key.counts(job):
                self._limits[key] = profile.less(total, begin_ns, end_ns)

    def earliest(self, job: JobInPlan) -> Promise | NoPlan:
        """Return the first moment from which a job fits for its whole walltime, and nodes for it."""
        start_ns = self.now_ns
        while True:
            moved_ns = self._limits_from(job, start_ns)
            if isinstance(moved_ns, NoPlan):
                return moved_ns
            found = self._nodes_from(job, moved_ns)
            if isinstance(found, NoPlan):
                return found
            at_ns, node_ids = found
            if at_ns == moved_ns:
                return Promise(job, at_ns, node_ids)
            start_ns = at_ns

    def fits(self, promise: Promise) -> bool:
        """Return whether a job can start as promised: its nodes are usable, and it fits."""
        job, at_ns = promise.job, promise.start_ns
        if not all(node_id in self._nodes for node_id in promise.node_ids):
            return False
        return self.exceeded_limit(job, at_ns) is None and self.fits_on(job, promise.node_ids, at_ns)

    def exceeded_limit(self, job: JobInPlan, at_ns: int | None = None) -> LimitKey | None:
        """Return a limit under which a job does not fit for its whole walltime from a moment on, now if none.

        That is `None` if it fits under all.
        """
        start_ns = self.now_ns if at_ns is None else at_ns
        total = job.total
        for key, room in job.limits.items():
            if self._limit(key, room).first_fit_ns(total, start_ns, job.walltime_ns) != start_ns:
                return key
        return None

    def fits_on(self, job: JobInPlan, node_ids: Sequence[str], at_ns: int | None = None) -> bool:
        """Return whether a job fits on nodes for its whole walltime from a moment on, now if none.

        Each size has its node.
        """
        start_ns = self.now_ns if at_ns is None else at_ns
        return all(
            self._node(node_id).first_fit_ns(size, start_ns, job.walltime_ns) == start_ns
            and not (job.windows and is_reserved(job, node_id, start_ns))
            for node_id, size in job.by_node(node_ids).items()
        )

    def room_at(self, node_id: str, at_ns: int, length_ns: int | None = 1) -> Resource:
        """Return what a node has left from a moment on for so long, `None` for ever."""
        return prune(self._node(node_id).least(at_ns, length_ns))

    def left_beside(self, promises: Iterable[Promise], job: JobInPlan) -> Mapping[str, Resource]:
        """Return what is left to a job from now on for its walltime of the nodes that promises are for."""
        node_ids = {node_id for promise in promises for node_id in promise.node_ids}
        return {node_id: self.room_at(node_id, self.now_ns, job.walltime_ns) for node_id in node_ids}

    # ------------------------------------------------------------------------------------- limits

    def _limits_from(self, job: JobInPlan, start_ns: int) -> int | NoPlan:
        """Return the first moment from which a job fits under all of its limits."""
        total = job.total
        while True:
            before_ns = start_ns
            for key, room in job.limits.items():
                found_ns = self._limit(key, room).first_fit_ns(total, start_ns, job.walltime_ns)
                if found_ns is None:
                    return self._never_under(key)
                start_ns = found_ns
            if start_ns == before_ns:
                return start_ns

    def _limit(self, key: LimitKey, room: Resource) -> _Profile:
        profile = self._limits.get(key)
        if profile is None:
            gains = _gains((work for work in self._running if key.counts(work)), self.now_ns)
            profile = _Profile.of(self.now_ns, room, gains, is_limit=True)
            for promise in self._taken:
                if key.counts(promise.job):
                    profile = profile.less(promise.job.total, promise.start_ns, promise.end_ns)
            self._limits[key] = profile
        return profile

    def _never_under(self, key: LimitKey) -> NoPlan:
        endless = sum(key.counts(work) and work.walltime_ns is None for work in self._running)
        holder = key.path if key.kind == "queue" else f"{key.kind} {key.holder} in {key.path}"
        if endless:
            return NoPlan(f"{_allocations(endless)} under the limit of {holder} {_have(endless)} no walltime")
        return NoPlan(f"it does not fit under the limit of {holder} after all that runs there")

    # -------------------------------------------------------------------------------------- nodes

    def _on_node(self, node_id: str) -> Sequence[RunningWork]:
        if self._on_nodes is None:
            self._on_nodes = {}
            for work in self._running:
                self._on_nodes.setdefault(work.node_id, []).append(work)
        return self._on_nodes.get(node_id, _NO_WORK)

    def _node(self, node_id: str) -> _Profile:
        profile = self._profiles.get(node_id) or self._untaken.get(node_id)
        if profile is None:
            room, gains = self._nodes[node_id], _gains(self._on_node(node_id), self.now_ns)
            profile = self._untaken[node_id] = _Profile.of(self.now_ns, room, gains, is_limit=False)
        return profile

    def _all_nodes(self) -> _Profile:
        if self._all is None:
            room = total_of(
                Resource({name: max(0, quantity) for name, quantity in available.items()})
                for available in self._nodes.values()
            )
            gains = _gains((work for work in self._running if work.node_id in self._nodes), self.now_ns)
            self._all = _Profile.of(self.now_ns, room, gains, is_limit=False)
            for promise in self._taken:
                self._all = self._all.less(promise.job.total, promise.start_ns, promise.end_ns)
        return self._all

    def _nodes_from(self, job: JobInPlan, start_ns: int) -> tuple[int, tuple[str, ...]] | NoPlan:
        """Return the first moment from which nodes have room for a job, and the nodes."""
        if len(job.sizes) > 1 and len(self._nodes) > 1:
            return self._nodes_of_many(job, start_ns)
        size, first_ns = job.total, None
        chosen: list[str] = []
        for node_id in self._nodes:
            found_ns = (
                _first_fit_ns(self._node(node_id), job, node_id, start_ns)
                if job.windows
                else self._node(node_id).first_fit_ns(size, start_ns, job.walltime_ns)
            )
            if found_ns is None or (first_ns is not None and found_ns > first_ns):
                continue
            if found_ns == first_ns:
                chosen.append(node_id)
            else:
                first_ns, chosen = found_ns, [node_id]
        if first_ns is None:
            return _never_on_nodes(self._running)
        at_ns = first_ns
        node_id = min(chosen, key=lambda node_id: self._runs_after(node_id, at_ns))
        return at_ns, (node_id,) * len(job.sizes)

    def _runs_after(self, node_id: str, at_ns: int) -> int:
        """Return how many allocations of a node are expected to run after a moment."""
        ends = [_end_ns(work, self.now_ns) for work in self._on_node(node_id)]
        return sum(end_ns is None or end_ns > at_ns for end_ns in ends)

    def _nodes_of_many(self, job: JobInPlan, start_ns: int) -> tuple[int, tuple[str, ...]] | NoPlan:
        together, ends_left = self._all_nodes(), _WINDOWS_MAX
        at_ns = together.first_fit_ns(job.total, start_ns, job.walltime_ns)
        while at_ns is not None:
            rooms = [
                NodeRoom(
                    node_id,
                    self._node(node_id).least(at_ns, job.walltime_ns),
                    (self._runs_after(node_id, at_ns), ""),
                )
                for node_id in self._nodes
                if not (job.windows and is_reserved(job, node_id, at_ns))
            ]
            node_ids = assign(job.sizes, rooms, domains=job.domains)
            if node_ids is not None:
                return at_ns, node_ids
            next_ns = together.next_change_ns(at_ns)
            end_ns = next_end_ns(job.windows, at_ns) if ends_left else None
            if end_ns is not None and (next_ns is None or end_ns < next_ns):
                next_ns, ends_left = end_ns, ends_left - 1
            at_ns = None if next_ns is None else together.first_fit_ns(job.total, next_ns, job.walltime_ns)
        return _never_on_nodes(self._running)


def is_reserved(job: JobInPlan, node_id: str, at_ns: int) -> bool:
    """Return whether windows keep a job from starting on a node at a moment."""
    return free_from_ns(_on(node_id, job.windows), at_ns, job.walltime_ns) != at_ns


def has_room_now(plan: StartPlan, job: JobInPlan, node_id: str) -> bool:
    """Return whether a node has room for a job now, for however short, and no window keeps it from it."""
    has_room = plan.fits_on(job._replace(walltime_ns=1, windows=()), (node_id,))
    return has_room and not (job.windows and is_reserved(job, node_id, plan.now_ns))


def _first_fit_ns(profile: _Profile, job: JobInPlan, node_id: str, start_ns: int) -> int | None:
    """Return the first moment from which a node has room for a whole job between windows."""
    windows = _on(node_id, job.windows)
    at_ns: int | None = start_ns
    for _ in range(_WINDOWS_MAX):
        found_ns = None if at_ns is None else profile.first_fit_ns(job.total, at_ns, job.walltime_ns)
        if found_ns is None or not windows:
            return found_ns
        at_ns = free_from_ns(windows, found_ns, job.walltime_ns)
        if at_ns == found_ns:
            return at_ns
    return None


def _on(node_id: str, windows: Sequence[Window]) -> Sequence[Window]:
    return [window for window in windows if node_id in window.node_ids]


def _end_ns(work: RunningWork, now_ns: int) -> int | None:
    return corrected_end_ns(work.begun_ns, work.walltime_ns, now_ns)


def _gains(works: Iterable[RunningWork], now_ns: int) -> list[tuple[int, Resource]]:
    ends = [(_end_ns(work, now_ns), work.resource) for work in works]
    return [(end_ns, size) for end_ns, size in ends if end_ns is not None]


def _never_on_nodes(running: Sequence[RunningWork]) -> NoPlan:
    endless = sum(work.walltime_ns is None for work in running)
    if endless:
        return NoPlan(f"{_allocations(endless)} on its nodes {_have(endless)} no walltime")
    return NoPlan("no node has room for it after all that runs there")


def _allocations(count: int) -> str:
    return "1 allocation" if count == 1 else f"{count} allocations"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"

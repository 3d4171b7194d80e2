"""Plans: when the next jobs can start, from when the work that runs is expected to end.

A *job* is a multiset of sizes that start together; a single ask is a job of one size. It needs a node for
each size, and room under each of its *limits*: the maxima of the queues on its path, and the limits of its
user and its group. For each node and each limit a plan has a *profile*, the room
from each moment on. It is made on its first use, so that a plan costs only what it is used for.

A plan knows no clock, no queue tree and no node: it is made of values and answers the same each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Final, NamedTuple, final

from ..nodes.gang_room import NodeRoom, assign
from ..nodes.topology import Domains
from ..nodes.windows import Window, free_from_ns, next_end_ns
from ..resources.comparisons import prune
from ..resources.resource import EMPTY, Resource, add, subtract, total_of
from ..state.expected_ends import RunningWork, corrected_end_ns
from .profile import Profile


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
        "_taken",
        "_untaken",
        "now_ns",
        "running",
    )

    def __init__(self, now_ns: int, nodes: Mapping[str, Resource], running: Sequence[RunningWork]) -> None:
        self.now_ns = now_ns
        self._nodes = nodes
        self.running = running
        self._on_nodes: dict[str, list[RunningWork]] | None = None
        self._profiles: dict[str, Profile] = {}
        """Those of nodes that a promise takes something of."""
        self._untaken: dict[str, Profile] = {}
        """Those of what runs; copies share them."""
        self._all: Profile | None = None
        """The capacity of all nodes together; a job of many sizes starts no sooner than it fits there."""
        self._limits: dict[LimitKey, Profile] = {}
        self._taken: dict[int, Promise] = {}
        """By their identities."""

    def copy(self) -> StartPlan:
        """Return a plan that is changed without changing this one."""
        plan = StartPlan(self.now_ns, self._nodes, self.running)
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
        self._taken[id(promise)] = promise

    def give_back(self, promise: Promise) -> None:
        """Have a job no longer start as promised: the value is the one that was taken."""
        self._change(promise, given_back=True)
        self._taken.pop(id(promise), None)

    def _change(self, promise: Promise, *, given_back: bool) -> None:
        job, begin_ns, end_ns = promise.job, promise.start_ns, promise.end_ns
        for node_id, size in job.by_node(promise.node_ids).items():
            taken = subtract(EMPTY, size) if given_back else size
            self._profiles[node_id] = self._node(node_id).less(taken, begin_ns, end_ns)
        total = subtract(EMPTY, job.total) if given_back else job.total
        if self._all is not None:
            self._all = self._all.less(total, begin_ns, end_ns, merges=False)
        for key, profile in self._limits.items():
            if key.counts(job):
                self._limits[key] = profile.less(total, begin_ns, end_ns)

    def earliest(self, job: JobInPlan, from_ns: int = 0) -> Promise | NoPlan:
        """Return the first moment from which a job fits for its whole walltime, and nodes for it.

        Args:
            job: The job.
            from_ns: It is known that it does not fit before.
        """
        start_ns = max(from_ns, self.now_ns)
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

    def goes_on(self, now_ns: int, nodes: Mapping[str, Resource], running: Sequence[RunningWork]) -> bool:
        """Go on at a later moment with what runs then; return whether that was possible.

        It is if work has ended, at any time, or begun beside all that is promised on its node, the nodes have
        what follows from that alone, and what runs is expected to end when it was. Otherwise the plan is of
        no more use. Limits are found anew if anything has ended or begun.

        Args:
            now_ns: The time.
            nodes: As for a new plan.
            running: All that runs now.
        """
        if any((end_ns := _end_ns(work, self.now_ns)) is not None and end_ns <= now_ns for work in running):
            return False
        if not _are_same(running, self.running):
            before, after = ({id(work): work for work in works} for works in (self.running, running))
            expected = {**self._nodes}
            for work in [work for key, work in before.items() if key not in after]:
                self._note_change(expected, work, now_ns, begins=False)
            begun = [work for key, work in after.items() if key not in before]
            if not all(self._note_change(expected, work, now_ns, begins=True) for work in begun):
                return False
            self._nodes, self.running, self._on_nodes, self._all = expected, running, None, None
            self._limits.clear()
        if nodes != self._nodes:
            return False
        self.now_ns, self._nodes = now_ns, nodes
        return True

    def _note_change(
        self, nodes: dict[str, Resource], work: RunningWork, now_ns: int, *, begins: bool
    ) -> bool:
        """Note that work has begun or ended; return whether what is promised on its node keeps its room."""
        node_id, end_ns = work.node_id, _end_ns(work, self.now_ns)
        if node_id not in nodes:
            return True
        if begins:
            length_ns = None if end_ns is None else end_ns - now_ns
            if self._node(node_id).first_fit_ns(work.resource, now_ns, length_ns) != now_ns:
                return False
        taken = work.resource if begins else subtract(EMPTY, work.resource)
        nodes[node_id] = subtract(nodes[node_id], taken)
        if end_ns is None or end_ns > now_ns:
            for profiles in (self._profiles, self._untaken):
                profile = profiles.get(node_id)
                if profile is not None:
                    profiles[node_id] = profile.less(taken, now_ns, end_ns)
        return True

    # ------------------------------------------------------------------------------------- limits

    def _limits_from(self, job: JobInPlan, start_ns: int) -> int | NoPlan:
        """Return the first moment from which a job fits under all of its limits."""
        total = job.total
        while True:
            before_ns = start_ns
            for key, room in job.limits.items():
                found_ns = self._limit(key, room).first_fit_ns(total, start_ns, job.walltime_ns)
                if found_ns is None:
                    return _never_under(self.running, key)
                start_ns = found_ns
            if start_ns == before_ns:
                return start_ns

    def _limit(self, key: LimitKey, room: Resource) -> Profile:
        profile = self._limits.get(key)
        if profile is None:
            gains = _gains((work for work in self.running if key.counts(work)), self.now_ns)
            profile = Profile.of(self.now_ns, room, gains, is_limit=True)
            for promise in self._taken.values():
                if key.counts(promise.job):
                    profile = profile.less(promise.job.total, promise.start_ns, promise.end_ns)
            self._limits[key] = profile
        return profile

    # -------------------------------------------------------------------------------------- nodes

    def _on_node(self, node_id: str) -> Sequence[RunningWork]:
        if self._on_nodes is None:
            self._on_nodes = {}
            for work in self.running:
                self._on_nodes.setdefault(work.node_id, []).append(work)
        return self._on_nodes.get(node_id, _NO_WORK)

    def _node(self, node_id: str) -> Profile:
        profile = self._profiles.get(node_id) or self._untaken.get(node_id)
        if profile is None:
            room, gains = self._nodes[node_id], _gains(self._on_node(node_id), self.now_ns)
            profile = self._untaken[node_id] = Profile.of(self.now_ns, room, gains, is_limit=False)
        return profile

    def _all_nodes(self) -> Profile:
        if self._all is None:
            room = total_of(
                Resource({name: max(0, quantity) for name, quantity in available.items()})
                for available in self._nodes.values()
            )
            gains = _gains((work for work in self.running if work.node_id in self._nodes), self.now_ns)
            self._all = Profile.of(self.now_ns, room, gains, is_limit=False)
            for promise in self._taken.values():
                self._all = self._all.less(promise.job.total, promise.start_ns, promise.end_ns, merges=False)
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
            return _never_on_nodes(self.running)
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
        return _never_on_nodes(self.running)


def left_beside(plan: StartPlan, promises: Iterable[Promise], job: JobInPlan) -> Mapping[str, Resource]:
    """Return what is left to a job from now on for its walltime of the nodes that promises are for."""
    node_ids = {node_id for promise in promises for node_id in promise.node_ids}
    return {node_id: plan.room_at(node_id, plan.now_ns, job.walltime_ns) for node_id in node_ids}


def _are_same(one: Sequence[RunningWork], other: Sequence[RunningWork]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def is_reserved(job: JobInPlan, node_id: str, at_ns: int) -> bool:
    """Return whether windows keep a job from starting on a node at a moment."""
    return free_from_ns(_on(node_id, job.windows), at_ns, job.walltime_ns) != at_ns


def has_room_now(plan: StartPlan, job: JobInPlan, node_id: str) -> bool:
    """Return whether a node has room for a job now, for however short, and no window keeps it from it."""
    has_room = plan.fits_on(job._replace(walltime_ns=1, windows=()), (node_id,))
    return has_room and not (job.windows and is_reserved(job, node_id, plan.now_ns))


def _first_fit_ns(profile: Profile, job: JobInPlan, node_id: str, start_ns: int) -> int | None:
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


def _never_under(running: Sequence[RunningWork], key: LimitKey) -> NoPlan:
    endless = sum(key.counts(work) and work.walltime_ns is None for work in running)
    holder = key.path if key.kind == "queue" else f"{key.kind} {key.holder} in {key.path}"
    if endless:
        return NoPlan(f"{_allocations(endless)} under the limit of {holder} {_have(endless)} no walltime")
    return NoPlan(f"it does not fit under the limit of {holder} after all that runs there")


def _never_on_nodes(running: Sequence[RunningWork]) -> NoPlan:
    endless = sum(work.walltime_ns is None for work in running)
    if endless:
        return NoPlan(f"{_allocations(endless)} on its nodes {_have(endless)} no walltime")
    return NoPlan("no node has room for it after all that runs there")


def _allocations(count: int) -> str:
    return "1 allocation" if count == 1 else f"{count} allocations"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"

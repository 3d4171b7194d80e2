"""Protection: work that has not run for the minimum run time of its queue may not be a victim yet.

Work in a queue that has lost as much as its budget allows is protected as well.

`docs/preemption.md` ("A minimum run time", "A budget of disruption") defines when the time starts, for gangs
as well, and which value counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

from ..configuration.durations import short_duration_text
from ..configuration.problems import Position
from ..configuration.queue_properties import PREEMPTION_MIN_RUNTIME, PREEMPTION_VICTIMS_MAX
from ..policies.answers import HELD_NS
from ..policies.policies import GuardedPolicy
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..state.partition_state import PartitionState
from ..state.preemption_log import DisruptionLog, Overdraft
from .victims import Victim, is_of_gang, view_of_victim


class Protected(NamedTuple):
    """A possible victim that has not run long enough, or whose queue may not lose more for now."""

    victim: Victim
    queue: Queue
    """The queue whose setting protects it."""
    until_ns: int
    is_budget: bool = False
    """Whether the budget of the queue protects it, and not its run time."""
    spared: str = ""
    """The policy that spares it with its reason; the empty text if a setting of the queue protects it."""

    @property
    def why(self) -> str:
        """The reason of the protection, in words."""
        if self.spared:
            return self.spared
        settings = self.queue.settings
        budget = settings.victims_max
        if self.is_budget and budget is not None:
            within = short_duration_text(budget.within_ns)
            return f"victims-max {budget.victims}/{within} of {self.queue.path}"
        return f"min-runtime {short_duration_text(settings.min_runtime_ns)} of {self.queue.path}"

    @property
    def position(self) -> Position | None:
        """The place of that reason in the configuration, `None` if it is not there."""
        if self.spared:
            return None
        name = PREEMPTION_VICTIMS_MAX if self.is_budget else PREEMPTION_MIN_RUNTIME
        return position_of_property(self.queue, name)


class ProtectedVictims(NamedTuple):
    """The reason why preemption waits: it would help if some possible victims had run long enough."""

    number: int
    """The number of protected victims."""
    possible: int
    """The number of possible victims, including the protected ones."""
    first: Protected
    """The one whose protection ends first."""

    @classmethod
    def of(cls, protected: Sequence[Protected], others: int) -> ProtectedVictims:
        """Return the reason for protected victims and a number of others; of equals the lowest key counts."""
        first = min(protected, key=lambda each: (each.until_ns, each.victim.key))
        return cls(len(protected), len(protected) + others, first)


def position_of_property(queue: Queue, name: str) -> Position | None:
    """Return the place of a property of a queue, for an inherited one in a queue above it."""
    for level in queue.above:
        position = level.positions.get(f"properties.{name}")
        if position is not None:
            return position
    return None


@final
class Protection:
    """Decides whether allocations have run long enough to be victims, at one moment.

    Args:
        outside: The leaf of the ask that preempts, or the queue whose maximum is enforced.
        now_ns: The time.
        for_guarantee: Whether the preemption is for a guarantee; some protection does not bind other kinds.
        disruption: The losses of queues, if their budgets count.
        policies: The policies that may spare victims.
    """

    def __init__(
        self,
        outside: Queue,
        now_ns: int,
        *,
        for_guarantee: bool,
        disruption: DisruptionLog | None = None,
        policies: Sequence[GuardedPolicy] = (),
    ) -> None:
        self._policies = policies
        self._disruption = disruption
        self._now_ns = now_ns
        self._for_guarantee = for_guarantee
        self._outside = frozenset(level.path for level in outside.above)
        self._gangs: dict[str, tuple[frozenset[str], int]] = {}
        """By application, the keys of the allocations of its gang, and the time when the gang started."""

    def queue_around(self, leaf: Queue) -> Queue:
        """Return the queue whose minimum run time protects the allocations of a leaf."""
        around = leaf
        for level in leaf.above:
            if level.path in self._outside:
                break
            around = level
        return around

    def divide(self, leaf: Queue, victims: Iterable[Victim]) -> tuple[list[Victim], list[Protected]]:
        """Divide the allocations of a leaf into possible victims now, and protected ones."""
        free, protected = self._divide_by_settings(leaf, victims)
        for policy in self._policies:
            others, free = free, []
            for victim in others:
                wait = policy.spares(view_of_victim(victim), self._now_ns)
                if wait is None:
                    free.append(victim)
                    continue
                until_ns = self._now_ns + HELD_NS if wait.until_ns is None else wait.until_ns
                spared = f"policy {policy.name}: {wait.reason}"
                protected.append(Protected(victim, leaf, until_ns, spared=spared))
        return free, protected

    def _divide_by_settings(
        self, leaf: Queue, victims: Iterable[Victim]
    ) -> tuple[list[Victim], list[Protected]]:
        queue = self.queue_around(leaf)
        settings = queue.settings
        runtime_ns = settings.min_runtime_ns
        if not self._for_guarantee and settings.min_runtime_scope.is_for_guarantees:
            runtime_ns = 0
        spent = None if self._disruption is None else self._disruption.overdraft((leaf,), self._now_ns)
        if spent is not None and spent.until_ns is not None:
            return [], [self._by_budget(victim, spent, queue, runtime_ns) for victim in victims]
        if runtime_ns == 0:
            return list(victims), []
        free: list[Victim] = []
        protected: list[Protected] = []
        for victim in victims:
            until_ns = self._bound_ns(victim) + runtime_ns
            if until_ns > self._now_ns:
                protected.append(Protected(victim, queue, until_ns))
            else:
                free.append(victim)
        return free, protected

    def _by_budget(self, victim: Victim, spent: Overdraft, queue: Queue, runtime_ns: int) -> Protected:
        """Return a victim of a queue that may not lose more, with its longest protection."""
        assert spent.until_ns is not None, "one victim is never too many"
        until_ns = self._bound_ns(victim) + runtime_ns if runtime_ns else 0
        if until_ns > spent.until_ns:
            return Protected(victim, queue, until_ns)
        return Protected(victim, spent.queue, spent.until_ns, is_budget=True)

    def _bound_ns(self, victim: Victim) -> int:
        """Return the time since which a victim, or its gang, has run."""
        allocation, entry = victim.allocation, victim.entry
        may_be_member = allocation.ask.task_group_name or entry.application.gang_settings.whole
        if not (may_be_member or is_of_gang(allocation)):
            return allocation.bound_at_ns  # This is the usual case; it saves a question to the application.
        name = entry.application_id
        if name not in self._gangs:
            self._gangs[name] = _gang_of(entry)
        keys, since_ns = self._gangs[name]
        return since_ns if victim.key in keys else allocation.bound_at_ns


def _gang_of(entry: ApplicationEntry) -> tuple[frozenset[str], int]:
    """Return the keys of the allocations of an application's gang, and the time when the gang started."""
    since_ns = {
        each.allocation.ask.allocation_key: each.gang_since_ns
        for each in entry.application.allocations.all()
        if each.gang_since_ns is not None
    }
    return frozenset(since_ns), max(since_ns.values(), default=0)


def sparing(state: PartitionState) -> Sequence[GuardedPolicy]:
    """Return the policies that may spare victims."""
    return [state.host.policies.by_name[name] for name in state.config.policies.protection]

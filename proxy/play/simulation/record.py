"""The record of a simulated resource manager: the history of each ask, and the use over time.

The record has asks by their allocation key and follows each from its submission to its end. It is the
resource manager's view: no figure in it comes from the scheduler, only the owner of each application.

Decisions are recorded in the order in which the resource manager gets them. Placeholders are asks as well.
Times are whole nanoseconds of virtual time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple, final

from .accounts import BOUND_NS, Account, Accounts, Jobs, Remarks, StepFunction
from .reporting.run_series import RunSeries


@dataclass(frozen=True, slots=True, kw_only=True)
class AskEntry:
    """One ask, waiting or running, and the account of its application.

    `is_placeholder` marks a placeholder of a gang: it uses resources and does not count as work.
    `is_recovered` marks an allocation that the resource manager already had: it did not wait. `is_repeated`
    marks work that is asked for again under a new key, `was_placed` such work that has been on a node before.
    `asked_at_ns` is the time when the work was asked for first. `node_id` is the node of an allocation, empty
    for a waiting ask, and `placed_at_ns` the time of its placement.
    """

    account: Account
    application_id: str
    resources: Mapping[str, int]
    asked_at_ns: int
    is_placeholder: bool = False
    is_recovered: bool = False
    is_repeated: bool = False
    was_placed: bool = False
    node_id: str = ""
    placed_at_ns: int = 0

    def on_node(self, node_id: str, at_ns: int) -> AskEntry:
        """Return the entry as an allocation; each placement does this, and `replace` is half as fast."""
        return AskEntry(
            account=self.account,
            application_id=self.application_id,
            resources=self.resources,
            asked_at_ns=self.asked_at_ns,
            is_placeholder=self.is_placeholder,
            is_recovered=self.is_recovered,
            is_repeated=self.is_repeated,
            was_placed=self.was_placed,
            node_id=node_id,
            placed_at_ns=at_ns,
        )


@final
class SimulationRecord:
    """The record of one simulation.

    Args:
        series: The series for figures over time, `None` without them.
        jobs: The jobs for figures of jobs, `None` without them.
        decisions: The list for decisions in their order, `None` without one.
    """

    def __init__(
        self,
        series: RunSeries | None = None,
        jobs: Jobs | None = None,
        decisions: Decisions | None = None,
    ) -> None:
        self.series: Final = series
        self.jobs: Final = jobs
        self.decisions: Final = decisions
        self.accounts: Final = Accounts()
        self.remarks: Final = Remarks()
        self._waiting: dict[str, AskEntry] = {}
        self._running: dict[str, AskEntry] = {}
        self._placeholders_placed = 0
        self._capacity: dict[str, StepFunction] = {}
        self._nodes = 0
        self._last_change_ns = 0
        self.first_ask_ns: int | None = None
        """The time of the first ask."""
        self.last_completion_ns: int | None = None
        """The time of the last completion."""

    @property
    def capacity(self) -> Mapping[str, StepFunction]:
        """The sum of all nodes, by resource type."""
        return self._capacity

    @property
    def nodes(self) -> int:
        """The number of nodes of the cluster."""
        return self._nodes

    @property
    def waiting(self) -> Mapping[str, AskEntry]:
        """The waiting asks, by allocation key, in the order they were asked."""
        return self._waiting

    @property
    def running(self) -> Mapping[str, AskEntry]:
        """The allocations on nodes, by allocation key, in the order they were placed."""
        return self._running

    @property
    def last_change_ns(self) -> int:
        """The time of the last change of the record."""
        return self._last_change_ns

    def is_anything_open(self) -> bool:
        """Return whether an ask waits, or a placeholder has not been replaced or released."""
        return bool(self._waiting) or self._placeholders_placed > 0

    def capacity_changed(
        self, at_ns: int, resources: Mapping[str, int], sign: int, *, node_id: str = ""
    ) -> None:
        """Record that the cluster gained (sign 1) or lost (sign -1) the resources of a node."""
        self._touch(at_ns)
        self._nodes += sign
        for name, quantity in resources.items():
            self._capacity.setdefault(name, StepFunction()).change(at_ns, sign * quantity)
        if self.series is not None and sign > 0:
            self.series.packing.node_came(node_id, resources, at_ns)
        elif self.series is not None:
            self.series.packing.node_left(node_id, at_ns)

    def asked(self, key: str, entry: AskEntry, at_ns: int) -> None:
        """Record an ask."""
        assert key not in self._waiting, f"{key} waits already"
        self._touch(at_ns)
        self._waiting[key] = entry
        if self.series is not None:
            self.series.asked(key, entry, at_ns)
        if not entry.is_placeholder:
            self.first_ask_ns = at_ns if self.first_ask_ns is None else self.first_ask_ns
            tally = entry.account.tally
            tally.waiting += 1
            tally.submitted += 0 if entry.is_repeated else 1
            if self.jobs is not None:
                self.jobs.asked(entry, at_ns)

    def placed(self, key: str, at_ns: int, *, node_id: str = "") -> AskEntry:
        """Record that a waiting ask got its node."""
        self._touch(at_ns)
        asked = self._waiting.pop(key)
        entry = self._running[key] = asked.on_node(node_id, at_ns)
        if self.series is not None:
            self.series.waited(key, asked, at_ns)
            self.series.placed(key, entry, at_ns)
        if self.decisions is not None:
            self.decisions.placed(key, entry, at_ns)
        self._use(entry, at_ns, 1)
        if entry.is_placeholder:
            self._placeholders_placed += 1
        else:
            self._count_placed(entry, at_ns)
        return entry

    def _count_placed(self, entry: AskEntry, at_ns: int) -> None:
        """Count work that got its node, and its wait for the first one."""
        tally = entry.account.tally
        tally.waiting -= 1
        tally.running += 1
        if not entry.was_placed:
            tally.placed += 1
            if self.jobs is not None:
                self.jobs.placed(entry, at_ns)
            if not entry.is_recovered:
                tally.waits_ns.append(at_ns - entry.asked_at_ns)

    def completed(self, key: str, at_ns: int) -> None:
        """Record that work on a node completed, with its bounded slowdown.

        That is the time since it was asked for divided by its run time: at least one. As in reports on logs
        of jobs, work that ran less than ten seconds counts as having run ten seconds.
        """
        entry = self.stopped(key, at_ns)
        if entry.is_placeholder:
            return
        tally = entry.account.tally
        tally.completed += 1
        self.last_completion_ns = at_ns
        if self.jobs is not None:
            self.jobs.completed(entry, at_ns)
        if not entry.is_recovered:
            ran_ns = max(at_ns - entry.placed_at_ns, BOUND_NS)
            tally.slowdowns.append(max(1000, 1000 * (at_ns - entry.asked_at_ns) // ran_ns))

    def preempted(self, key: str, at_ns: int, *, message: str = "") -> AskEntry:
        """Record that the scheduler took work off its node; the next call records its state."""
        entry = self.stopped(key, at_ns)
        if self.series is not None:
            self.series.preempted(key, entry, at_ns, message, self._waiting)
        if self.decisions is not None:
            self.decisions.preempted(key, entry, at_ns)
        if not entry.is_placeholder:
            tally = entry.account.tally
            tally.preempted += 1
            for name, quantity in entry.resources.items():
                tally.lost[name] += quantity * (at_ns - entry.placed_at_ns)
            if self.jobs is not None:
                self.jobs.preempted(entry)
        return entry

    def stopped(self, key: str, at_ns: int) -> AskEntry:
        """Record that an allocation left its node; the next call records the state of the work."""
        self._touch(at_ns)
        entry = self._running.pop(key)
        if self.series is not None:
            self.series.left(key, entry, at_ns)
        self._use(entry, at_ns, -1)
        if entry.is_placeholder:
            self._placeholders_placed -= 1
        else:
            entry.account.tally.running -= 1
        return entry

    def taken_back(self, key: str, at_ns: int) -> AskEntry:
        """Record that an ask does not wait any longer; the next call records the state of the work."""
        self._touch(at_ns)
        entry = self._waiting.pop(key)
        if self.series is not None:
            self.series.waited(key, entry, at_ns)
        if not entry.is_placeholder:
            entry.account.tally.waiting -= 1
        return entry

    def resized(self, key: str, resources: Mapping[str, int], at_ns: int) -> None:
        """Record the new size of a waiting ask or of an allocation."""
        self._touch(at_ns)
        running = self._running.get(key)
        entries = self._waiting if running is None else self._running
        if running is not None:
            self._use(running, at_ns, -1)
        before = entries[key]
        entries[key] = replace(before, resources=resources)
        if self.series is not None:
            self.series.resized(key, before, entries[key], at_ns)
        if running is not None:
            self._use(entries[key], at_ns, 1)

    def given_up(self, entry: AskEntry) -> None:
        """Record that work that was stopped or taken back is not asked for again."""
        if not entry.is_placeholder:
            entry.account.tally.withdrawn += 1
            if self.jobs is not None:
                self.jobs.withdrawn(entry, self._last_change_ns)

    def rejected(self, key: str, at_ns: int, reason: str) -> None:
        """Record that the scheduler refuses a waiting ask."""
        entry = self.taken_back(key, at_ns)
        if self.decisions is not None:
            self.decisions.rejected(key, entry, at_ns, reason)
        if not entry.is_placeholder:
            entry.account.tally.rejected += 1
            self.remarks.rejections[reason] += 1
            if self.jobs is not None:
                self.jobs.rejected(entry, at_ns)

    def _use(self, entry: AskEntry, at_ns: int, sign: int) -> None:
        """Record the use of an allocation, or its end."""
        used = entry.account.tally.used
        for name, quantity in entry.resources.items():
            used.setdefault(name, StepFunction()).change(at_ns, sign * quantity)

    def _touch(self, at_ns: int) -> None:
        """Note the time of a change."""
        self._last_change_ns = at_ns


class DecisionKind(Enum):
    """The result of a decision about an ask or an allocation."""

    PLACED = "placed"
    PREEMPTED = "preempted"
    REJECTED = "rejected"


class Decision(NamedTuple):
    """One decision.

    `node_id` is the node of a placement or preemption, `reason` the reason of a rejection; each is empty
    otherwise. `queue` and `user` are those of the application at that moment.
    """

    at_ns: int
    kind: DecisionKind
    ask: str
    node_id: str
    reason: str
    application: str
    queue: str
    user: str

    def is_same(self, other: Decision) -> bool:
        """Return whether another run decides the same: at one moment, about one ask, with one result."""
        return self[:5] == other[:5]


@final
class Decisions:
    """All decisions of one simulation."""

    def __init__(self) -> None:
        self._all: list[Decision] = []

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def placed(self, key: str, entry: AskEntry, at_ns: int) -> None:
        """Record that an ask got its node."""
        self._add(at_ns, DecisionKind.PLACED, key, entry)

    def preempted(self, key: str, entry: AskEntry, at_ns: int) -> None:
        """Record that an allocation was taken off its node for another one."""
        self._add(at_ns, DecisionKind.PREEMPTED, key, entry)

    def rejected(self, key: str, entry: AskEntry, at_ns: int, reason: str) -> None:
        """Record that an ask is refused."""
        self._add(at_ns, DecisionKind.REJECTED, key, entry, reason)

    def _add(self, at_ns: int, kind: DecisionKind, key: str, entry: AskEntry, reason: str = "") -> None:
        owner = entry.account.owner
        self._all.append(
            Decision(at_ns, kind, key, entry.node_id, reason, entry.application_id, owner.queue, owner.user)
        )


def without_names(reason: str, *names: str) -> str:
    """Return a reason with `...` instead of names; a name inside another word stays."""
    for name in names:
        if name:
            reason = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "...", reason)
    return reason

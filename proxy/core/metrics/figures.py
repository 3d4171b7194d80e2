"""The figures of a scheduler: all that its metrics are made of, copied at a scrape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, final

from ....actors.engines.engine import EngineLoad
from ....model.applications.effects import ApplicationState
from ....model.policies.watching import PolicyFigures
from ....model.state.counters import Histogram, HistogramFigures
from ....model.values.messages import (
    AllocationPlaced,
    AllocationsRecovered,
    AllocationsRejected,
    AllocationsReleased,
    Announcement,
    ApplicationChanged,
    ApplicationsAnswered,
)
from ....model.values.states import ManagerState
from ....model.views.rows import PartitionFigures
from ...si.older_generation import EventsHappened


class ManagerFigures(NamedTuple):
    """Figures of one resource manager (RM)."""

    counts: SentCounts
    callbacks_waiting: int
    callbacks_failed: int
    """Callbacks that have raised since the RM registered."""
    state: ManagerState | None = None
    """`None` for one that is registering."""


class SchedulerFigures(NamedTuple):
    """The values behind the metrics of a scheduler, each partition as of one moment."""

    partitions: tuple[PartitionFigures, ...]
    managers: Mapping[str, ManagerFigures]
    """By the id of the RM."""
    load: EngineLoad
    events: EventCounters
    forgotten: SentCounts
    """Counts of messages to RMs that are forgotten."""
    policies: Mapping[str, PolicyFigures] = MappingProxyType({})
    """The counts of each policy."""
    waiting: Mapping[tuple[str, str], int] = MappingProxyType({})
    """The numbers of waiting applications, by the path of their queue and their first blocker."""
    oldest_waits_ns: Mapping[str, int] = MappingProxyType({})
    """The longest waits of first waiting asks, by the path of their queue."""
    configurations: Mapping[str, int] = MappingProxyType({})
    """How many configurations were `accepted` and `refused`."""

    @property
    def current(self) -> tuple[PartitionFigures, ...]:
        """The partitions of RMs that have not stopped: what they have is there."""
        stopped = {rm_id for rm_id, manager in self.managers.items() if manager.state is ManagerState.STOPPED}
        return tuple(partition for partition in self.partitions if partition.rm_id not in stopped)

    @property
    def counts(self) -> list[SentCounts]:
        """Counts of messages to all RMs that have ever registered."""
        return [self.forgotten, *(manager.counts for manager in self.managers.values())]


class MetricsSource(Protocol):
    """A scheduler as the exporter asks it."""

    def figures(self) -> SchedulerFigures:
        """Return what its metrics are made of.

        Raises:
            RequestError: the scheduler has been stopped.
        """


class SentCounts(NamedTuple):
    """Counts of messages to one RM, or to several together, at one moment; see `ManagerCounts`."""

    placed: int
    released: int
    rejected: int
    applications_new: int
    applications_accepted: int
    applications_rejected: int
    nodes_failed: int
    predicates: HistogramFigures


_ACCEPTED: Final = ApplicationState.ACCEPTED.value


@final
class ManagerCounts:
    """Counts of messages to one RM, over all its registrations.

    The thread that calls the RM counts, one at a time; any thread reads.
    """

    __slots__ = (
        "applications_accepted",
        "applications_new",
        "applications_rejected",
        "nodes_failed",
        "placed",
        "predicates",
        "rejected",
        "released",
    )

    def __init__(self) -> None:
        self.placed = 0
        self.released = 0
        self.rejected = 0
        self.applications_new = 0
        """Applications that were taken into a queue."""
        self.applications_accepted = 0
        """Applications that have entered the state Accepted."""
        self.applications_rejected = 0
        self.nodes_failed = 0
        """Nodes for partitions that do not exist. If two threads of the RM send such at once, one may not
        be counted."""
        self.predicates = Histogram()
        """How long each call of the RM's predicates took; likewise."""

    def count(self, announcement: Announcement | EventsHappened) -> None:
        """Count what is sent to the RM."""
        if isinstance(announcement, AllocationPlaced):
            self.placed += 1
        elif isinstance(announcement, AllocationsRecovered):
            self.placed += len(announcement.allocations)
        elif isinstance(announcement, ApplicationChanged):
            self.applications_accepted += announcement.state == _ACCEPTED
        elif isinstance(announcement, AllocationsReleased):
            self.released += len(announcement.releases)
        elif isinstance(announcement, AllocationsRejected):
            self.rejected += len(announcement.rejections)
        elif isinstance(announcement, ApplicationsAnswered):
            self.applications_new += len(announcement.accepted)
            self.applications_rejected += len(announcement.rejected)

    def add(self, others: ManagerCounts) -> None:
        """Add the counts of another RM; the times of its predicates are left out."""
        self.placed += others.placed
        self.released += others.released
        self.rejected += others.rejected
        self.applications_new += others.applications_new
        self.applications_accepted += others.applications_accepted
        self.applications_rejected += others.applications_rejected
        self.nodes_failed += others.nodes_failed

    def figures(self) -> SentCounts:
        """Return what was counted; integers that change meanwhile are of different moments."""
        return SentCounts(
            placed=self.placed,
            released=self.released,
            rejected=self.rejected,
            applications_new=self.applications_new,
            applications_accepted=self.applications_accepted,
            applications_rejected=self.applications_rejected,
            nodes_failed=self.nodes_failed,
            predicates=self.predicates.figures(),
        )

    def total(self) -> int:
        """Return how much was sent to the RM."""
        return (
            self.placed
            + self.released
            + self.rejected
            + self.applications_new
            + self.applications_accepted
            + self.applications_rejected
        )


@final
class ConfigurationCounts:
    """The configurations that resource managers or files have had accepted or refused."""

    def __init__(self) -> None:
        self.accepted = 0
        self.refused = 0
        self.last_refused = ("", "")
        """The resource manager of the last refusal, empty for a file, and why."""

    def refuse(self, rm_id: str, reason: str) -> None:
        """Count a refusal."""
        self.last_refused = (rm_id, reason)
        self.refused += 1

    def figures(self) -> dict[str, int]:
        """Return both numbers."""
        return {"accepted": self.accepted, "refused": self.refused}


@final
class Metrics:
    """The counts of one scheduler."""

    def __init__(self) -> None:
        self.configurations = ConfigurationCounts()
        self._managers: dict[str, ManagerCounts] = {}
        self.forgotten = ManagerCounts()
        """Counts of messages to RMs that are forgotten."""

    def of_manager(self, rm_id: str) -> ManagerCounts:
        """Return the counts of an RM, new ones for one that is not known."""
        return self._managers.setdefault(rm_id, ManagerCounts())

    def forget(self, rm_id: str) -> None:
        """Count what was sent to an RM to those that are forgotten: sums over all RMs do not fall."""
        counts = self._managers.pop(rm_id, None)
        if counts is not None:
            self.forgotten.add(counts)

    def managers(self) -> Mapping[str, ManagerCounts]:
        """Return the counts of all RMs, sorted by id."""
        return dict(sorted(self._managers.items()))

    def announced(self) -> int:
        """Return how much was sent to all RMs."""
        return sum(counts.total() for counts in [self.forgotten, *self._managers.values()])


@dataclass(frozen=True, slots=True)
class EventCounters:
    """Counts of kept and dropped events since the scheduler was made.

    Each event that is created is channeled or dropped (`not_channeled`). One that is channeled is processed:
    it gets an id. For a resource manager it is stored for the next delivery, and `collected` with it, or
    dropped since the store is full (`not_stored`). A stream that is too slow is dropped: `lost_to_streams`
    counts what such streams have not read.
    """

    created: int
    channeled: int
    not_channeled: int
    processed: int
    stored: int
    not_stored: int
    collected: int
    streams: int
    streams_dropped: int
    lost_to_streams: int

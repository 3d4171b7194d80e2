"""What a scheduler counts where it calls resource managers (RMs): plain integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, final

from ....model.applications.state import ApplicationState
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
from ...si.event_messages import EventsHappened


class SentCounts(NamedTuple):
    """What was sent to one RM, or to several together, at one moment; see `ManagerCounts`."""

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
    """What was sent to one RM, over all its registrations.

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
class Metrics:
    """The counts of one scheduler."""

    def __init__(self) -> None:
        self._managers: dict[str, ManagerCounts] = {}
        self.forgotten = ManagerCounts()
        """What was sent to RMs that are forgotten."""

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

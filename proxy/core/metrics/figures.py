"""The figures of a scheduler: all that its metrics are made of, copied at a scrape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ....actors.engines.engine import EngineLoad
from ....model.values.states import ManagerState
from ....model.views.rows import PartitionFigures
from .counts import SentCounts
from .event_counters import EventCounters


class ManagerFigures(NamedTuple):
    """What concerns one resource manager (RM)."""

    counts: SentCounts
    callbacks_waiting: int
    callbacks_failed: int
    """Callbacks that have raised since the RM registered."""
    state: ManagerState | None = None
    """`None` for one that is registering."""


class SchedulerFigures(NamedTuple):
    """What the metrics of a scheduler are made of, each partition as of one moment."""

    partitions: tuple[PartitionFigures, ...]
    managers: Mapping[str, ManagerFigures]
    """By the id of the RM."""
    load: EngineLoad
    events: EventCounters
    forgotten: SentCounts
    """What was sent to RMs that are forgotten."""

    @property
    def current(self) -> tuple[PartitionFigures, ...]:
        """The partitions of RMs that have not stopped: what they have is there."""
        stopped = {rm_id for rm_id, manager in self.managers.items() if manager.state is ManagerState.STOPPED}
        return tuple(partition for partition in self.partitions if partition.rm_id not in stopped)

    @property
    def counts(self) -> list[SentCounts]:
        """What was sent to all RMs that have ever registered."""
        return [self.forgotten, *(manager.counts for manager in self.managers.values())]


class MetricsSource(Protocol):
    """A scheduler as the exporter asks it."""

    def figures(self) -> SchedulerFigures:
        """Return what its metrics are made of.

        Raises:
            RequestError: the scheduler has been stopped.
        """

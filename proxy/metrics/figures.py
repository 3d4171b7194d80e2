"""The figures of a scheduler: all that its metrics are made of, copied at a scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...actors.engine_load import EngineLoad
    from ...model.partition_figures import PartitionFigures
    from .counts import ManagerCounts
    from .event_counters import EventCounters

__all__ = ["ManagerFigures", "MetricsSource", "SchedulerFigures"]


class ManagerFigures(NamedTuple):
    """What concerns one resource manager (RM)."""

    counts: ManagerCounts
    """Changes while it is read, by single integers."""
    callbacks_waiting: int
    callbacks_failed: int
    """Callbacks that have raised since the RM registered."""


class SchedulerFigures(NamedTuple):
    """What the metrics of a scheduler are made of, each partition as of one moment."""

    partitions: tuple[PartitionFigures, ...]
    managers: Mapping[str, ManagerFigures]
    """By the id of the RM."""
    load: EngineLoad
    events: EventCounters


class MetricsSource(Protocol):
    """A scheduler as the exporter asks it."""

    def figures(self) -> SchedulerFigures:
        """Return what its metrics are made of.

        Raises:
            RequestError: the scheduler has been stopped.
        """

"""What a scheduler shows of itself to those who watch over it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from ..metrics.figures import SchedulerFigures
from .questions import ask_each

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...actors.engine import Engine
    from ...model.partition import Partition
    from ...model.partition_figures import PartitionFigures
    from ..metrics.counts import Metrics
    from .managers import Managers

__all__ = ["MonitoringSide"]

T = TypeVar("T")


class MonitoringSide(ABC):
    """The methods of `Scheduler` for those who watch over it; `Scheduler` has the rest."""

    metrics: Metrics
    """What it counts where it calls resource managers."""
    _engine: Engine
    _managers: Managers

    @abstractmethod
    def _answer_question(self, question: str, answer: Callable[[Sequence[Partition]], T]) -> T:
        """Put a question to all partitions."""

    def figures(self) -> SchedulerFigures:
        """Return all that its metrics are made of, each partition as of one moment.

        Raises:
            RequestError: the scheduler has been stopped, or a predicate asks.
        """

        def ask(partitions: Sequence[Partition]) -> SchedulerFigures:
            load = self._engine.load(partitions)
            answers = ask_each(partitions, _figures)
            return SchedulerFigures(tuple(figures for _, figures in answers), self._managers.figures(), load)

        return self._answer_question("a question for figures", ask)


def _figures(partition: Partition) -> PartitionFigures:
    return partition.watching.figures()

"""What readers see of a scheduler: values that its partitions copy, in pieces of bounded size.

A question waits for the partition's turn, and takes little of it; readers make documents of the answer on
their own threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, final

from ...model.values.messages import short_partition_name
from .questions import ask_each

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...model.partition import Partition
    from ...model.partition_views import PartitionValues
    from .managers import Managers

__all__ = ["Build", "Views"]

T = TypeVar("T")


class Build(NamedTuple):
    """What a resource manager has said of its program when it registered."""

    rm_id: str
    information: Mapping[str, str]


class _AskAll(Protocol):
    def __call__(self, question: str, answer: Callable[[Sequence[Partition]], T]) -> T:
        """Put a question to all partitions.

        Raises:
            RequestError: The scheduler has been stopped, or a predicate asks.
        """


@final
class Views:
    """The views of one scheduler; any thread may use them.

    Every method raises `RequestError` if the scheduler has been stopped, or if a predicate asks.
    """

    def __init__(self, ask_all: _AskAll, managers: Managers, started_at_ns: int) -> None:
        self._ask_all = ask_all
        self._managers = managers
        self.started_at_ns = started_at_ns
        """When the scheduler started, nanoseconds since 1970."""

    def partition_names(self) -> tuple[str, ...]:
        """Return the full names of all partitions, such as `[rm]default`, by RM and name."""
        return self._ask_all("a look at the partitions", _names)

    def partitions(self) -> tuple[PartitionValues, ...]:
        """Return what each partition shows as a whole, by RM and name."""

        def answer(partitions: Sequence[Partition]) -> tuple[PartitionValues, ...]:
            return tuple(values for _, values in ask_each(partitions, _values))

        return self._ask_all("a look at the partitions", answer)

    def builds(self) -> tuple[Build, ...]:
        """Return what the registered RMs have said of their programs, by RM."""
        return tuple(
            Build(manager.rm_id, manager.build_information) for manager in self._managers.registered()
        )

    def find(self, name: str) -> str | None:
        """Return the full name of a partition, `None` if there is none of that name.

        Args:
            name: A short name, which stands for that of the first RM that has one; or a full one.
        """
        for full_name in self.partition_names():
            if name in (full_name, short_partition_name(full_name)):
                return full_name
        return None


def _names(partitions: Sequence[Partition]) -> tuple[str, ...]:
    return tuple(partition.name for partition in partitions)


def _values(partition: Partition) -> PartitionValues:
    return partition.reports.values()

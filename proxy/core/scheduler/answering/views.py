"""What readers see of a scheduler: values that its partitions copy, in pieces of bounded size.

A question waits for the partition's turn, and takes little of it; readers make documents of the answer on
their own threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar, final

from .....model.applications.report import ShownApplication
from .....model.cluster import Cluster
from .....model.configuration.schema import SchedulerConfig
from .....model.errors import RequestError
from .....model.limits.limits import HolderKind
from .....model.limits.usage_tree import UsageView
from .....model.partition import Partition
from .....model.placement.rules import PlacementRule
from .....model.state.partition_state import PartitionState
from .....model.values.messages import short_partition_name
from .....model.views.shown import (
    ListedApplications,
    PartitionValues,
    QueueView,
    ShownNode,
    holder_names_of,
    holders,
    listed_applications,
    node_ids,
    partition_values,
    placement_rules,
    shown_active,
    shown_completed,
    shown_nodes,
    shown_queue,
    shown_rejected,
)
from ...documents.paging import paged, size_of_application, size_of_node, size_of_usage
from ...health.checks import AskAll
from ..managers.managers import Managers
from .asking import ask_each

P = ParamSpec("P")
T = TypeVar("T")


class Build(NamedTuple):
    """What a resource manager has said of its program when it registered."""

    rm_id: str
    information: Mapping[str, str]


class UnknownPartitionError(RequestError):
    """A partition that there is not, or not any more."""


@final
class Views:
    """The views of one scheduler; any thread may use them.

    Partitions are named in full here, such as `[rm]default`; `find` knows short names. Pages are made one by
    one: what changes between two of them is shown in one state or the other.

    Every method raises `RequestError` if the scheduler has been stopped, or if a predicate asks, and
    `UnknownPartitionError` for a partition that there is not.
    """

    def __init__(self, ask_all: AskAll, cluster: Cluster, managers: Managers, started_at_ns: int) -> None:
        self._ask_all = ask_all
        self._cluster = cluster
        self._managers = managers
        self.started_at_ns = started_at_ns
        """When the scheduler started, nanoseconds since 1970."""

    # ----------------------------------------------------------------------------------- the cluster

    def partition_names(self) -> tuple[str, ...]:
        """Return the full names of all partitions.

        Those of the RM that registered first come first, by name; those of RMs that have stopped come last.
        """
        return self._ask_all("a look at the partitions", _names)

    def partitions(self) -> tuple[PartitionValues, ...]:
        """Return what each partition shows as a whole, in the same order."""

        def answer(partitions: Sequence[Partition]) -> tuple[PartitionValues, ...]:
            return tuple(values for _, values in ask_each(partitions, _values))

        return self._ask_all("a look at the partitions", answer)

    def builds(self) -> tuple[Build, ...]:
        """Return what the registered RMs have said of their programs, by RM."""
        return tuple(
            Build(manager.rm_id, manager.build_information) for manager in self._managers.registered()
        )

    def configurations(self) -> list[tuple[str, SchedulerConfig]]:
        """Return the configurations that are in effect, with their RMs, in the order of their partitions."""

        def answer(partitions: Sequence[Partition]) -> list[tuple[str, SchedulerConfig]]:
            order = list(dict.fromkeys(partition.rm_id for partition in partitions))
            return sorted(self._cluster.configurations(), key=lambda row: order.index(row[0]))

        return self._ask_all("a look at the configuration", answer)

    def find(self, name: str) -> str:
        """Return the full name of a partition.

        Args:
            name: A short name, which stands for the first of that name in `partition_names`; or a full one.
        """
        for full_name in self.partition_names():
            if name in (full_name, short_partition_name(full_name)):
                return full_name
        raise UnknownPartitionError(f"there is no partition {name!r}")

    # ---------------------------------------------------------------------------------- a partition

    def queue(self, partition: str, path: str, *, subtree: bool) -> tuple[QueueView, ...]:
        """Return a queue and those above it, as they are shown; nothing if there is no such queue."""
        return self._read(partition, shown_queue, path, subtree=subtree)

    def placement_rules(self, partition: str) -> tuple[PlacementRule, ...]:
        """Return the placement rules, in order."""
        return self._read(partition, placement_rules)

    def usages(self, partition: str, kind: HolderKind, name: str | None = None) -> list[UsageView]:
        """Return what users or groups have and may have, by name: one of them, or all (`None`), in pages."""
        names = self._read(partition, holder_names_of, kind) if name is None else (name,)
        pages = paged(names, lambda page: self._read(partition, holders, kind, page), size_of_usage)
        return [row for page in pages for row in page]

    def node(self, partition: str, node_id: str) -> ShownNode | None:
        """Return what a node shows, `None` if there is none of that id."""
        return next(iter(self._read(partition, shown_nodes, (node_id,))), None)

    def nodes(self, partition: str) -> Iterator[Sequence[ShownNode]]:
        """Yield what all nodes show, by id, in pages."""
        names = self._read(partition, node_ids)
        return paged(names, lambda page: self._read(partition, shown_nodes, page), size_of_node)

    def listed_applications(self, partition: str) -> ListedApplications:
        """Return which applications there are."""
        return self._read(partition, listed_applications)

    def active(self, partition: str, names: Sequence[str]) -> Iterator[Sequence[ShownApplication]]:
        """Yield what active applications show, in pages; those that are gone are left out."""
        return paged(names, lambda page: self._read(partition, shown_active, page), size_of_application)

    def completed(self, partition: str, serials: Sequence[int]) -> Iterator[Sequence[ShownApplication]]:
        """Yield what applications that have ended show, likewise."""
        return paged(serials, lambda page: self._read(partition, shown_completed, page), size_of_application)

    def rejected(self, partition: str, names: Sequence[str]) -> Iterator[Sequence[ShownApplication]]:
        """Yield what rejected applications show, likewise."""
        return paged(names, lambda page: self._read(partition, shown_rejected, page), size_of_application)

    def _read(
        self,
        name: str,
        function: Callable[Concatenate[PartitionState, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        def answer(partitions: Sequence[Partition]) -> T:
            for partition in partitions:
                if partition.name == name:
                    return partition.read(function, *args, **kwargs)
            raise UnknownPartitionError(f"there is no partition {name!r}")

        return self._ask_all("a look at a partition", answer)


def _names(partitions: Sequence[Partition]) -> tuple[str, ...]:
    return tuple(partition.name for partition in partitions)


def _values(partition: Partition) -> PartitionValues:
    return partition.read(partition_values)

"""Views of a scheduler for readers: values that its partitions copy, in pieces of bounded size.

A question waits for the partition's turn, and takes little of it; readers make documents of the answer on
their own threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from time import thread_time
from typing import Concatenate, Final, NamedTuple, ParamSpec, TypeVar, final

from .....model.applications.report import ShownApplication
from .....model.cluster import Cluster
from .....model.configuration.schema import SchedulerConfig
from .....model.errors import RequestError
from .....model.explanation.first_blockers import first_blockers, waiting_sums
from .....model.limits.limits import HolderKind
from .....model.limits.usage_tree import UsageView
from .....model.nodes.node import NodeFacts
from .....model.partition import Partition
from .....model.placement.rules import PlacementRule
from .....model.state.partition_state import PartitionState
from .....model.state.preemption_log import PreemptionRecord
from .....model.values.messages import short_partition_name
from .....model.views.rows import (
    Happened,
    LiveApplication,
    LiveEnded,
    LiveNames,
    NodeRow,
    Seen,
    happened,
    live_applications,
    live_ended,
    live_names,
    live_node_facts,
    live_nodes,
    live_queues,
    recent_preemptions,
)
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
from ...documents.declarations import paged, size_of_application, size_of_node, size_of_usage
from ...health import AskAll
from ..managers.manager_life import ManagerStatus
from ..managers.managers import Managers
from .questions import ask_each, matching

P = ParamSpec("P")
T = TypeVar("T")
N = TypeVar("N")
PIECE: Final = 500
"""How many rows a partition copies at a time."""


class Build(NamedTuple):
    """The description of a resource manager's program in its registration."""

    rm_id: str
    information: Mapping[str, str]


class UnknownPartitionError(RequestError):
    """A partition that does not exist, or no longer exists."""


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
        """Return the descriptions that the registered RMs have sent of their programs, by RM."""
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
        """Return a queue and those above it for display; nothing if the queue does not exist."""
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
        """Return the view of a node, `None` if it does not exist."""
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
        """Yield what ended applications show, in pages."""
        return paged(serials, lambda page: self._read(partition, shown_completed, page), size_of_application)

    def rejected(self, partition: str, names: Sequence[str]) -> Iterator[Sequence[ShownApplication]]:
        """Yield what rejected applications show, in pages."""
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


class LiveQueues(NamedTuple):
    """The queues of one partition."""

    partition: str
    """The full name, `[rm]default`."""
    time_ns: int
    queues: tuple[QueueView, ...]


class KnownRows(NamedTuple):
    """The rows of a partition that a reader has already. They do not change while it reads."""

    nodes: Mapping[str, NodeRow] = {}
    applications: Mapping[str, LiveApplication] = {}
    ended: Container[int] = ()
    """The serials of ended applications: their rows no longer change."""


class LiveRows(NamedTuple):
    """The rows of one partition; each piece of them is of one moment."""

    partition: str
    """The full name, `[rm]default`."""
    names: LiveNames
    nodes: tuple[NodeRow, ...]
    """Those that are not as the reader knows them."""
    applications: tuple[LiveApplication, ...]
    """Likewise."""
    queues: tuple[QueueView, ...]
    users: tuple[UsageView, ...] | None
    """`None` if they were not asked for."""
    groups: tuple[UsageView, ...] | None
    ended: tuple[LiveEnded, ...]
    """Those that the reader did not have."""
    manager: ManagerStatus | None
    """The state of its resource manager."""


class HappenedRows(NamedTuple):
    """What has happened in one partition since it was read, and its applications that have changed."""

    partition: str
    """The full name, `[rm]default`."""
    happened: Happened
    applications: tuple[LiveApplication, ...]
    seconds: float
    """The processor time of this reading in the turns of the partition."""


@final
class LiveView:
    """Reads what watchers see. Any thread may use it; nothing is kept between two readings."""

    def __init__(self, answer: AskAll, life_of: Callable[[str], ManagerStatus | None]) -> None:
        self._answer = answer
        self._life_of = life_of

    def rows(self, known: Callable[[str], KnownRows], *, with_usages: bool = True) -> tuple[LiveRows, ...]:
        """Return the rows of all partitions.

        Args:
            known: Returns what the reader has of a partition already.
            with_usages: Read what users and groups use, too.

        Raises:
            RequestError: The scheduler has been stopped, or a predicate asks.
        """

        def read(partition: Partition) -> LiveRows:
            manager = self._life_of(partition.rm_id)
            return _rows(partition, known(partition.name), manager, with_usages=with_usages)

        return self._answer("a look at everything", lambda partitions: tuple(_each(partitions, read)))

    def queues(self) -> tuple[LiveQueues, ...]:
        """Return the queues of all partitions.

        Raises:
            RequestError: The scheduler has been stopped, or a predicate asks.
        """

        def read(partition: Partition) -> LiveQueues:
            names = partition.read(live_names)
            return LiveQueues(partition.name, names.time_ns, _queues(partition, names))

        return self._answer("a look at the queues", lambda known: tuple(_each(known, read)))

    def happened(
        self, known: Callable[[str], tuple[Seen, Mapping[str, LiveApplication]]]
    ) -> tuple[HappenedRows, ...]:
        """Return what has happened in all partitions.

        Args:
            known: Returns how far the reader has read a partition, and the rows that it has.

        Raises:
            RequestError: The scheduler has been stopped, or a predicate asks.
        """

        def read(partition: Partition) -> HappenedRows:
            seen, applications = known(partition.name)
            timed = _TimedReads(partition)
            found = timed.read(happened, seen)
            rows = tuple(
                row
                for piece in _pieces(found.applications)
                for row in timed.read(live_applications, piece, applications)
            )
            return HappenedRows(partition.name, found, rows, timed.seconds)

        return self._answer("a look at what has happened", lambda each: tuple(_each(each, read)))

    def preemptions(self, rm_id: str, partition: str) -> tuple[PreemptionRecord, ...]:
        """Return the last preemptions of a partition, the oldest first.

        Raises:
            RequestError: The partition does not exist, the scheduler has been stopped, or a predicate asks.
        """

        def read(known: Sequence[Partition]) -> tuple[PreemptionRecord, ...]:
            answers = _each(matching(known, rm_id, partition), lambda one: one.read(recent_preemptions))
            return next(iter(answers), ())

        return self._answer("a look at the preemptions", read)

    def node(self, rm_id: str, partition: str, node_id: str) -> NodeFacts | None:
        """Return all that a node knows of itself, `None` if it is unknown.

        Raises:
            RequestError: The partition does not exist, the scheduler has been stopped, or a predicate asks.
        """

        def read(known: Sequence[Partition]) -> NodeFacts | None:
            answers = _each(
                matching(known, rm_id, partition), lambda found: found.read(live_node_facts, node_id)
            )
            return next(iter(answers), None)

        return self._answer("a look at a node", read)

    def reasons(self, rm_id: str, partition: str, application_ids: Sequence[str]) -> dict[str, str]:
        """Return the first blockers of applications in few words; those of which nothing waits are left out.

        Raises:
            RequestError: The partition does not exist, the scheduler has been stopped, or a predicate asks.
        """

        def read(known: Sequence[Partition]) -> dict[str, str]:
            found = matching(known, rm_id, partition)
            answers = _each(found, lambda one: one.read(first_blockers, application_ids))
            return {each.application_id: each.text() for each in next(iter(answers), ())}

        return self._answer("a look at what waits", read)

    def waiting(self, rm_id: str, partition: str) -> dict[str, int]:
        """Return how many applications wait for each first blocker, the most frequent one first.

        Raises:
            RequestError: The partition does not exist, the scheduler has been stopped, or a predicate asks.
        """

        def read(known: Sequence[Partition]) -> dict[str, int]:
            counts: Counter[str] = Counter()
            for answer in _each(matching(known, rm_id, partition), lambda one: one.read(waiting_sums)):
                for (_, words), count in answer.counts.items():
                    counts[words] += count
            return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))

        return self._answer("a look at what waits", read)


def _each(partitions: Sequence[Partition], read: Callable[[Partition], T]) -> list[T]:
    return [answer for _, answer in ask_each(partitions, read)]


def _rows(
    partition: Partition, known: KnownRows, manager: ManagerStatus | None, *, with_usages: bool
) -> LiveRows:
    names = partition.read(live_names)
    new = tuple(serial for serial in names.ended if serial not in known.ended)
    return LiveRows(
        partition.name,
        names,
        tuple(
            row for piece in _pieces(names.nodes) for row in partition.read(live_nodes, piece, known.nodes)
        ),
        tuple(
            row
            for piece in _pieces(names.applications)
            for row in partition.read(live_applications, piece, known.applications)
        ),
        _queues(partition, names),
        _usages(partition, "user", names.users) if with_usages else None,
        _usages(partition, "group", names.groups) if with_usages else None,
        tuple(row for piece in _pieces(new) for row in partition.read(live_ended, piece)),
        manager,
    )


@final
class _TimedReads:
    """Reads a partition, and adds up the processor time of that without the waits for its turns."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.seconds = 0.0

    def read(
        self, function: Callable[Concatenate[PartitionState, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def timed(state: PartitionState) -> T:
            began = thread_time()
            answer = function(state, *args, **kwargs)
            self.seconds += thread_time() - began
            return answer

        return self._partition.read(timed)


def _queues(partition: Partition, names: LiveNames) -> tuple[QueueView, ...]:
    return tuple(row for piece in _pieces(names.queues) for row in partition.read(live_queues, piece))


def _usages(partition: Partition, kind: HolderKind, names: tuple[str, ...]) -> tuple[UsageView, ...]:
    return tuple(row for piece in _pieces(names) for row in partition.read(holders, kind, piece))


def _pieces(names: tuple[N, ...]) -> Iterator[tuple[N, ...]]:
    return (names[start : start + PIECE] for start in range(0, len(names), PIECE))

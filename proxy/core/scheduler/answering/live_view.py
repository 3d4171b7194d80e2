"""What watchers of a scheduler read: rows of everything, in pieces between which the partitions work."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar, final

from .....model.limits.limits import HolderKind
from .....model.limits.usage_tree import UsageView
from .....model.nodes.node import NodeFacts
from .....model.partition import Partition
from .....model.views.rows import (
    LiveApplication,
    LiveEnded,
    LiveNames,
    NodeRow,
    live_applications,
    live_ended,
    live_names,
    live_node_facts,
    live_nodes,
    live_queues,
    live_reasons,
)
from .....model.views.shown import QueueView, holders
from ...health.checks import AskAll
from ..managers.manager_life import ManagerStatus
from .asking import ask_each, matching

T = TypeVar("T")
N = TypeVar("N")

PIECE: Final = 500
"""How many rows a partition copies at a time."""


class LiveQueues(NamedTuple):
    """The queues of one partition."""

    partition: str
    """The full name, `[rm]default`."""
    time_ns: int
    queues: tuple[QueueView, ...]


class KnownRows(NamedTuple):
    """What a reader has of a partition already. It changes nothing of it while it reads."""

    nodes: Mapping[str, NodeRow] = {}
    applications: Mapping[str, LiveApplication] = {}
    ended: Container[int] = ()
    """The serials of ended applications: their rows change no more."""


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

    def node(self, rm_id: str, partition: str, node_id: str) -> NodeFacts | None:
        """Return all that a node knows of itself, `None` if it is unknown.

        Raises:
            RequestError: There is no such partition, the scheduler has been stopped, or a predicate asks.
        """

        def read(known: Sequence[Partition]) -> NodeFacts | None:
            answers = _each(
                matching(known, rm_id, partition), lambda found: found.read(live_node_facts, node_id)
            )
            return next(iter(answers), None)

        return self._answer("a look at a node", read)

    def reasons(self, rm_id: str, partition: str, application_ids: Sequence[str]) -> dict[str, str]:
        """Return why applications wait, in the few words that cycles have noted most often.

        Those of which nothing waits, or nothing was noted, are left out.

        Raises:
            RequestError: There is no such partition, the scheduler has been stopped, or a predicate asks.
        """

        def read(known: Sequence[Partition]) -> dict[str, str]:
            found = matching(known, rm_id, partition)
            answers = _each(found, lambda one: one.read(live_reasons, application_ids))
            return dict(next(iter(answers), ()))

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


def _queues(partition: Partition, names: LiveNames) -> tuple[QueueView, ...]:
    return tuple(row for piece in _pieces(names.queues) for row in partition.read(live_queues, piece))


def _usages(partition: Partition, kind: HolderKind, names: tuple[str, ...]) -> tuple[UsageView, ...]:
    return tuple(row for piece in _pieces(names) for row in partition.read(holders, kind, piece))


def _pieces(names: tuple[N, ...]) -> Iterator[tuple[N, ...]]:
    return (names[start : start + PIECE] for start in range(0, len(names), PIECE))

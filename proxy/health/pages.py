"""Everything in a partition, read in pieces of bounded size, between which the partition works."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...model.applications.views import ShownApplication
    from ...model.partition import Partition
    from ...model.partition_views import ShownNode

__all__ = ["AskAll", "active_applications", "ended_applications", "nodes"]

T = TypeVar("T")
K = TypeVar("K")

_ITEMS: Final = 1_000
"""About how many asks and allocations a piece has: to copy so many takes some milliseconds."""
_NAMES_MAX: Final = 250
"""How many nodes or applications a piece has at most."""


class AskAll(Protocol):
    """How partitions are asked: between their turns, one question at a time."""

    def __call__(self, question: str, answer: Callable[[Sequence[Partition]], T]) -> T:
        """Put a question to all partitions; `question` says in words what it is.

        Raises:
            RequestError: the scheduler has been stopped, a predicate asks, or a partition has ended.
        """


def nodes(ask_all: AskAll, partition: Partition) -> Iterator[ShownNode]:
    """Yield what each node shows, by id."""
    reports = partition.reports
    names = ask_all("a look at the nodes", lambda _: reports.node_ids())
    yield from _pages(ask_all, names, reports.nodes, _size_of_node)


def active_applications(ask_all: AskAll, partition: Partition) -> Iterator[ShownApplication]:
    """Yield what each active application shows, in the order of their arrival."""
    reports = partition.reports
    listed = ask_all("a look at the applications", lambda _: reports.listed_applications())
    names = [entry.application_id for entry in listed.active]
    yield from _pages(ask_all, names, reports.active, _size_of_application)


def ended_applications(ask_all: AskAll, partition: Partition) -> Iterator[ShownApplication]:
    """Yield what each application shows that has ended and is kept, completed ones before rejected ones."""
    reports = partition.reports
    listed = ask_all("a look at the applications", lambda _: reports.listed_applications())
    yield from _pages(ask_all, sorted(listed.completed), reports.completed, _size_of_application)
    yield from _pages(ask_all, sorted(listed.rejected), reports.rejected, _size_of_application)


def _pages(
    ask_all: AskAll,
    keys: Sequence[K],
    question: Callable[[Sequence[K]], Sequence[T]],
    size: Callable[[T], int],
) -> Iterator[T]:
    """Ask for some keys after the other; how many at once follows from the sizes of the last answer."""
    start, step = 0, 8
    while start < len(keys):
        page = keys[start : start + step]
        rows = ask_all("a look at some of them", partial(_answer, question, page))
        yield from rows
        start += step
        items = sum(map(size, rows))
        wanted = _ITEMS * len(page) // max(items, len(page))
        step = max(1, min(wanted, 4 * step, _NAMES_MAX))


def _answer(question: Callable[[Sequence[K]], Sequence[T]], keys: Sequence[K], _: object) -> Sequence[T]:
    return question(keys)


def _size_of_node(node: ShownNode) -> int:
    return 1 + len(node.facts.allocations) + len(node.facts.foreign)


def _size_of_application(application: ShownApplication) -> int:
    return 1 + len(application.asks) + len(application.allocations)

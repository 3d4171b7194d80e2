"""Everything in a partition, read in pieces of bounded size, between which the partition works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from ..documents.paging import paged, size_of_application, size_of_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...model.applications.views import ShownApplication
    from ...model.partition import Partition
    from ...model.partition_views import ShownNode

__all__ = ["AskAll", "active_applications", "nodes"]

T = TypeVar("T")
K = TypeVar("K")


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
    for page in paged(names, _asking(ask_all, reports.nodes), size_of_node):
        yield from page


def active_applications(ask_all: AskAll, partition: Partition) -> Iterator[ShownApplication]:
    """Yield what each active application shows, in the order of their arrival."""
    reports = partition.reports
    listed = ask_all("a look at the applications", lambda _: reports.listed_applications())
    names = [entry.application_id for entry in listed.active]
    for page in paged(names, _asking(ask_all, reports.active), size_of_application):
        yield from page


def _asking(
    ask_all: AskAll, question: Callable[[Sequence[K]], Sequence[T]]
) -> Callable[[Sequence[K]], Sequence[T]]:
    """Return the question as one that waits for its turn."""
    return lambda keys: ask_all("a look at some of them", lambda _: question(keys))

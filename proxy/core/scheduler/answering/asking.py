"""What putting a question to partitions takes: to each of them, or to those that are meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from .....actors.runtime.errors import ActorEndedError
from .....model.errors import RequestError
from .....model.partition import Partition
from .....model.values.messages import short_partition_name

T = TypeVar("T")


class QueueAndUser(NamedTuple):
    """The queue that an application was placed in, its user, and the groups that were found of that user."""

    queue: str
    user: str
    groups: tuple[str, ...]


class NotKnownError(RequestError):
    """A question about something that the scheduler does not know."""


class UnavailableError(RequestError):
    """A request that cannot be carried out now, whatever it says: the same may succeed later."""


class StoppedError(UnavailableError):
    """A call of a scheduler that has been stopped."""


def ask_each(
    partitions: Sequence[Partition], question: Callable[[Partition], T]
) -> list[tuple[Partition, T]]:
    """Put a question to each partition; one that has ended meanwhile is left out."""
    answers = []
    for partition in partitions:
        with suppress(ActorEndedError):
            answers.append((partition, question(partition)))
    return answers


def matching(partitions: Sequence[Partition], rm_id: str | None, name: str | None) -> list[Partition]:
    """Return the partitions of an RM that have a name, short or full; `None` for either is any.

    Raises:
        NotKnownError: There is none.
    """
    found = [
        partition
        for partition in partitions
        if rm_id in (None, partition.rm_id)
        and name in (None, short_partition_name(partition.name), partition.name)
    ]
    if not found:
        known = ", ".join(each.name for each in partitions if rm_id in (None, each.rm_id)) or "none"
        wanted = f"[{'any' if rm_id is None else rm_id}]{'any' if name is None else name}"
        raise NotKnownError(f"there is no partition {wanted}; the partitions are: {known}")
    return found

"""What is written to a session: answers, callbacks, and the session's end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..si import licorne_v1_pb2 as v1
from ..si.merging import MERGED_MAX, merges_into

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.protobuf.message import Message

    from .statuses import StatusError

__all__ = ["Callback", "SessionEnd", "Written", "merged_callbacks", "size_of", "wrapped"]


class Callback(NamedTuple):
    """A callback that waits to be written."""

    rm_id: str
    name: str
    message: Message
    number: int


class SessionEnd(NamedTuple):
    """The end of the session, in the place of a message."""

    status: StatusError


Written: TypeAlias = v1.SchedulerMessage | Callback | SessionEnd


def size_of(item: Written) -> int:
    """Return how many bytes an item has on the wire, without its frame."""
    if isinstance(item, SessionEnd):
        return 0
    return (item if isinstance(item, v1.SchedulerMessage) else item.message).ByteSize()


def merged_callbacks(items: Iterable[Written]) -> Iterator[Written]:
    """Yield items with neighbouring responses of one kind merged."""
    last: Callback | None = None
    count = 0
    for item in items:
        if not isinstance(item, Callback) or item.number:
            if last is not None:
                yield last
                last = None
            yield item
        elif (
            last is not None
            and count < MERGED_MAX
            and last[:2] == item[:2]
            and merges_into(item.message, last.message)
        ):
            last.message.MergeFrom(item.message)
            count += 1
        else:
            if last is not None:
                yield last
            last, count = item, 1
    if last is not None:
        yield last


def wrapped(item: v1.SchedulerMessage | Callback) -> v1.SchedulerMessage:
    """Return the message for an answer or a callback."""
    if isinstance(item, v1.SchedulerMessage):
        return item
    message = v1.SchedulerMessage(rm_id=item.rm_id, callback=item.number)
    getattr(message, item.name).CopyFrom(item.message)
    return message

"""What is written to a session: answers, callbacks, and the session's end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..si import licorne_v1_pb2 as v1
from ..si.merging import merged

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
    return merged(items, _message_of, _are_alike)


def _message_of(item: Written) -> Message:
    assert isinstance(item, Callback), "only callbacks are merged: please report"
    return item.message


def _are_alike(last: Written, item: Written) -> bool:
    """Return whether both are callbacks of one kind for one RM, whose returns are not waited for."""
    if not isinstance(last, Callback) or not isinstance(item, Callback):
        return False
    return not last.number and not item.number and last[:2] == item[:2]


def wrapped(item: v1.SchedulerMessage | Callback) -> v1.SchedulerMessage:
    """Return the message for an answer or a callback."""
    if isinstance(item, v1.SchedulerMessage):
        return item
    message = v1.SchedulerMessage(rm_id=item.rm_id, callback=item.number)
    getattr(message, item.name).CopyFrom(item.message)
    return message

"""Neighbouring messages of one kind as one message, with the same entries in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from google.protobuf.message import Message

T = TypeVar("T")

MERGED_MAX: Final = 256
"""How many messages are merged into one at most."""
MERGED_BYTES_MAX: Final = 1 << 20
"""How many bytes they have together: many clients take messages of 4 MiB at most, and a server of 16 MiB."""


def merges_into(message: Message, into: Message) -> bool:
    """Return whether `into.MergeFrom(message)` gives a message that says both, in their order.

    Both have entries of one kind alone; two kinds in one message have no order among each other.
    """
    first, second = into.ListFields(), message.ListFields()
    if len(first) != len(second):
        return False
    lists = 0
    for (field, value), (other, another) in zip(first, second, strict=True):
        if field.number != other.number:
            return False
        if isinstance(value, bool | int | str | bytes):
            if value != another:
                return False
            continue
        lists += 1
        if isinstance(value, Message) and not merges_into(another, value):
            return False
    return lists == 1


def merged(
    items: Iterable[T], message_of: Callable[[T], Message], alike: Callable[[T, T], bool]
) -> Iterator[T]:
    """Yield items with neighbours merged; the message of the first of them is changed.

    Args:
        items: What is sent, in order.
        message_of: Returns the message of an item that is like another one.
        alike: Returns whether two items may be one, as far as their messages may.
    """
    last: T | None = None
    count = merged_bytes = 0
    for item in items:
        if last is not None and count < MERGED_MAX and alike(last, item):
            message, into = message_of(item), message_of(last)
            merged_bytes = (merged_bytes or into.ByteSize()) + message.ByteSize()
            if merged_bytes <= MERGED_BYTES_MAX and merges_into(message, into):
                into.MergeFrom(message)
                count += 1
                continue
        if last is not None:
            yield last
        last, count, merged_bytes = item, 1, 0
    if last is not None:
        yield last

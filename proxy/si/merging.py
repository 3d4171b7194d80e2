"""Neighbouring messages of one kind as one message, with the same entries in the same order."""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

__all__ = ["MERGED_MAX", "merges_into"]

MERGED_MAX: Final = 256
"""How many messages are merged into one at most."""


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

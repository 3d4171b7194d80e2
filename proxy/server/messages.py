"""Messages on their way: read from the wire, and merged before they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from ..si.merging import MERGED_MAX, merges_into
from .statuses import StatusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["merged", "parsed"]

M = TypeVar("M", bound=Message)
T = TypeVar("T")


def parsed(kind: type[M], data: bytes) -> M:
    """Read a message.

    Raises:
        StatusError: The bytes are none (INVALID_ARGUMENT).
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        text = f"{len(data)} bytes that are no {kind.DESCRIPTOR.full_name}: {data[:16].hex(' ')}"
        raise StatusError(grpc.StatusCode.INVALID_ARGUMENT, f"{text} ({error})") from error


def merged(items: Iterable[T]) -> Iterator[T]:
    """Yield items with neighbours merged that are responses of one kind; the first of them is changed."""
    last: T | None = None
    count = 0
    for item in items:
        if (
            isinstance(item, Message)
            and isinstance(last, Message)
            and count < MERGED_MAX
            and merges_into(item, last)
        ):
            last.MergeFrom(item)
            count += 1
            continue
        if last is not None:
            yield last
        last, count = item, 1
    if last is not None:
        yield last

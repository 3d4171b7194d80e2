"""Messages of `si.v1`: how large one may be, and neighbours of one kind as one message.

Entries for several messages are divided by `batches`: by their number, and by their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

from google.protobuf.message import Message

from . import si_pb2 as si

T = TypeVar("T")
MERGED_MAX: Final = 256
"""How many messages are merged into one at most."""
MERGED_BYTES_MAX: Final = 1 << 20
"""How many bytes they have together: many clients take messages of 4 MiB at most, and a server of 16 MiB."""
_Entry = TypeVar("_Entry")
_SentMessage = TypeVar("_SentMessage", bound=Message)
SiRequest: TypeAlias = "si.NodeRequest | si.ApplicationRequest | si.AllocationRequest"
MESSAGE_BYTES_MAX: Final = 16 << 20
"""How many bytes a message to a server may have; the server ends the stream of a larger one."""
BATCH_BYTES_MAX: Final = 4 << 20
"""How many bytes the entries of one message have where there is a choice; one larger entry goes alone."""


def merges_into(message: Message, into: Message) -> bool:
    """Return whether `into.MergeFrom(message)` gives a message that contains both, in their order.

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
        items: The entries, in order.
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


def batches(
    entries: Sequence[_Entry], size_max: int, bytes_of: Callable[[_Entry], int]
) -> Iterator[Sequence[_Entry]]:
    """Yield the entries in order, `size_max` at once, or fewer that have `BATCH_BYTES_MAX` together."""
    start = 0
    batch_bytes = 0
    for position, entry in enumerate(entries):
        entry_bytes = bytes_of(entry)
        if position > start and (position - start >= size_max or batch_bytes + entry_bytes > BATCH_BYTES_MAX):
            yield entries[start:position]
            start, batch_bytes = position, 0
        batch_bytes += entry_bytes
    if start < len(entries):
        yield entries[start:]


def message_batches(entries: Sequence[_SentMessage], size_max: int) -> Iterator[Sequence[_SentMessage]]:
    """Yield messages as `batches` does."""
    return batches(entries, size_max, _bytes_of)


def _bytes_of(message: Message) -> int:
    return message.ByteSize()


def largest_entry(request: Message) -> str:
    """Return the kind, the name and the size of the largest entry of a request; empty without entries."""
    found = max(_entries(request), key=lambda entry: entry[2], default=None)
    return "" if found is None else _described(*found)


def entry_beyond(request: Message, bytes_max: int) -> str | None:
    """Return the first entry of a request that has more bytes, as `largest_entry` does; if any."""
    for entry in _entries(request):
        if entry[2] > bytes_max:
            return _described(*entry)
    return None


def _described(kind: str, name: str, size_bytes: int) -> str:
    return f"{kind} {name!r:.100} has {size_bytes:,} bytes"


def _entries(request: Message) -> Iterator[tuple[str, str, int]]:
    """Yield what kind of entry each is, its name, and how many bytes it has."""
    if isinstance(request, si.NodeRequest):
        for node in request.nodes:
            yield "node", node.nodeID, node.ByteSize()
    elif isinstance(request, si.ApplicationRequest):
        for new in request.new:
            yield "application", new.applicationID, new.ByteSize()
        for removal in request.remove:
            yield "the removal of application", removal.applicationID, removal.ByteSize()
    elif isinstance(request, si.AllocationRequest):
        for allocation in request.allocations:
            yield "allocation", allocation.allocationKey, allocation.ByteSize()
        for release in request.releases.allocationsToRelease:
            yield "the release of allocation", release.allocationKey, release.ByteSize()

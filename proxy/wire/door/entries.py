"""The parts of the record of a partition: creations, asks as bytes, and names that are gone.

A scheduler answers each creation once, in the order of the requests: it accepts or rejects it. Under one id
there may be several creations without an answer: the first may be invalid and the second valid, or the second
is rejected because the first one exists. So the pending answers are kept in order, and each answer decides
what exists.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, final

from ...si import si_pb2 as si

UNANSWERED: Final = -1
_SIZE_TAG: Final = si.Allocation.DESCRIPTOR.fields_by_name["resourcePerAlloc"].number << 3 | 2
"""The tag byte of a size in the bytes of an ask; the length follows."""
_KEPT_SECONDS: Final = 60.0
"""The minimum time for which a name is kept; a worker that takes longer to answer is lost."""
_FEW: Final = 4_096
"""The number of names that are kept regardless of their age."""
_NAMES_MAX: Final = 262_144
"""The largest number of names that are kept in that time; beyond it names are unknown, and not doubted."""


class _DueKind(Enum):
    """The subject of a pending answer."""

    NEW = "It is there if it is accepted"
    ENDED = "The resource manager (RM) has ended it before the answer: only the RM needs to hear that"
    INVALID = "A change that is going to be rejected: nothing follows from that"
    AGAIN = "It was accepted before, and is created again in a recovery: the RM is not to hear of it twice"


@final
class _Due:
    """A pending answer."""

    __slots__ = ("changes", "entry", "is_change", "kind")

    def __init__(self, kind: _DueKind, entry: bytes, *, is_change: bool = False) -> None:
        self.kind = kind
        self.is_change = is_change
        """Whether it changes an existing entry, if it is accepted."""
        self.entry = entry
        """The bytes that were sent; for a new entry with the changes that were sent later."""
        self.changes: list[bytes] = []
        """The changes that were sent later: rejected if this is rejected, and nothing of the id exists."""


@final
@dataclass(frozen=True, slots=True)
class CreationsAgain:
    """The creations of a recovery."""

    entries: tuple[bytes, ...]
    """The existing and expected entries, one for each id."""
    late: tuple[bytes, ...]
    """Creations that are sent afterwards, in order: the RM waits for the reasons of their rejections."""
    accepted: tuple[str, ...]
    """The ids of entries that have ended in the meantime: the RM waits for their acceptance."""


@final
class Creations:
    """The existing entries by id, as bytes, and the pending answers; the owner guards it."""

    def __init__(self) -> None:
        self._there: dict[str, bytes] = {}
        self._due: dict[str, list[_Due]] = {}

    @property
    def there(self) -> Mapping[str, bytes]:
        """The accepted entries that have not ended, by id."""
        return MappingProxyType(self._there)

    def is_known(self, name: str) -> bool:
        """Return whether an entry of this id exists, or may exist soon."""
        return name in self._there or any(item.kind is _DueKind.NEW for item in self._due.get(name, ()))

    # ------------------------------------------------------------------------------------- requests

    def create(self, name: str, entry: bytes, *, is_change: bool = False) -> None:
        """Note a creation before it is sent, or a change of an existing entry in the form of a creation."""
        self._due.setdefault(name, []).append(_Due(_DueKind.NEW, entry, is_change=is_change))

    def expect_rejection(self, name: str, entry: bytes) -> None:
        """Note a change that will be rejected, before it is sent."""
        self._due.setdefault(name, []).append(_Due(_DueKind.INVALID, entry))

    def change(self, name: str, entry: bytes, fold: Callable[[bytes], bytes]) -> None:
        """Change an entry that exists or may exist soon; a change of any other one will be rejected."""
        if name in self._there:
            self._there[name] = fold(self._there[name])
        last = None
        for item in self._due.get(name, ()):
            if item.kind is _DueKind.NEW:
                item.entry = fold(item.entry)
            if item.kind in (_DueKind.NEW, _DueKind.AGAIN):
                last = item
        if last is not None:
            last.changes.append(entry)
        elif name not in self._there:
            self.expect_rejection(name, entry)

    def end(self, name: str) -> None:
        """Note that the RM ends the entry with this id."""
        was_there = self._there.pop(name, None) is not None
        for item in self._due.get(name, ()):
            if was_there:
                item.changes.clear()  # They were changes of the ended entry.
            if item.kind is _DueKind.NEW:
                item.kind = _DueKind.ENDED

    # -------------------------------------------------------------------------------------- answers

    def not_due(self, accepted: Sequence[str], rejected: Sequence[str]) -> str | None:
        """Return the first name whose answer is not pending, `None` if all are."""
        accepts, answers = Counter(accepted), Counter((*accepted, *rejected))
        for name, count in answers.items():
            due = self._due.get(name, ())
            may_be = sum(item.kind is not _DueKind.INVALID for item in due)
            if accepts[name] > may_be or count > len(due) + sum(len(item.changes) for item in due):
                return name
        return None

    def accept(self, name: str) -> bool:
        """Process an acceptance; return whether the RM gets it."""
        item = self._take(name, rejected=False)
        if item is None:
            return True
        if item.kind is _DueKind.NEW and (item.is_change or name not in self._there):
            self._there[name] = item.entry
        return item.kind is not _DueKind.AGAIN

    def reject(self, name: str, *, is_invalid: bool = False) -> None:
        """Process a rejection, which the RM always gets.

        Args:
            name: The id of the rejected entry.
            is_invalid: Whether no entry of this id could have been accepted for the given reason. Then it is
                not the answer to a valid creation if another answer is pending. Rejections because of a
                partition may come before earlier answers of the partition.
        """
        item = self._take(name, rejected=True, prefer_invalid=is_invalid)
        if item is None:
            return
        if item.kind is _DueKind.AGAIN:
            self._there.pop(name, None)
        if item.changes and name not in self._there:
            changes = [_Due(_DueKind.INVALID, entry) for entry in item.changes]
            self._due[name] = [*changes, *self._due.get(name, ())]

    def forget(self, name: str) -> None:
        """Remove an entry that the scheduler has ended."""
        self._there.pop(name, None)

    def _take(self, name: str, *, rejected: bool, prefer_invalid: bool = False) -> _Due | None:
        items = self._due.get(name)
        if items is None:
            return None
        invalid = [item.kind is _DueKind.INVALID for item in items]
        if prefer_invalid in invalid:
            place = invalid.index(prefer_invalid)
        elif rejected:
            place = 0
        else:
            return None
        item = items.pop(place)
        if not items:
            del self._due[name]
        return item

    # ------------------------------------------------------------------------------------- recovery

    def begin_recovery(self) -> CreationsAgain:
        """Return the entries for a scheduler without state; its answers are pending from now on."""
        entries: list[bytes] = []
        late: list[bytes] = []
        accepted: list[str] = []
        due, self._due = self._due, {}
        for name, entry in self._there.items():
            entries.append(entry)
            self._due[name] = [_Due(_DueKind.AGAIN, entry)]
        for name, item in _in_order(due):
            if item.kind is _DueKind.ENDED:
                accepted.append(name)
            elif item.kind is _DueKind.NEW and name not in self._due:
                entries.append(item.entry)
                item.changes.clear()
                self._due[name] = [item]
            elif item.kind is not _DueKind.AGAIN:
                late.append(item.entry)
                self._due.setdefault(name, []).append(item)
        return CreationsAgain(tuple(entries), tuple(late), tuple(accepted))


def _in_order(due: Mapping[str, list[_Due]]) -> Iterator[tuple[str, _Due]]:
    """Yield all pending entries; of each id the creation comes first, since it is sent first."""
    for name, items in due.items():
        for item in sorted(items, key=lambda item: item.kind is not _DueKind.NEW):
            yield name, item


@final
class HeldEntry:
    """An ask, or an allocation. The class is plain, because there are very many of them."""

    __slots__ = ("ask", "node", "session")

    def __init__(self, ask: bytes, node: str, session: int) -> None:
        self.ask = ask
        self.node = node
        """The node of the allocation; empty for a waiting ask."""
        self.session = session
        """The session that asked the RM to end it, 0 without such a session; `UNANSWERED` if the RM has
        placed it itself and the worker has not confirmed it."""


@final
@dataclass(frozen=True, slots=True)
class HeldAllocations:
    """The contents for another worker, and the messages that the RM gets before that."""

    allocations: tuple[bytes, ...]
    """The allocations, with those of others: messages `Allocation`."""
    asks: tuple[bytes, ...]
    """The asks: messages `Allocation`."""
    late: tuple[si.AllocationRequest, ...]
    """Requests that are sent afterwards, in order: the RM waits for an answer to them."""
    released: tuple[si.AllocationRelease, ...]
    """The allocations that have ended with the worker."""


def without_node(data: bytes) -> bytes:
    """Return an allocation that the RM had placed itself as an ask."""
    ask = si.Allocation.FromString(data)
    ask.ClearField("nodeID")
    return ask.SerializeToString()


def placed_again(entry: HeldEntry) -> bytes:
    """Return an ask or allocation at its present node: the RM may have sent it without one, or with another.

    If a field occurs twice in the bytes of a message, the last one counts.
    """
    return entry.ask + si.Allocation(nodeID=entry.node).SerializeToString()


def has_size(entry: HeldEntry, size: si.Resource) -> bool:
    """Return whether a worker reports the size of an entry; types with the quantity zero do not count."""
    data = size.SerializeToString()
    if len(data) < 128 and b"%c%c%b" % (_SIZE_TAG, len(data), data) in entry.ask:
        return True  # This is the usual case: one type, or few in the same order.
    return _quantities(si.Allocation.FromString(entry.ask).resourcePerAlloc) == _quantities(size)


def _quantities(size: si.Resource) -> dict[str, int]:
    return {name: quantity.value for name, quantity in size.resources.items() if quantity.value}


@final
class RecentNames:
    """Names of asks, applications or nodes that are gone; the owner guards it.

    There are two generations. When the younger one has many names and is old enough, the older one is
    dropped.

    Args:
        now_seconds: Returns a monotonic time.
    """

    def __init__(self, now_seconds: Callable[[], float] = time.monotonic) -> None:
        self._now_seconds = now_seconds
        self._young: set[Hashable] = set()
        self._old: set[Hashable] = set()
        self._since = now_seconds()
        self._is_beyond = False
        """Whether this generation got more names than are kept."""
        self._was_beyond = False

    def add(self, name: Hashable) -> None:
        """Keep a name."""
        if len(self._young) >= _FEW and self._now_seconds() - self._since >= _KEPT_SECONDS:
            self._old, self._young = self._young, set()
            self._was_beyond, self._is_beyond = self._is_beyond, False
            self._since = self._now_seconds()
        if len(self._young) < _NAMES_MAX:
            self._young.add(name)
        else:
            self._is_beyond = True

    def may_have(self, name: Hashable) -> bool:
        """Return whether a name is kept, or may have been forgotten because there were too many."""
        return name in self._young or name in self._old or self._is_beyond or self._was_beyond

    def clear(self) -> None:
        """Forget all names."""
        self._young.clear()
        self._old.clear()
        self._is_beyond = self._was_beyond = False


@final
class ForeignAllocations:
    """Allocations of others (tag `foreign`), which have no answers, by node and key; the owner guards it.

    Args:
        gone: Gets the identities of those that are dropped, without an application.
    """

    def __init__(self, gone: RecentNames) -> None:
        self._gone = gone
        self._by_node: dict[str, dict[str, bytes]] = {}
        self.nodes: Final[dict[str, str]] = {}
        """The node of each, by key."""

    def __contains__(self, key: str) -> bool:
        """Return whether an allocation with this key is there."""
        return key in self.nodes

    def add(self, key: str, node: str, entry: bytes) -> None:
        """Add an allocation with a new key: a message `Allocation`."""
        self.nodes[key] = node
        self._by_node.setdefault(node, {})[key] = entry

    def drop(self, key: str) -> None:
        """Drop an allocation; an unknown key is ignored."""
        node = self.nodes.pop(key, None)
        if node is not None:
            self._gone.add(("", key))
            on_node = self._by_node[node]
            del on_node[key]
            if not on_node:
                del self._by_node[node]

    def drop_node(self, node: str) -> None:
        """Drop all allocations on a node."""
        for key in [*self._by_node.get(node, ())]:
            self.drop(key)

    def split(self, has_node: Callable[[str], bool]) -> tuple[list[bytes], list[bytes]]:
        """Return all allocations, first those on existing nodes."""
        there: list[bytes] = []
        elsewhere: list[bytes] = []
        for node, on_node in self._by_node.items():
            found = there if has_node(node) else elsewhere
            found += on_node.values()
        return there, elsewhere

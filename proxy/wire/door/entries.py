"""What the record of a partition consists of: creations, asks as bytes, and names that are gone.

A scheduler answers each creation once, in the order of the requests: it accepts or rejects it. Under one id
there may be several without an answer: the first may be invalid and the second good, or the second is
rejected because the first is there. So what is due is kept in order, and the answer decides what is there.
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
"""The byte that begins a size in the bytes of an ask; that of its length follows."""
_KEPT_SECONDS: Final = 60.0
"""How long a name is kept at least: an answer that is under way for longer is of a worker that is lost."""
_FEW: Final = 4_096
"""How many names are kept however old they are."""
_NAMES_MAX: Final = 262_144
"""How many are kept in that time; of more than these nothing is known, and nothing is doubted."""


class _DueKind(Enum):
    """What an answer that is due is about."""

    NEW = "It is there if it is accepted"
    ENDED = "The resource manager (RM) has ended it before the answer: only the RM needs to hear that"
    INVALID = "A change that is going to be rejected: nothing follows from that"
    AGAIN = "It was accepted before, and is created again in a recovery: the RM is not to hear of it twice"


@final
class _Due:
    """An answer that is due."""

    __slots__ = ("changes", "entry", "is_change", "kind")

    def __init__(self, kind: _DueKind, entry: bytes, *, is_change: bool = False) -> None:
        self.kind = kind
        self.is_change = is_change
        """It changes what is there, if it is accepted."""
        self.entry = entry
        """What was sent; of what is new with the changes that were sent later."""
        self.changes: list[bytes] = []
        """These changes: they are rejected if this is, and nothing of the id is there."""


@final
@dataclass(frozen=True, slots=True)
class CreationsAgain:
    """What is created again in a recovery."""

    entries: tuple[bytes, ...]
    """What is there, or to be there, once for each id."""
    late: tuple[bytes, ...]
    """What is sent afterwards, in order: the RM waits for an answer that says why it is rejected."""
    accepted: tuple[str, ...]
    """The ids of what has ended meanwhile: the RM waits to hear that it was accepted."""


@final
class Creations:
    """What is there by id, as bytes, and the answers that are due; its owner guards it."""

    def __init__(self) -> None:
        self._there: dict[str, bytes] = {}
        self._due: dict[str, list[_Due]] = {}

    def __len__(self) -> int:
        """Return how many ids have something that is there."""
        return len(self._there)

    @property
    def there(self) -> Mapping[str, bytes]:
        """What was accepted and has not ended, by id."""
        return MappingProxyType(self._there)

    def is_known(self, name: str) -> bool:
        """Return whether something of this id is there, or may be there soon."""
        return name in self._there or any(item.kind is _DueKind.NEW for item in self._due.get(name, ()))

    # ------------------------------------------------------------------------------------- requests

    def create(self, name: str, entry: bytes, *, is_change: bool = False) -> None:
        """Note a creation that is about to be sent, or a change of what is there in the form of one."""
        self._due.setdefault(name, []).append(_Due(_DueKind.NEW, entry, is_change=is_change))

    def expect_rejection(self, name: str, entry: bytes) -> None:
        """Note a change that is about to be sent and is going to be rejected."""
        self._due.setdefault(name, []).append(_Due(_DueKind.INVALID, entry))

    def change(self, name: str, entry: bytes, fold: Callable[[bytes], bytes]) -> None:
        """Change what is there, or may be there soon; a change of what is neither is going to be rejected."""
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
        """Note that the RM ends what has this id."""
        was_there = self._there.pop(name, None) is not None
        for item in self._due.get(name, ()):
            if was_there:
                item.changes.clear()  # They were of that.
            if item.kind is _DueKind.NEW:
                item.kind = _DueKind.ENDED

    # -------------------------------------------------------------------------------------- answers

    def not_due(self, accepted: Sequence[str], rejected: Sequence[str]) -> str | None:
        """Return the first name whose answer is not due, `None` if all are."""
        accepts, answers = Counter(accepted), Counter((*accepted, *rejected))
        for name, count in answers.items():
            due = self._due.get(name, ())
            may_be = sum(item.kind is not _DueKind.INVALID for item in due)
            if accepts[name] > may_be or count > len(due) + sum(len(item.changes) for item in due):
                return name
        return None

    def accept(self, name: str) -> bool:
        """Take the news that something was accepted; return whether the RM is to hear it."""
        item = self._take(name, rejected=False)
        if item is None:
            return True
        if item.kind is _DueKind.NEW and (item.is_change or name not in self._there):
            self._there[name] = item.entry
        return item.kind is not _DueKind.AGAIN

    def reject(self, name: str, *, is_invalid: bool = False) -> None:
        """Take the news that something was rejected, which the RM always hears.

        Args:
            name: Its id.
            is_invalid: Whether nothing of this id could have been accepted for the reason that is given: then
                it is not the answer to what may be accepted, if another one is due. What is refused for its
                partition overtakes what the partition answers.
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
        """Drop what is there: the scheduler has ended it."""
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
        """Return what a scheduler gets that knows nothing; answers to that are due from now on."""
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
    """Yield all that is due; of each id what is new comes first, since it is sent first."""
    for name, items in due.items():
        for item in sorted(items, key=lambda item: item.kind is not _DueKind.NEW):
            yield name, item


@final
class HeldEntry:
    """An ask, or an allocation. Plain, because there are very many."""

    __slots__ = ("ask", "node", "session")

    def __init__(self, ask: bytes, node: str, session: int) -> None:
        self.ask = ask
        self.node = node
        """Where it is; empty while it waits."""
        self.session = session
        """The session that asked the RM to end it, 0 if none did; `UNANSWERED` if the RM has placed it
        itself, and the worker has not said that it is there."""


@final
@dataclass(frozen=True, slots=True)
class HeldAllocations:
    """What another worker gets, and what the RM is to hear before that."""

    allocations: tuple[bytes, ...]
    """What runs, and what others run: messages `Allocation`."""
    asks: tuple[bytes, ...]
    """Likewise."""
    late: tuple[si.AllocationRequest, ...]
    """What is sent afterwards, in order: the RM waits for an answer to it."""
    released: tuple[si.AllocationRelease, ...]
    """What has ended with the worker."""


def without_node(data: bytes) -> bytes:
    """Return what the RM had placed itself as an ask."""
    ask = si.Allocation.FromString(data)
    ask.ClearField("nodeID")
    return ask.SerializeToString()


def placed_again(entry: HeldEntry) -> bytes:
    """Return an ask or allocation where it is now: the RM may have sent it elsewhere, or as placed.

    Of a field that stands twice in the bytes of a message the last one counts.
    """
    return entry.ask + si.Allocation(nodeID=entry.node).SerializeToString()


def has_size(entry: HeldEntry, size: si.Resource) -> bool:
    """Return whether a worker names the size of an entry; types with the quantity zero count for nothing."""
    data = size.SerializeToString()
    if len(data) < 128 and b"%c%c%b" % (_SIZE_TAG, len(data), data) in entry.ask:
        return True  # Mostly: it has one type, or few in the same order.
    return _quantities(si.Allocation.FromString(entry.ask).resourcePerAlloc) == _quantities(size)


def _quantities(size: si.Resource) -> dict[str, int]:
    return {name: quantity.value for name, quantity in size.resources.items() if quantity.value}


@final
class RecentNames:
    """Names of asks, applications or nodes that are gone; its owner guards it.

    There are two generations. When the younger one has many names and is old enough, the older one is
    dropped.

    Args:
        now_seconds: Returns a time that never goes back.
    """

    def __init__(self, now_seconds: Callable[[], float] = time.monotonic) -> None:
        self._now_seconds = now_seconds
        self._young: set[Hashable] = set()
        self._old: set[Hashable] = set()
        self._since = now_seconds()
        self._is_beyond = False
        """Whether more names came in this generation than are kept."""
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
        """Forget all."""
        self._young.clear()
        self._old.clear()
        self._is_beyond = self._was_beyond = False

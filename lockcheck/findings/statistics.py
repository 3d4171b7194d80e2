"""Statistics by class and place: how often locks are taken, how long they are waited for and held.

A release only appends its time to a list; the list is sorted into a histogram when it is long, or when the
histogram is read. The buckets of a histogram are an eighth of a power of two, so a percentile is at most an
eighth too large. Times are nanoseconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from types import CodeType
from typing import Final, final

from .terms import Mode

PENDING_MAX: Final = 1024
"""How many times are collected before they are sorted."""

KEYS_MAX: Final = 4096
"""How many keys of a class are distinguished, if that is asked for."""

OTHER_KEYS: Final = "(others)"

UNHEARD: Final[deque[int]] = deque(maxlen=0)
"""A queue for times that are not needed; it keeps none."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution of times: upper limits of buckets, and how many times lie in each."""

    total: int = 0
    max: int = 0
    buckets: tuple[tuple[int, int], ...] = ()

    @property
    def count(self) -> int:
        """How many times there are."""
        return sum(count for _, count in self.buckets)

    def percentile(self, percent: int) -> int:
        """Return a time that this percentage of all does not exceed; at most an eighth too large."""
        rank = -(-self.count * percent // 100)
        for limit, count in self.buckets:
            rank -= count
            if rank <= 0:
                return min(limit, self.max)
        return self.max


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of the locks of a class in one mode at one place."""

    lock: str
    mode: Mode
    site: str
    """File and line."""
    key: str | None
    """Its key within its class, if that was asked for; `OTHER_KEYS` for those beyond the limit."""
    hold: Spread
    """One time for each acquisition that was released."""
    wait: Spread
    """One for each that found the lock taken."""


@final
class UsageTally:
    """The times of one class, mode and place, and of one key if that was asked for."""

    __slots__ = ("_held", "_waited", "code", "holds", "instruction", "key", "lock", "mode", "waits")

    def __init__(self, lock: str, mode: Mode, code: CodeType, instruction: int, key: str | None) -> None:
        self.lock = lock
        self.key = key
        self.mode: Mode = mode
        self.code = code
        self.instruction = instruction
        self.holds: deque[int] = deque()
        """Times that are not sorted yet."""
        self.waits: deque[int] = deque()
        self._held = _Histogram()
        self._waited = _Histogram()

    def fold(self) -> None:
        """Sort the collected times; other threads may add meanwhile, without loss."""
        self._held.take(self.holds)
        self._waited.take(self.waits)

    @property
    def held(self) -> Spread:
        """How long the locks were held."""
        return self._held.spread()

    @property
    def waited(self) -> Spread:
        """How long they were waited for."""
        return self._waited.spread()


@final
class UsageTallies:
    """All tallies of a session; a limited number of keys of a class have separate tallies."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Mode, CodeType, int, str | None], UsageTally] = {}
        self._keys: dict[str, set[str]] = {}

    def __iter__(self) -> Iterator[UsageTally]:
        return iter(self._known.values())

    def of(self, lock: str, mode: Mode, code: CodeType, instruction: int, key: str | None) -> UsageTally:
        """Return the tally of a class, mode and place, and of a key unless the class has too many."""
        keys = self._keys.setdefault(lock, set())
        if key is not None and key not in keys:
            if len(keys) >= KEYS_MAX:
                key = OTHER_KEYS
            else:
                keys.add(key)
        place = (lock, mode, code, instruction, key)
        if place not in self._known:
            self._known[place] = UsageTally(*place)
        return self._known[place]


@final
class _Histogram:
    __slots__ = ("counts", "max", "total")

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.total = 0
        self.max = 0

    def take(self, times: deque[int]) -> None:
        """Sort times into their buckets: in order, they need one search a bucket instead of one each."""
        taken = sorted(_drained(times))
        at = 0
        while at < len(taken):
            limit = limit_of(taken[at])
            after = bisect_right(taken, limit, at)
            self.counts[limit] += after - at
            at = after
        self.total += sum(taken)
        self.max = max([self.max, *taken[-1:]])

    def spread(self) -> Spread:
        return Spread(self.total, self.max, tuple(sorted(self.counts.items())))


def _drained(times: deque[int]) -> list[int]:
    taken: list[int] = []
    with suppress(IndexError):  # another one sorts too, such as a signal handler that came in between
        for _ in range(len(times)):
            taken.append(times.popleft())  # noqa: PERF401 - a comprehension would lose what it has
    return taken


def limit_of(time: int) -> int:
    """Return the upper limit of the bucket that a time lies in."""
    shift = max(0, time.bit_length() - 4)
    return (((time >> shift) + 1) << shift) - 1


def together(one: Spread, other: Spread) -> Spread:
    """Return the spread of the times of both."""
    counts = Counter(dict(one.buckets))
    counts.update(dict(other.buckets))
    return Spread(one.total + other.total, max(one.max, other.max), tuple(sorted(counts.items())))


def usages_together(usages: Iterable[Usage]) -> tuple[Usage, ...]:
    """Return usages with those of one class, mode, place and key put together, in order."""
    found: dict[tuple[str, ...], Usage] = {}
    for usage in usages:
        place = (usage.lock, usage.mode, usage.site, usage.key or "")
        known = found.get(place)
        found[place] = usage if known is None else _both(known, usage)
    return tuple(found[place] for place in sorted(found))


def _both(one: Usage, other: Usage) -> Usage:
    return replace(one, hold=together(one.hold, other.hold), wait=together(one.wait, other.wait))

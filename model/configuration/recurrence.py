"""Spans of time by the clock of a time zone, once or repeated after whole days: when each begins and ends.

A local time that does not exist, as clocks go forward, stands for the moment of the change. One that exists
twice, as clocks go back, is the first moment for a begin and the second one for an end. So a span is never
shorter than it is written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple, final
from zoneinfo import ZoneInfo

from ..errors import LicorneError

DAY_NS: Final = 24 * 3600 * 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(?P<offset>Z|[+-]\d\d:\d\d)?")
_TRIES_MAX: Final = 64
"""After how many spans without enough time between them a search ends; clocks change twice a year."""
_KNOWN_MAX: Final = 512
"""How many spans are known at a time."""


class TimeError(LicorneError):
    """A text that is not a time, or a time zone that does not exist."""


def parse_time(text: str) -> datetime:
    """Read a time as `2026-12-01T06:00`, with or without seconds, and with `Z`, an offset or neither.

    Raises:
        TimeError: The text is not such a time, or there is no such day.
    """
    if _TIME.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    raise TimeError(f"{text!r} is no time as 2026-12-01T06:00 or 2026-12-01T06:00:00Z")


@lru_cache(maxsize=64)
def find_zone(name: str) -> ZoneInfo:
    """Return a time zone of the tz database.

    Raises:
        TimeError: It does not exist, or the machine has no tz database.
    """
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:  # By the name, more than one is raised.
        raise TimeError(f"the time zone {name!r} does not exist on this machine") from error


class Recurrence(NamedTuple):
    """A span by the clock of a time zone, once or repeated."""

    begin: datetime
    """The local time at which the first span begins."""
    end: datetime
    zone: str
    every_days: int = 0
    """After how many days it is repeated, 0 for never."""

    def span(self, number: int) -> tuple[int, int] | None:
        """Return when a span begins and ends, the first one by 0; `None` if there is none.

        In nanoseconds since 1970.
        """
        if number < 0 or (number and not self.every_days):
            return None
        zone = find_zone(self.zone)
        try:
            later = timedelta(days=number * self.every_days)
            return _instant_ns(self.begin + later, zone, fold=0), _instant_ns(self.end + later, zone, fold=1)
        except OverflowError:  # Beyond the year 9999.
            return None

    def number_after(self, at_ns: int) -> int:
        """Return the number of the first span that ends after a moment; it may not exist."""
        number = 0
        if self.every_days:
            end_ns = (self.end.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND * 1000
            # Two days for the offset of the zone, and for clocks that change.
            number = max(0, (at_ns - end_ns) // (self.every_days * DAY_NS) - 2)
        while (span := self.span(number)) is not None and span[1] <= at_ns:
            number += 1
        return number

    def local_text(self, at_ns: int) -> str:
        """Write a moment by the clock of the zone."""
        moment = _EPOCH + timedelta(microseconds=at_ns // 1000)
        return f"{moment.astimezone(find_zone(self.zone)):%Y-%m-%d %H:%M} {self.zone}"


def _instant_ns(local: datetime, zone: tzinfo, *, fold: int) -> int:
    """Return the moment of a local time, see the top of this module."""
    moment = local.replace(tzinfo=zone, fold=fold).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None, fold=0) != local:
        moment = _change_near(local, zone)
    return (moment - _EPOCH) // _MICROSECOND * 1000


def _change_near(local: datetime, zone: tzinfo) -> datetime:
    """Return the moment at which clocks pass over a local time."""
    before, after = sorted(local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    offset = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // _SECOND // 2 * _SECOND
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after


@final
class Spans:
    """The spans of a recurrence as they are needed.

    Args:
        recurrence: The recurrence.
    """

    __slots__ = ("_ends", "_from_ns", "_next", "_spans", "recurrence")

    def __init__(self, recurrence: Recurrence) -> None:
        self.recurrence = recurrence
        self._spans: list[tuple[int, int]] = []
        """Those that are known: all from a moment on, up to some span."""
        self._ends: list[int] = []
        self._from_ns = 0
        self._next = 0
        """The number of the span behind them."""

    def after(self, at_ns: int) -> tuple[int, int] | None:
        """Return when the first span begins and ends that ends after a moment, `None` without one."""
        ends = self._ends
        if at_ns < self._from_ns or not ends or len(ends) > _KNOWN_MAX:
            self._from_ns, self._next = at_ns, self.recurrence.number_after(at_ns)
            self._spans.clear()
            ends.clear()
        while not ends or ends[-1] <= at_ns:
            span = self.recurrence.span(self._next)
            if span is None:
                return None
            self._next += 1
            self._spans.append(span)
            ends.append(span[1])
        return self._spans[bisect_right(ends, at_ns)]

    def free_from_ns(self, at_ns: int, length_ns: int) -> int | None:
        """Return the first moment, from one on, from which no span begins or lasts for so long.

        It is the same moment, or the end of a span; `None` if the time between spans is never enough.
        """
        for _ in range(_TRIES_MAX):
            span = self.after(at_ns)
            if span is None or at_ns + max(1, length_ns) <= span[0]:
                return at_ns
            at_ns = span[1]
        return None

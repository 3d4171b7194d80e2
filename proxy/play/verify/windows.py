"""Windows of a recorded configuration: whether work would run into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_NS: Final = 86400 * 10**9
_MINUTE: Final = timedelta(minutes=1)


class RecordedWindow(NamedTuple):
    """A window."""

    name: str
    nodes: Sequence[str]
    attributes: Mapping[str, str]
    begin: datetime
    """By the clock of its zone."""
    end: datetime
    zone: ZoneInfo
    every_days: int
    drain_ns: int
    holders: Mapping[str, Sequence[str]]
    """Whom it is for, by `users`, `groups`, `applications` and `queues`."""

    def has(self, node: str, attributes: Mapping[str, str]) -> bool:
        """Return whether a node is one of its nodes."""
        if self.nodes:
            return node in self.nodes
        return self.attributes.items() <= attributes.items()

    def is_met(self, at_ns: int, length_ns: int) -> bool:
        """Return whether work from a moment on would run during it."""
        if not self.every_days:
            return self._overlaps(0, at_ns, length_ns)
        first_ns = (self.begin.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1) * 1000
        period_ns = self.every_days * _DAY_NS
        lasts = (self.end - self.begin) // timedelta(days=1) // self.every_days
        first = max(0, (at_ns - first_ns) // period_ns - lasts - 2)
        last = (at_ns + length_ns - first_ns) // period_ns + 2
        return any(self._overlaps(number, at_ns, length_ns) for number in range(first, last + 1))

    def _overlaps(self, number: int, at_ns: int, length_ns: int) -> bool:
        later = timedelta(days=number * self.every_days)
        begin_ns, end_ns = self._moments(self.begin + later)[0], self._moments(self.end + later)[1]
        return begin_ns < at_ns + max(1, length_ns) and at_ns < end_ns

    def _moments(self, local: datetime) -> tuple[int, int]:
        """Return the first and the last moment at which the clock of the zone passes a time."""
        both = sorted(local.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if all(moment.astimezone(self.zone).replace(tzinfo=None) != local for moment in both):
            first = both[0].replace(second=0)
            while first.astimezone(self.zone).replace(tzinfo=None) < local:
                first += _MINUTE
            both = [first, first]
        first_ns, last_ns = ((moment - _EPOCH) // timedelta(microseconds=1) * 1000 for moment in both)
        return first_ns, last_ns


def read_window(document: Mapping[str, Any], drain_ns: int, every_ns: int) -> RecordedWindow:
    """Read a window of a configuration that a scheduler has accepted."""
    holders = document.get("for") or {}
    return RecordedWindow(
        str(document["name"]),
        [str(name) for name in document.get("nodes") or ()],
        {str(name): str(value) for name, value in (document.get("attributes") or {}).items()},
        _local(document["from"]),
        _local(document["to"]),
        ZoneInfo(document.get("zone") or "UTC"),
        every_ns // _DAY_NS,
        drain_ns,
        {kind: [str(name) for name in names or ()] for kind, names in holders.items()},
    )


def _local(value: str | datetime | date) -> datetime:
    """Return a time, which a reader of YAML may have read as one; one with an offset by the clock of UTC."""
    time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)

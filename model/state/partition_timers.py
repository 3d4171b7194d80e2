"""The timers of a partition: those of its applications, and its own."""

from __future__ import annotations

from typing import Final, final

from ..applications.effects import TimerKind
from .host import (
    ApplicationTimer,
    Inspection,
    PartitionHost,
    QueueCleaning,
    QuotaCheck,
    RetryAsks,
    TimerAction,
    timer_key,
)

CLEANING_INTERVAL_NS: Final = 10 * 1_000_000_000
"""How often queues that are empty are removed: at multiples of it since the partition was made."""
QUOTA_CHECK_INTERVAL_NS: Final = 1_000_000_000
"""How long a queue that is due for quota preemption, and without result, waits for the next try."""
INSPECTION_DELAY_NS: Final = 1_000_000_000
"""How long asks wait before they are reported to an autoscaler."""


@final
class PartitionTimers:
    """The timers of one partition. Owned by the partition; each of its own is set once, for the earliest."""

    __slots__ = ("_due_ns", "_host", "_since_ns", "_started")

    def __init__(self, host: PartitionHost, since_ns: int) -> None:
        self._host = host
        self._since_ns = since_ns
        self._due_ns: dict[type[TimerAction], int] = {}
        """When the partition's own timers are due."""
        self._started: dict[int, tuple[TimerKind, ...]] = {}
        """The timers that were started for an application, by its serial: few have one of each kind."""

    def start(self, due_ns: int, timer: ApplicationTimer) -> None:
        """Start a timer of an application; it replaces one of the same kind."""
        started = self._started.get(timer.serial, ())
        if timer.kind in started:
            self._host.cancel(timer_key(timer))
        else:
            self._started[timer.serial] = (*started, timer.kind)
        self._host.call_at(due_ns, timer)

    def stop_all(self, serial: int) -> None:
        """Cancel all timers of an application that is gone."""
        for kind in self._started.pop(serial, ()):
            self._host.cancel((serial, kind))

    def clean_later(self) -> None:
        """Have queues removed that are empty, at the next turn of the cleaner."""
        turns = (self._host.now_ns() - self._since_ns) // CLEANING_INTERVAL_NS + 1
        self._set(QueueCleaning(), self._since_ns + turns * CLEANING_INTERVAL_NS)

    def check_quotas(self, due_ns: int) -> None:
        """Have the quotas checked when a queue is due for preemption."""
        self._set(QuotaCheck(), max(due_ns, self._host.now_ns() + QUOTA_CHECK_INTERVAL_NS))

    def retry_at(self, due_ns: int) -> None:
        """Try asks again when time may have changed an answer."""
        if self._is_earlier(RetryAsks, due_ns):
            self._host.cancel(RetryAsks)
            self._set(RetryAsks(), due_ns)

    def inspect_later(self) -> None:
        """Have the asks that wait for room in the cluster reported to the RM."""
        self._set(Inspection(), self._host.now_ns() + INSPECTION_DELAY_NS)

    def mark_fired(self, action: TimerAction) -> None:
        """Note that one of the partition's own timers has come."""
        self._due_ns.pop(type(action), None)

    def _set(self, action: TimerAction, due_ns: int) -> None:
        if self._is_earlier(type(action), due_ns):
            self._due_ns[type(action)] = due_ns
            self._host.call_at(due_ns, action)

    def _is_earlier(self, kind: type[TimerAction], due_ns: int) -> bool:
        waiting_ns = self._due_ns.get(kind)
        return waiting_ns is None or due_ns < waiting_ns

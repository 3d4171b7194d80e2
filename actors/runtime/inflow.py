"""A bound on what waits in a partition's mailbox: an RM that sends too fast is slowed down."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, final

ENTRIES_MAX: Final = 128
"""When so many entries (asks, releases, applications, nodes) wait in a partition, calls that bring more wait
until half of them are carried out."""
WAIT_SECONDS_MAX: Final = 1.0
"""How long one call waits at most. It may hold a lock that a predicate of the RM wants, for which the
partition waits: then nothing would ever be carried out."""


def entries_of(args: Sequence[object]) -> int:
    """Count the entries of a request; one that has none counts as one."""
    return sum(len(each) for each in args if isinstance(each, (tuple, list))) or 1


@final
class Inflow:
    """The entries that were sent to one partition and are not carried out yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._entries = 0
        self._full = False
        """Whether calls wait; written with the lock held."""
        self._open = True

    @property
    def entries(self) -> int:
        """How many entries wait now."""
        return self._entries

    def wait_for_room(self) -> None:
        """Wait while too much waits, until the partition ends or `WAIT_SECONDS_MAX` have passed."""
        if not self._full:
            return
        with self._changed:
            self._changed.wait_for(lambda: not (self._full and self._open), WAIT_SECONDS_MAX)

    def add(self, entries: int) -> None:
        """Count what has been sent."""
        with self._lock:  # Not by the condition: its methods are written in Python.
            self._entries += entries
            self._full = self._full or self._entries >= ENTRIES_MAX

    def remove(self, entries: int) -> None:
        """Count what has been carried out, and wake the calls that wait once there is room."""
        with self._lock:
            self._entries -= entries
            if self._full and self._entries <= ENTRIES_MAX // 2:
                self._full = False
                self._changed.notify_all()

    def close(self) -> None:
        """Wake all calls that wait: the partition has ended."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

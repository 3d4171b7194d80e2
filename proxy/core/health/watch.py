"""The thread that checks the health of a scheduler and adds to its history, each when it is due."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final, NamedTuple, final

from ....actors.services.log import Log
from ....model.errors import RequestError
from ..documents.monitoring import ApplicationCountDocument, ContainerCountDocument

_JOIN_SECONDS: Final = 5
HISTORY_MAX: Final = 1440
"""How many entries are kept; the oldest one is dropped for a new one."""
HISTORY_SECONDS: Final = 60
"""The time between two entries."""


@final
class HealthWatch:
    """Watches over one scheduler, from the first registration on.

    Args:
        check: Checks the health.
        record: Adds to the history.
        interval_seconds: Returns how long it is from one check to the next; not above 0: none follows.
        log: Gets what goes wrong.
    """

    def __init__(
        self,
        check: Callable[[], object],
        record: Callable[[], object],
        interval_seconds: Callable[[], float],
        log: Log,
    ) -> None:
        self._check = check
        self._record = record
        self._interval_seconds = interval_seconds
        self._log = log
        self._changed = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._checked_at: float | None = None
        self._record_at: float | None = None

    def wake(self) -> None:
        """Start if it has not started; otherwise take a changed interval. One thread at a time calls."""
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="licorne-watch", daemon=True)
            self._thread.start()
        self._changed.set()

    def check_soon(self) -> None:
        """Check the health as soon as may be; any thread calls."""
        self._checked_at = None
        self._changed.set()

    def close(self) -> None:
        """End the thread; wait for it, unless it is the thread that calls."""
        self._closed = True
        self._changed.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)

    def step(self, now: float) -> float:
        """Do what is due; return in how many seconds something is due again.

        Args:
            now: Seconds since any moment.
        """
        interval = self._interval_seconds()
        if self._checked_at is None or (interval > 0 and now >= self._checked_at + interval):
            self._checked_at = now
            self._do(self._check)
        if self._record_at is None:
            self._record_at = now + HISTORY_SECONDS
        elif now >= self._record_at:
            self._record_at += HISTORY_SECONDS
            self._do(self._record)
        checked_at = now if self._checked_at is None else self._checked_at
        next_at = self._record_at if interval <= 0 else min(self._record_at, checked_at + interval)
        return max(next_at - now, 0)

    def _run(self) -> None:
        while not self._closed:
            self._changed.clear()
            self._changed.wait(self.step(monotonic()))

    def _do(self, step: Callable[[], object]) -> None:
        try:
            step()
        except RequestError:
            pass  # The scheduler is being stopped.
        except Exception:  # noqa: BLE001 - it is logged, and the next one is tried
            self._log.exception("a health check or its history failed, please report")


class _Entry(NamedTuple):
    time_ns: int
    applications: int
    containers: int


@final
class History:
    """The history of one scheduler. One thread at a time adds, any thread reads."""

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque(maxlen=HISTORY_MAX)

    def add(self, time_ns: int, *, applications: int, containers: int) -> None:
        """Add how many applications run, and how many allocations there are."""
        self._entries.append(_Entry(time_ns, applications, containers))

    def applications(self) -> list[ApplicationCountDocument]:
        """Return the documents of the applications, the oldest first."""
        return [
            {"timestamp": entry.time_ns, "totalApplications": str(entry.applications)}
            for entry in self._entries.copy()
        ]

    def containers(self) -> list[ContainerCountDocument]:
        """Return the documents of the containers, the oldest first."""
        return [
            {"timestamp": entry.time_ns, "totalContainers": str(entry.containers)}
            for entry in self._entries.copy()
        ]

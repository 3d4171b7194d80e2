"""How many applications and containers there were, minute by minute, for a day."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple, final

from ..documents.monitoring import ApplicationCountDocument, ContainerCountDocument

HISTORY_MAX: Final = 1440
"""How many entries are kept; the oldest one is dropped for a new one."""
HISTORY_SECONDS: Final = 60
"""The time between two entries."""


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

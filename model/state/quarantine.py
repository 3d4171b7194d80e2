"""The applications and nodes of a partition that broke; `requests.quarantining` puts them there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import final

from ..nodes.order import NodeEntry
from ..queues.application_entry import ApplicationEntry


class BrokenKind(Enum):
    """What has broken."""

    APPLICATION = "application"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One broken object: which, since when in nanoseconds since 1970, and the error it broke with."""

    partition: str
    kind: BrokenKind
    name: str
    since_ns: int
    reason: str


@final
class Quarantine:
    """The broken objects of one partition. Owned by the partition."""

    __slots__ = ("applications", "entries", "nodes")

    def __init__(self) -> None:
        self.applications: dict[str, ApplicationEntry] = {}
        self.nodes: dict[str, NodeEntry] = {}
        self.entries: dict[tuple[BrokenKind, str], Quarantined] = {}

    def note(self, partition: str, kind: BrokenKind, name: str, reason: str, now_ns: int) -> None:
        """Record why and since when an object is quarantined."""
        self.entries[kind, name] = Quarantined(partition, kind, name, now_ns, reason)

    def reason(self, kind: BrokenKind, name: str) -> str:
        """Return why an object is quarantined, the empty text if it is not."""
        entry = self.entries.get((kind, name))
        return "" if entry is None else entry.reason

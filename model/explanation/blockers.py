"""What blocks an ask or an application, as values: which queue, user, group or node, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ..configuration.positions import Position
from ..queues.lending import Withheld
from ..resources.resource import Resource
from ..values.refusals import RefusalReason

APPLICATIONS = "applications"
"""The name of what is lacking if a number of applications is limited."""


class SubjectKind(Enum):
    """What kind of thing blocks."""

    PARTITION = "partition"
    QUEUE = "queue"
    USER = "user"
    GROUP = "group"
    NODE = "node"
    NODES = "nodes"
    TASK_GROUP = "task group"
    APPLICATION = "application"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """One quantity of which there is not enough.

    `available` is what is left of `limit`; it is negative where more is used than the limit allows.
    `position` is where the limit stands in the configuration, `None` where it does not come from there.
    """

    name: str
    asked: int
    available: int
    limit: int
    position: Position | None = None

    @property
    def missing(self) -> int:
        """How much higher the limit, or lower the usage, would have to be."""
        return self.asked - self.available


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One thing that blocks an ask or a whole application.

    `queue_path` is the queue where a limit of a user or a group stands. `position` is the setting that the
    reason is about, where it is about no quantity. `since_ns` is when it began, where that is known, and
    `until_ns` when time alone takes the blocker away.
    """

    reason: RefusalReason
    kind: SubjectKind
    subject: str
    queue_path: str = ""
    lacks: tuple[Lack, ...] = ()
    detail: str = ""
    position: Position | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    withheld: tuple[Withheld, ...] = ()
    """What other queues keep back of their guarantees, the largest amounts, for the types that lack."""
    setting: str = ""
    """The key that limits resources in the configuration; empty if none does, or from an older scheduler."""
    change: str = ""
    """What would take it away, where the reason alone does not say; else empty."""


def lacks_of(
    wanted: Resource,
    limit: Resource,
    used: Resource,
    positions: Mapping[str, Position],
    setting: str,
    *,
    is_closed: bool = False,
) -> tuple[Lack, ...]:
    """Return the types of which too little is left under a limit.

    Args:
        wanted: What is asked for.
        limit: The limit by type.
        used: What is used of it.
        positions: Where settings stand in the configuration.
        setting: The name of the limit there; that of one type is `<setting>.<type>`.
        is_closed: A type without a limit is not there at all, instead of unlimited.
    """
    found = []
    for name, asked in sorted(wanted.items()):
        if asked <= 0 or (not limit.has(name) and not is_closed):
            continue
        most = limit.get(name)
        if used.get(name) + asked > max(0, most):
            position = positions.get(f"{setting}.{name}") or positions.get(setting)
            available = most - used.get(name)
            found.append(Lack(name=name, asked=asked, available=available, limit=most, position=position))
    return tuple(found)

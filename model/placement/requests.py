"""What placement is asked, what it may look up, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..configuration.problems import Position
from ..values.messages import RejectionCode, User


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """What placement knows of an application.

    Attributes:
        queue_name: The queue the RM names, or the empty text.
        user: The user, resolved.
        tags: The tags of the application; their names count in any case.
        forced: The application must be accepted, in the recovery queue if nowhere else.
    """

    queue_name: str
    user: User
    tags: Mapping[str, str]
    forced: bool = False

    def tag(self, name: str) -> str:
        """Return the value of a tag whose lower-case name is given, or the empty text."""
        return next((value for key, value in self.tags.items() if key.lower() == name), "")


class PlacementQueue(Protocol):
    """What placement looks at in an existing queue."""

    @property
    def path(self) -> str:
        """The full path, lower case."""

    @property
    def is_leaf(self) -> bool:
        """Whether the queue holds applications, not queues."""

    @property
    def is_draining(self) -> bool:
        """Whether the queue takes no new applications."""


class QueueLookup(Protocol):
    """The queues of a partition, as far as placement needs them."""

    def find(self, path: str) -> PlacementQueue | None:
        """Return the queue with this lower-case path, `None` if there is none."""

    def submit_allowed(self, path: str, user: User) -> bool:
        """Return whether a user may submit to an existing queue."""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """The outcome of one rule; rules are numbered from 0, as in the messages about the configuration."""

    rule: str
    number: int
    why: str
    position: Position | None = field(default=None, compare=False)
    """Where the rule stands in the configuration, `None` for one that is always there."""


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """The queue for the application: a lower-case path, of a leaf or of a queue that is to be created.

    `tried` are the rules that were asked, last the one that found the queue; no part of comparisons.
    """

    queue_path: str
    tried: tuple[RuleOutcome, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class PlacementRefusal:
    """No place for the application: the message for the RM, and the outcomes of the rules that were tried."""

    reason: str
    tried: tuple[RuleOutcome, ...]
    code: RejectionCode = field(default=RejectionCode.NO_QUEUE, compare=False)

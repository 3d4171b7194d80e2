"""Why something that an RM has sent is rejected: a code for programs beside the sentence for people."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class RejectionCode(Enum):
    """What kind of reason it is; the names are those of the messages to the RM."""

    INVALID = "INVALID"
    """It makes no sense, whatever the partition has: an empty id, a negative size."""
    PARTITION_UNKNOWN = "PARTITION_UNKNOWN"
    PARTITION_STOPPED = "PARTITION_STOPPED"
    APPLICATION_UNKNOWN = "APPLICATION_UNKNOWN"
    """There is no such application, or none any more: it may have completed just now."""
    APPLICATION_EXISTS = "APPLICATION_EXISTS"
    APPLICATION_ENDS = "APPLICATION_ENDS"
    """The application fails, or its gang has timed out: nothing of the kind is taken any more."""
    KEY_IN_USE = "KEY_IN_USE"
    """Another application has an ask or allocation with this key."""
    NODE_UNKNOWN = "NODE_UNKNOWN"
    NODE_EXISTS = "NODE_EXISTS"
    NO_QUEUE = "NO_QUEUE"
    """No placement rule leads to a queue that takes the application."""
    NO_PERMISSION = "NO_PERMISSION"
    """Likewise, and the user may not submit to a queue that a rule has led to."""
    OVER_MAXIMUM = "OVER_MAXIMUM"
    """It is larger than the maximum of its queue, so it could never run."""


class RejectionReason(NamedTuple):
    """A code, and the sentence beside it."""

    code: RejectionCode
    text: str


def invalid(text: str | None) -> RejectionReason | None:
    """Return the reason of something that makes no sense, `None` if there is no sentence."""
    return None if text is None else RejectionReason(RejectionCode.INVALID, text)

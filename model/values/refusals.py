"""Refusals of the scheduler, as values.

A refusal names what was asked, what was available, and what blocked the ask. The scheduling cycle makes
one and stops. `licorne.model.explanation` answers "why does my application wait?": it walks over all queues,
limits and nodes a second time, with the checks of the cycle. That it agrees with the refusals is checked by
`tests/proxy/play/transcripts/test_explanations_agree.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..resources.resource import Resource
from .allocation import Ask


class RefusalReason(Enum):
    """Why an ask or an application is refused. The comment says what the scheduler does next."""

    USER_QUOTA = "Not enough user quota"  # the next shape of ask is tried; no preemption
    QUEUE_QUOTA = "Not enough queue quota"  # preemption is tried where allowed, then the next shape
    NO_NODE_FITS = "No node has room"  # a reservation is made once the ask is old enough
    PREDICATES = "Predicates refused every node with room"  # tried again in the next cycle
    GANG_ROOM = "No room was found for all of the gang"  # until a node, queue, user or group gains room
    GANG_INCOMPLETE = "Not all of the gang has been asked for"  # until the rest is
    REQUIRED_NODE_UNKNOWN = "The required node is unknown"  # tried again when nodes change
    REQUIRED_NODE_FULL = "The required node has no room"  # the node is reserved for the ask
    WOULD_DELAY = "It would delay a job that is promised a start"  # until the promise moves, or a node gains
    WAITS_FOR_PLACEHOLDER = "Waits to replace a placeholder of its task group"  # the placeholder pass
    PROTECTED = "What could be preempted is protected for now"  # tried again when the first of it is not
    QUEUE_APPLICATIONS = "The queue runs its maximum of applications"  # until one of them ends
    USER_APPLICATIONS = "The user runs the maximum of applications"  # until one of them ends
    BACKOFF = "Too many asks could not be placed"  # after the back-off delay
    QUEUE_KIND = (
        "The configuration has made the queue another kind"  # it is not visited until it is changed back
    )
    QUEUE_STOPPED = "The queue is stopped"  # until an operator starts it
    PARTITION_STOPPED = "The partition is stopped"  # nothing: it ends
    NO_CAPACITY = "No node brings any resources"  # until a node comes
    CONGESTED = "The resource manager is far behind with its callbacks"  # until half of them are delivered
    MANAGER_PAUSED = "The resource manager lost its connection"  # until it registers again
    MANAGER_STOPPED = "The resource manager has stopped"  # until it registers again
    STATE = "The application takes no work in its state"  # until the state changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One refusal.

    `subject` is the queue path, user or node that blocks; `asked` and `available` are what was
    compared, where the reason is about resources. `until_ns` is when time alone may change the answer.
    """

    reason: RefusalReason
    subject: str = ""
    allocation_key: str = ""
    asked: Resource | None = None
    available: Resource | None = None
    detail: str = ""
    until_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementHalt:
    """Why nothing new is placed for a resource manager, whatever it asks for.

    `since_ns` is when that began, where it is known; `detail` is what was given as the cause.
    """

    reason: RefusalReason
    since_ns: int | None = None
    detail: str = ""


def refused(
    reason: RefusalReason,
    subject: str,
    ask: Ask,
    available: Resource | None,
    *,
    detail: str = "",
    until_ns: int | None = None,
) -> Refusal:
    """Return the refusal of an ask, and of every one of its shape."""
    return Refusal(
        reason=reason,
        subject=subject,
        allocation_key=ask.allocation_key,
        asked=ask.resource,
        available=available,
        detail=detail,
        until_ns=until_ns,
    )

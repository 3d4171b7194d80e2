"""Events: records of what has happened, as resource managers and the REST interface show them.

The numbers are part of `si.v1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ..resources.resource import EMPTY, Resource


class EventType(IntEnum):
    """The kind of object of an event."""

    UNKNOWN = 0
    REQUEST = 1
    APP = 2
    NODE = 3
    QUEUE = 4
    USERGROUP = 5


class ChangeType(IntEnum):
    """How the object changed."""

    NONE = 0
    SET = 1
    ADD = 2
    REMOVE = 3


class ChangeDetail(IntEnum):
    """The part of the object that changed."""

    NONE = 0
    REQUEST_CANCEL = 100
    REQUEST_TIMEOUT = 102
    APP_ALLOC = 200
    APP_REQUEST = 201
    APP_REJECT = 202
    APP_NEW = 203
    APP_ACCEPTED = 204
    APP_RUNNING = 206
    APP_COMPLETING = 207
    APP_COMPLETED = 208
    APP_FAILING = 209
    APP_FAILED = 210
    APP_RESUMING = 211
    APP_EXPIRED = 212
    APP_CANNOTRUN_QUEUE = 213
    APP_RUNNABLE_QUEUE = 214
    APP_CANNOTRUN_QUOTA = 215
    APP_RUNNABLE_QUOTA = 216
    NODE_DECOMISSION = 300
    NODE_SCHEDULABLE = 302
    NODE_ALLOC = 303
    NODE_CAPACITY = 304
    NODE_OCCUPIED = 305
    NODE_RESERVATION = 306
    QUEUE_DYNAMIC = 401
    QUEUE_TYPE = 402
    QUEUE_MAX = 403
    QUEUE_GUARANTEED = 404
    QUEUE_APP = 405
    QUEUE_PREEMPTION = 407
    ALLOC_CANCEL = 500
    ALLOC_PREEMPT = 501
    ALLOC_TIMEOUT = 502
    ALLOC_REPLACED = 503
    ALLOC_NODEREMOVED = 504
    UG_USER_LIMIT = 600
    UG_GROUP_LIMIT = 601
    UG_APP_LINK = 602
    UG_USER_RESOURCE = 603
    UG_GROUP_RESOURCE = 604


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One event.

    `object_id` names what changed, `reference_id` what it changed with: an allocation key, an application or
    a queue path. `message` is at most 1024 bytes of UTF-8.
    """

    type: EventType
    change: ChangeType
    detail: ChangeDetail
    object_id: str
    reference_id: str = ""
    message: str = ""
    resource: Resource = EMPTY
    time_ns: int = 0

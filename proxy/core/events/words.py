"""What the numbers in an event stand for, in words: the page and `licorne top` show these."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ....model.values.events import ChangeDetail, ChangeType, EventType

TYPE_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        EventType.REQUEST: "request",
        EventType.APP: "application",
        EventType.NODE: "node",
        EventType.QUEUE: "queue",
        EventType.USERGROUP: "user/group",
    }
)
"""The kind of object, by the number of the type."""

CHANGE_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {ChangeType.SET: "set", ChangeType.ADD: "added", ChangeType.REMOVE: "removed"}
)
"""What was done, by the number of the change."""

DETAIL_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        ChangeDetail.REQUEST_CANCEL: "request withdrawn",
        ChangeDetail.REQUEST_TIMEOUT: "request timed out",
        ChangeDetail.APP_ALLOC: "allocation",
        ChangeDetail.APP_REQUEST: "request",
        ChangeDetail.APP_REJECT: "rejected",
        ChangeDetail.APP_NEW: "new",
        ChangeDetail.APP_ACCEPTED: "accepted",
        ChangeDetail.APP_RUNNING: "running",
        ChangeDetail.APP_COMPLETING: "completing",
        ChangeDetail.APP_COMPLETED: "completed",
        ChangeDetail.APP_FAILING: "failing",
        ChangeDetail.APP_FAILED: "failed",
        ChangeDetail.APP_RESUMING: "resuming",
        ChangeDetail.APP_EXPIRED: "expired",
        ChangeDetail.APP_CANNOTRUN_QUEUE: "may not run: its queue has its maximum of applications",
        ChangeDetail.APP_RUNNABLE_QUEUE: "may run in its queue",
        ChangeDetail.APP_CANNOTRUN_QUOTA: "may not run: its user or group has its maximum of applications",
        ChangeDetail.APP_RUNNABLE_QUOTA: "may run for its user and group",
        ChangeDetail.NODE_DECOMISSION: "decommissioned",
        ChangeDetail.NODE_SCHEDULABLE: "schedulable",
        ChangeDetail.NODE_ALLOC: "allocation",
        ChangeDetail.NODE_CAPACITY: "capacity",
        ChangeDetail.NODE_OCCUPIED: "occupied",
        ChangeDetail.NODE_RESERVATION: "reservation",
        ChangeDetail.QUEUE_DYNAMIC: "dynamic queue",
        ChangeDetail.QUEUE_TYPE: "kind of queue",
        ChangeDetail.QUEUE_MAX: "maximum",
        ChangeDetail.QUEUE_GUARANTEED: "guarantee",
        ChangeDetail.QUEUE_APP: "application",
        ChangeDetail.QUEUE_PREEMPTION: "preemption for a lowered maximum",
        ChangeDetail.ALLOC_CANCEL: "allocation ended by the resource manager",
        ChangeDetail.ALLOC_PREEMPT: "allocation preempted",
        ChangeDetail.ALLOC_TIMEOUT: "allocation timed out",
        ChangeDetail.ALLOC_REPLACED: "placeholder replaced",
        ChangeDetail.ALLOC_NODEREMOVED: "allocation ended with its node",
        ChangeDetail.UG_USER_LIMIT: "limit of the user",
        ChangeDetail.UG_GROUP_LIMIT: "limit of the group",
        ChangeDetail.UG_APP_LINK: "application counted for the group",
        ChangeDetail.UG_USER_RESOURCE: "use of the user",
        ChangeDetail.UG_GROUP_RESOURCE: "use of the group",
    }
)
"""What of the object changed, by the number of the detail."""

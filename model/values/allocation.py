"""An ask and its allocation: one piece of work, first waiting, then placed; and why an ask is refused.

Both are values: nothing changes them once they are made. Their state (reserved, released,
preempted, swapped) is kept by the application that owns them, in `licorne.model.applications.application`.
They are plain classes with slots, not frozen dataclasses, because two of them are made for each decision
and a frozen dataclass takes three times as long to make.

In the older generation of `si.v1` several allocations have the key of one ask, and each has its own
UUID. In the model each allocation has its own key. The two translate into each other by the text alone:

| the RM's key | its UUID | the key of the model |
|---|---|---|
| `k` | `k`, or none | `k` |
| `k` | `k#allocation-2`, given by the scheduler | `k#allocation-2` |
| `k` | `u`, given by an earlier scheduler | `k#allocation:u` |

An RM of the older generation may not have `#allocation` in its keys.

A refusal names what was asked, what was available, and what blocked the ask. The scheduling cycle makes
one and stops. `licorne.model.explanation` answers "why does my application wait?": it walks over all queues,
limits and nodes a second time, with the checks of the cycle. That it agrees with the refusals is checked by
`tests/proxy/play/transcripts/test_explanations_agree.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from ..resources.resource import Resource

REQUIRED_NODE_TAG: Final = "yunikorn.apache.org/requiredNode"
PREDICATE_CLASS_TAG: Final = "licorne/predicate-class"
"""The RM answers for all asks of one class alike, and reports when its answers change."""
WALLTIME_TAG: Final = "walltime"
"""How long the work of an ask, or of each ask of an application, runs at most: a duration, by its owner."""
START_TIME_TAG: Final = "licorne/start-time"
"""When an existing allocation started to run, in seconds since 1970."""
CREATION_TIME_TAG: Final = "creationTime"
CHECKPOINT_TIME_TAG: Final = "checkpointTime"
"""When the work of an allocation was saved last, in seconds since 1970."""
FOREIGN_TAG: Final = "foreign"
UNKNOWN_INSTANCE_TYPE: Final = "UNKNOWN"
PART_MARK: Final = "#allocation"


@final
class Ask:
    """A request of an RM to place an allocation.

    `created_at_ns` is the RM's `creationTime` tag if it is there, else the time of arrival.
    `required_node` is the one node a daemon-set ask may run on, else the empty text; so is `predicate_class`
    for an ask about which the RM answers as for no other.
    """

    __slots__ = (
        "allocation_key",
        "allow_preempt_other",
        "allow_preempt_self",
        "application_id",
        "created_at_ns",
        "originator",
        "placeholder",
        "predicate_class",
        "priority",
        "required_node",
        "resource",
        "tags",
        "task_group_name",
    )

    def __init__(  # noqa: PLR0917 - made for each ask: with keywords it would take three times as long
        self,
        allocation_key: str,
        application_id: str,
        resource: Resource,
        created_at_ns: int,
        priority: int = 0,
        tags: Mapping[str, str] = {},
        task_group_name: str = "",
        placeholder: bool = False,  # noqa: FBT001, FBT002
        originator: bool = False,  # noqa: FBT001, FBT002
        allow_preempt_self: bool = False,  # noqa: FBT001, FBT002
        allow_preempt_other: bool = False,  # noqa: FBT001, FBT002
        required_node: str = "",
        predicate_class: str = "",
    ) -> None:
        self.allocation_key = allocation_key
        self.application_id = application_id
        self.resource = resource
        self.created_at_ns = created_at_ns
        self.priority = priority
        self.tags = tags
        self.task_group_name = task_group_name
        self.placeholder = placeholder
        self.originator = originator
        self.allow_preempt_self = allow_preempt_self
        self.allow_preempt_other = allow_preempt_other
        self.required_node = required_node
        self.predicate_class = predicate_class

    def resized(self, resource: Resource) -> Ask:
        """Return the same ask with another size."""
        return self._with(resource, self.tags)

    def retagged(self, tags: Mapping[str, str]) -> Ask:
        """Return the same ask with other tags; what follows from them otherwise stays."""
        return self._with(self.resource, tags)

    def _with(self, resource: Resource, tags: Mapping[str, str]) -> Ask:
        return Ask(
            allocation_key=self.allocation_key,
            application_id=self.application_id,
            resource=resource,
            created_at_ns=self.created_at_ns,
            priority=self.priority,
            tags=tags,
            task_group_name=self.task_group_name,
            placeholder=self.placeholder,
            originator=self.originator,
            allow_preempt_self=self.allow_preempt_self,
            allow_preempt_other=self.allow_preempt_other,
            required_node=self.required_node,
            predicate_class=self.predicate_class,
        )

    def __repr__(self) -> str:
        return f"Ask({self.allocation_key} of {self.application_id}, {self.resource!r})"


@final
class Allocation:
    """An ask on a node.

    `placeholder_created_at_ns` is set on an allocation that took the place of a placeholder: when that
    placeholder was asked for. For a foreign allocation `ask.application_id` is empty.
    """

    __slots__ = ("ask", "bound_at_ns", "instance_type", "node_id", "placeholder_created_at_ns")

    def __init__(
        self,
        ask: Ask,
        node_id: str,
        bound_at_ns: int,
        instance_type: str = UNKNOWN_INSTANCE_TYPE,
        placeholder_created_at_ns: int | None = None,
    ) -> None:
        self.ask = ask
        self.node_id = node_id
        self.bound_at_ns = bound_at_ns
        self.instance_type = instance_type
        self.placeholder_created_at_ns = placeholder_created_at_ns

    @property
    def allocation_key(self) -> str:
        """The key that the RM and the scheduler know it by."""
        return self.ask.allocation_key

    @property
    def resource(self) -> Resource:
        """The usage of its node, queue and user."""
        return self.ask.resource

    def resized(self, resource: Resource) -> Allocation:
        """Return the same allocation with another size."""
        return self._with(self.ask.resized(resource))

    def retagged(self, tags: Mapping[str, str]) -> Allocation:
        """Return the same allocation with other tags."""
        return self._with(self.ask.retagged(tags))

    def _with(self, ask: Ask) -> Allocation:
        return Allocation(
            ask,
            self.node_id,
            self.bound_at_ns,
            self.instance_type,
            self.placeholder_created_at_ns,
        )

    def in_place_of(self, placeholder: Allocation, time_ns: int) -> Allocation:
        """Return the same allocation after it has taken the place of a placeholder."""
        created_at_ns = placeholder.ask.created_at_ns
        return Allocation(self.ask, self.node_id, time_ns, self.instance_type, created_at_ns)

    def __repr__(self) -> str:
        return f"Allocation({self.ask.allocation_key} of {self.ask.application_id} on {self.node_id})"


def numbered_key(ask_key: str, number: int) -> str:
    """Return the key, and the UUID, of a further part that the scheduler makes of an ask."""
    return f"{ask_key}{PART_MARK}-{number}"


def part_key(ask_key: str, uuid: str) -> str:
    """Return the key of the allocation with this UUID and the ask with that key; one of them may be empty."""
    if not ask_key or uuid in ("", ask_key):
        return ask_key or uuid
    if ask_key_of(uuid) == ask_key and number_of(uuid) > 1:
        return uuid
    return f"{ask_key}{PART_MARK}:{uuid}"


def ask_key_of(key: str) -> str:
    """Return the key of the ask that a part belongs to."""
    return key.partition(PART_MARK)[0] if PART_MARK in key else key


def uuid_of(key: str) -> str:
    """Return the UUID by which an RM knows an allocation."""
    rest = key.partition(PART_MARK)[2]
    return rest[1:] if rest.startswith(":") else key


def number_of(key: str) -> int:
    """Return the number of a part that a scheduler has made, 1 for any other."""
    number = key.partition(PART_MARK)[2]
    return int(number[1:]) if number.startswith("-") and number[1:].isdecimal() else 1


class RefusalReason(Enum):
    """Why an ask or an application is refused. The comment names the scheduler's next action."""

    USER_QUOTA = "Not enough user quota"  # the next shape of ask is tried; no preemption
    QUEUE_QUOTA = "Not enough queue quota"  # preemption is tried where allowed, then the next shape
    NO_NODE_FITS = "No node has room"  # a reservation is made once the ask is old enough
    PREDICATES = "Predicates refused every node with room"  # tried again in the next cycle
    WINDOW = "A window keeps every node with room"  # until time alone lets it start, or after any change
    GANG_ROOM = "No room was found for all of the gang"  # until a node, queue, user or group gains room
    DOMAIN_ROOM = "No domain of nodes has room for all of the gang"  # as above
    GANG_INCOMPLETE = "Not all of the gang has been asked for"  # until the rest is
    REQUIRED_NODE_UNKNOWN = "The required node is unknown"  # tried again when nodes change
    REQUIRED_NODE_FULL = "The required node has no room"  # the node is reserved for the ask
    WOULD_DELAY = "It would delay a job that is promised a start"  # until the promise moves, or a node gains
    WAITS_FOR_PLACEHOLDER = "Waits to replace a placeholder of its task group"  # the placeholder pass
    PROTECTED = "What could be preempted is protected for now"  # tried again when the first of it is not
    QUEUE_APPLICATIONS = "The queue runs its maximum of applications"  # until one of them ends
    USER_APPLICATIONS = "The user runs the maximum of applications"  # until one of them ends
    POLICY = "A policy holds it"  # asked again at the time that it names, else after any change
    DEPENDENCY = "It waits for the end of others"  # until they have ended
    ARRAY_LIMIT = "Its array runs the maximum of applications"  # until one of them ends
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


NO_GANG_ROOM: Final = frozenset({RefusalReason.GANG_ROOM, RefusalReason.DOMAIN_ROOM})
"""The reasons of a gang for which nodes have no room."""


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

"""The messages between a resource manager and the scheduler.

Every message is a frozen value with one meaning. `licorne.proxy.si` reads and writes them as `si.v1`; the
model knows nothing of the wire. Partition names are full names here (`[rm]default`), see
`full_partition_name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias, final

from ..resources.resource import Resource
from .allocation import Allocation
from .dependencies import ApplicationOutcome


class RejectionCode(Enum):
    """The kind of a reason; the names are those of the messages to the RM."""

    INVALID = "INVALID"
    """It makes no sense, whatever the partition has: an empty id, a negative size."""
    PARTITION_UNKNOWN = "PARTITION_UNKNOWN"
    PARTITION_STOPPED = "PARTITION_STOPPED"
    APPLICATION_UNKNOWN = "APPLICATION_UNKNOWN"
    """The application does not exist, or no longer exists: it may have completed just now."""
    APPLICATION_EXISTS = "APPLICATION_EXISTS"
    APPLICATION_ENDS = "APPLICATION_ENDS"
    """The application fails, or its gang has timed out: nothing of the kind is taken now."""
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
    """Return the reason of something that makes no sense, `None` without a sentence."""
    return None if text is None else RejectionReason(RejectionCode.INVALID, text)


class NodeAction(Enum):
    """The action that an RM requests for a node; names and numbers of `si.v1`."""

    UNKNOWN_ACTION_FROM_RM = 0
    CREATE = 1
    UPDATE = 2
    DRAIN_NODE = 3
    DECOMISSION = 4
    DRAIN_TO_SCHEDULABLE = 5
    CREATE_DRAIN = 6

    @property
    def creates(self) -> bool:
        """Whether the node is a new one, also where one of its name was there."""
        return self in (NodeAction.CREATE, NodeAction.CREATE_DRAIN)


class TerminationType(Enum):
    """Why an allocation ends; names and numbers of `si.v1`."""

    UNKNOWN_TERMINATION_TYPE = 0
    STOPPED_BY_RM = 1
    TIMEOUT = 2
    PREEMPTED_BY_SCHEDULER = 3
    PLACEHOLDER_REPLACED = 4
    SCHEDULING_FAILED_ON_RM = 5
    """The RM could not start it on its node: its ask waits again."""


def full_partition_name(name: str, rm_id: str) -> str:
    """Return the name that is unique among all RMs: `[rm]default` for `default` or the empty name."""
    if name.startswith("["):
        return name
    return f"[{rm_id}]{name or 'default'}"


def short_partition_name(full_name: str) -> str:
    """Return the name as the RM writes it: `default` for `[rm]default`."""
    end = full_name.find("]")
    return full_name[end + 1 :] if end > 0 else full_name


# ------------------------------------------------------------------------------------- from the RM
@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The registration of a resource manager with its queue configuration."""

    rm_id: str
    version: str = ""
    policy_group: str = ""
    build_information: Mapping[str, str] = field(default_factory=dict)
    configuration: str = ""
    extra_configuration: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] | None = None
    """The full names of the partitions that are made of the configuration, by updates too; `None` for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUpdate:
    """One node of a node request; `resource` and `occupied` are `None` where the RM sent none."""

    node_id: str
    action: NodeAction
    attributes: Mapping[str, str]
    resource: Resource | None
    unknown_action: int = 0
    """The number of an action that this version does not know; `action` is `UNKNOWN_ACTION_FROM_RM` then."""
    occupied: Resource | None = None
    """The usage by others; foreign allocations come in addition."""
    existing: tuple[AllocationSubmission, ...] = ()
    """The allocations on it when it is created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSubmission:
    """A new application; `placeholder_ask` is `None` or the total of its gang's placeholders."""

    application_id: str
    queue_name: str
    partition: str
    user: str
    groups: tuple[str, ...]
    tags: Mapping[str, str]
    execution_timeout_ms: int
    placeholder_ask: Resource | None
    gang_scheduling_style: str
    looked_up: LookedUp = None
    """The result of the look-up of the user's groups, if the RM sent none."""


@dataclass(frozen=True, slots=True)
class ApplicationRemoval:
    """The removal of an application with all it has; without an outcome it counts as ended well."""

    application_id: str
    partition: str
    outcome: ApplicationOutcome | None = None


@final
class AllocationSubmission:
    """An ask, or with `node_id` an existing, external or foreign allocation.

    A plain class with slots, because one is read for each ask: see `licorne.model.values.allocation`.
    """

    __slots__ = (
        "allocation_key",
        "allow_preempt_other",
        "allow_preempt_self",
        "application_id",
        "node_id",
        "originator",
        "partition",
        "placeholder",
        "priority",
        "resource",
        "tags",
        "task_group_name",
    )

    def __init__(  # noqa: PLR0917 - made for each ask: with keywords it would take three times as long
        self,
        allocation_key: str,
        application_id: str,
        partition: str,
        resource: Resource,
        priority: int,
        tags: Mapping[str, str],
        node_id: str,
        task_group_name: str,
        placeholder: bool,  # noqa: FBT001
        originator: bool,  # noqa: FBT001
        allow_preempt_self: bool,  # noqa: FBT001
        allow_preempt_other: bool,  # noqa: FBT001
    ) -> None:
        self.allocation_key = allocation_key
        self.application_id = application_id
        self.partition = partition
        self.resource = resource
        self.priority = priority
        self.tags = tags
        self.node_id = node_id
        self.task_group_name = task_group_name
        self.placeholder = placeholder
        self.originator = originator
        self.allow_preempt_self = allow_preempt_self
        self.allow_preempt_other = allow_preempt_other

    def with_key(self, allocation_key: str) -> AllocationSubmission:
        """Return the same with another key."""
        return AllocationSubmission(
            allocation_key=allocation_key,
            application_id=self.application_id,
            partition=self.partition,
            resource=self.resource,
            priority=self.priority,
            tags=self.tags,
            node_id=self.node_id,
            task_group_name=self.task_group_name,
            placeholder=self.placeholder,
            originator=self.originator,
            allow_preempt_self=self.allow_preempt_self,
            allow_preempt_other=self.allow_preempt_other,
        )

    def __repr__(self) -> str:
        return f"AllocationSubmission({self.allocation_key} of {self.application_id}, {self.resource!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AllocationSubmission):
            return NotImplemented
        return _submission_values(self) == _submission_values(other)

    def __hash__(self) -> int:
        return hash((self.application_id, self.allocation_key))


_submission_values: Final = attrgetter(
    *(
        "allocation_key",
        "allow_preempt_other",
        "allow_preempt_self",
        "application_id",
        "node_id",
        "originator",
    ),
    *("partition", "placeholder", "priority", "resource", "tags", "task_group_name"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskTerms:
    """The fields of an ask of the older generation besides those of every ask.

    It is not part of the submission of the ask, so that asks of the current generation have no field for it.
    """

    partition: str
    application_id: str
    allocation_key: str
    timeout_ms: int
    """How long each of its allocations may run; not positive: without limit."""
    allocations: int = 1
    """How many allocations are asked for, with those that run already."""


@dataclass(frozen=True, slots=True)
class AllocationRejection:
    """An ask or allocation that the scheduler rejects, and why."""

    allocation_key: str
    application_id: str
    reason: str
    code: RejectionCode = field(default=RejectionCode.INVALID, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The end of an allocation or ask, in either direction; an empty key from the RM means all."""

    partition: str
    application_id: str
    allocation_key: str
    termination: TerminationType
    message: str = ""
    refusal: str = ""
    """Why the scheduler does not carry it out, although all else of its request is; empty for most."""

    def rejection(self) -> AllocationRejection:
        """Return the answer to a release that is refused."""
        return AllocationRejection(self.allocation_key, self.application_id, self.refusal)


class AskRelease(Release):
    """The end of an ask that waits, in either direction; its allocation is not meant, if it has one.

    From the RM an empty key means all asks of the application that wait; without an application, the ask
    with this key is meant, whichever application has it.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UuidRelease(Release):
    """The end of allocations, as an RM of the older generation sends it.

    The UUID names one allocation. Without it all of the ask with the key are meant, and those that wait are
    withdrawn; without both all of the application, and asks that wait stay.
    """

    uuid: str

    def rejection(self) -> AllocationRejection:
        """Return the answer to a release that is refused, which may name its allocation by the UUID alone."""
        return AllocationRejection(self.allocation_key or self.uuid, self.application_id, self.refusal)


# --------------------------------------------------------------------------------------- to the RM
@dataclass(frozen=True, slots=True)
class Rejection:
    """An application or node that the scheduler rejects, and why."""

    subject_id: str
    reason: str
    code: RejectionCode = field(default=RejectionCode.INVALID, compare=False)


@dataclass(frozen=True, slots=True)
class NodesAnswered:
    """The answer to the creations of one node request."""

    accepted: tuple[str, ...]
    rejected: tuple[Rejection, ...]


class ApplicationChanged(NamedTuple):
    """An application entered a state; `message` is the event's name or the reason given with it."""

    application_id: str
    state: str
    time_ns: int
    message: str


@dataclass(frozen=True, slots=True)
class ApplicationsAnswered:
    """The answer to the new applications of one application request.

    A warning names an accepted application, its state and what was ignored of it.
    """

    accepted: tuple[str, ...]
    rejected: tuple[Rejection, ...]
    warnings: tuple[ApplicationChanged, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocationPlaced:
    """An allocation on a node: decided, recovered, placed by the RM or confirmed by a swap."""

    allocation: Allocation


@dataclass(frozen=True, slots=True)
class AllocationsRecovered:
    """Existing allocations of one application that the RM has sent one after the other, in their order."""

    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class AllocationsReleased:
    """Allocations that ended, or that the RM is asked to end and to confirm; and asks that were given up."""

    releases: tuple[Release, ...]


@dataclass(frozen=True, slots=True)
class AllocationsRejected:
    """The asks and allocations of one request that the scheduler rejects."""

    rejections: tuple[AllocationRejection, ...]


@dataclass(frozen=True, slots=True)
class SchedulingStateChanged:
    """An ask that fits every quota waits for room in the cluster: a hint to an autoscaler."""

    application_id: str
    allocation_key: str
    reason: str


Announcement: TypeAlias = (
    NodesAnswered
    | ApplicationsAnswered
    | ApplicationChanged
    | AllocationPlaced
    | AllocationsRecovered
    | AllocationsReleased
    | AllocationsRejected
    | SchedulingStateChanged
)


@dataclass(frozen=True, slots=True)
class User:
    """A user and the groups that the user is in, in the order the resolver or the RM gave."""

    name: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LookUpFailure:
    """A failed look-up of groups; the application is refused with the reason."""

    reason: str


LookedUp: TypeAlias = tuple[str, ...] | LookUpFailure | None
"""Groups with the primary one first, or why they are missing; `None` without a look-up."""


@dataclass(frozen=True, slots=True)
class PredicateQuestion:
    """May an ask run on these nodes?"""

    allocation_key: str
    node_ids: tuple[str, ...]
    """In the order in which the scheduler prefers them; questions of one batch may share one tuple."""
    allocate: bool
    """False for a reservation or for replacing a placeholder, where a node has no room yet."""


@dataclass(frozen=True, slots=True)
class PreemptionQuestion:
    """Up to which of these victims must allocations end before an ask may run on a node?"""

    allocation_key: str
    node_id: str
    victim_keys: tuple[str, ...]
    start_index: int
    """The index of the last victim without which the node has no room; those up to it end in any case."""


@dataclass(frozen=True, slots=True)
class NumberedQuestion:
    """A question with the number that its answer must have. A partition uses each number once."""

    number: int
    question: PredicateQuestion | PreemptionQuestion


@dataclass(frozen=True, slots=True)
class NodesAnswer:
    """The answer to a `PredicateQuestion`."""

    number: int
    refused: Mapping[str, str]
    """The nodes that are refused, with the reasons; all others are allowed."""
    asked: int | None = None
    """How many nodes of the question it is about, the first ones; `None`: all."""


@dataclass(frozen=True, slots=True)
class VictimsAnswer:
    """The answer to a `PreemptionQuestion`."""

    number: int
    index: int | None
    """The index of the last victim that must end, `None` if the node is refused."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No answer will come to a question of either kind."""

    number: int


PredicateAnswer: TypeAlias = NodesAnswer | VictimsAnswer | NoAnswer

"""Applications and tasks, with the states of our pods; `life` has the transitions between the states."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, final

from ...si import si_pb2 as si
from ..mapping.gangs import DeclaredTaskGroup
from ..objects import Pod


class TaskState(Enum):
    """The state of a task, named by the next step for which it waits."""

    NEW = "New"
    """It waits for its claims, its application or its gang: it is not requested yet."""
    ASKED = "Asked"
    """It waits for a node."""
    BINDING = "Binding"
    """It waits for the API server to assign its pod to the node."""
    BOUND = "Bound"
    """It waits for its end."""
    RESERVED = "Reserved"
    """It is a placeholder without a pod in the cluster, on a node of the scheduler; it waits for its end."""
    REJECTED = "Rejected"
    """It waits for the next attempt: the scheduler has rejected it."""
    ORPHAN = "Orphan"
    """It waits for its node: the cluster, or the scheduler, does not have the node of the pod."""
    FAILED = "Failed"
    """It waits for its end: the failure of the pod is being written."""
    ENDED = "Ended"
    """Its pod is gone; no event changes it."""


class TaskEvent(Enum):
    """The events of a task; an event that its state does not know changes nothing."""

    ASK = "nothing blocks it"
    BLOCK = "its claims or its user block it"
    PLACED = "the scheduler has placed it"
    MISPLACED = "the scheduler has placed it although it is elsewhere"
    BOUND = "its pod is on its node"
    RESERVED = "its node is reserved"
    TAKEN = "its pod is on another node than intended"
    BIND_FAILED = "the API server refuses the bind"
    VOLUMES_FAILED = "a claim gets no volume"
    PUT_BACK = "it avoids the node"
    GIVE_UP = "it has failed too often"
    FOUND = "its pod is on a node"
    FOUND_NOWHERE = "its pod is on an unknown node"
    NODE_ADDED = "its node is known now"
    CHANGED = "its pod has another size"
    JUDGED_ANEW = "its pod has another class"
    DROPPED = "the scheduler has dropped it"
    LOST = "the scheduler has lost its application"
    TIMED_OUT = "it has waited too long"
    REJECTED = "the scheduler rejects it, or its request cannot be made"
    RETRY = "its pause is over"
    FAIL = "its gang has failed"
    END = "its pod is gone"


class PodApplicationPhase(Enum):
    """The progress of an application."""

    WAITING = "Waiting"
    """It is not submitted yet: its namespace is unknown, or it was rejected a short time ago."""
    SUBMITTED = "Submitted"
    RESERVING = "Reserving"
    """It is accepted, and its placeholders are asked for; its other pods wait."""
    RUNNING = "Running"
    RESUMING = "Resuming"
    """Its gang has timed out; it runs without a gang when the last placeholder has ended."""
    FAILING = "Failing"
    FAILED = "Failed"
    """The scheduler has ended it; the next pod starts it again."""
    REJECTED = "Rejected"
    ENDED = "Ended"
    """It has no tasks, and is forgotten; the next pod makes another one."""


class PhaseEvent(Enum):
    """The events of an application; an event that its phase does not know changes nothing."""

    SUBMIT = "its namespace is known"
    RESUBMIT = "its request can be made again"
    RETRY = "its pause is over"
    LOST = "the scheduler lacks it"
    RUN = "accepted"
    RUN_EMPTY = "accepted without pods"
    RESERVE = "accepted with a gang"
    COME_LATE = "accepted too late for its gang"
    COME_TOO_LATE = "accepted too late, and its gang is hard"
    COMPLETE = "all placeholders are on nodes"
    PLACEHOLDER_MISSING = "a created placeholder does not appear"
    PLACEHOLDERS_ENDED = "placeholders have ended"
    GANG_TIMED_OUT = "the gang has timed out"
    GANG_REFUSED = "a placeholder cannot be created"
    BEGIN_ANEW = "the scheduler must forget its placeholders"
    POSTPONE = "the request cannot be made"
    REJECT = "rejected"
    FAIL = "it is failing"
    FAILED = "it has failed"
    GANG_FAILED = "its gang has failed"
    DROP = "its last task has ended"
    COMPLETED = "completed"


class LastRejection(NamedTuple):
    """The number of consecutive rejections of an application, the end of its pause, and the reason."""

    times: int
    until: float
    reason: str


@final
@dataclass(slots=True, eq=False)
class PodTask:
    """One of our pods, or a placeholder that has no pod in the cluster."""

    key: str
    """The uid of the pod."""
    application: PodApplication
    pod: Pod
    """The pod in its last state from the watch."""
    group: str = ""
    """The task group, if it belongs to a gang."""
    is_placeholder: bool = False
    is_virtual: bool = False
    """Whether it is a placeholder without a pod in the cluster."""
    state: TaskState = TaskState.NEW
    since: float = 0.0
    """When it came into this state, in seconds of the clock of the loop."""
    node_name: str = ""
    """The node of its placement, from the allocation on."""
    placement: int = 0
    """The number of its placements: an answer about an earlier placement is ignored."""
    ending: si.TerminationType | None = None
    """Why the scheduler has ended it, until the pod is gone and the end is confirmed."""
    rejections: int = 0
    """The number of consecutive rejections by the scheduler."""
    bind_failures: int = 0
    """The number of consecutive failures to bind it."""
    predicate_class: str = ""
    """The class at the last request."""
    is_foreign: bool = False
    """Whether the scheduler counts its pod like one of another scheduler: its application is rejected."""

    @property
    def is_in_core(self) -> bool:
        """Whether the scheduler has it."""
        return self.state in {TaskState.ASKED, TaskState.BINDING, TaskState.BOUND, TaskState.RESERVED}

    @property
    def is_made_again(self) -> bool:
        """Whether a controller creates another pod after its failure."""
        return any(owner.controller for owner in self.pod.metadata.owner_references)

    @property
    def has_node(self) -> bool:
        """Whether it is on a node, or will be soon."""
        return self.state in {TaskState.BINDING, TaskState.BOUND, TaskState.RESERVED, TaskState.ORPHAN}


@final
@dataclass(slots=True, eq=False)
class PodApplication:
    """The pods of one application."""

    application_id: str
    first: Pod
    """The pod that was seen first; it decides queue, user and gang."""
    groups: tuple[DeclaredTaskGroup, ...] = ()
    phase: PodApplicationPhase = PodApplicationPhase.WAITING
    tasks: dict[str, PodTask] = field(default_factory=dict)
    reason: str = ""
    """Why it is rejected or has failed."""
    has_asked: bool = False
    """Whether the scheduler has received any of its tasks."""
    has_given_up_gang: bool = False
    """Whether it runs without a gang, although it has task groups."""
    is_miscounted: bool = False
    """Whether the scheduler counts placeholders that are never placed, so that members would wait for
    them."""
    creating: dict[str, str] = field(default_factory=dict)
    """The task groups of the placeholders that are being created, by the names of the pods."""
    tried_again_at: float = 0.0
    """When a gang was last tried again after a timeout, in seconds since 1970."""
    emptied: int = 0
    """How often its last task has ended."""
    has_failed: bool = False
    """Whether the last of its pods that ran to an end has failed."""

    @property
    def placeholders(self) -> list[PodTask]:
        """Its placeholders that have not ended."""
        return [task for task in self.tasks.values() if task.is_placeholder]

    @property
    def members(self) -> list[PodTask]:
        """Its tasks that are not placeholders."""
        return [task for task in self.tasks.values() if not task.is_placeholder]

    @property
    def has_members(self) -> bool:
        """Whether it has tasks that are not placeholders; mostly the first task decides."""
        return any(not task.is_placeholder for task in self.tasks.values())

    @property
    def is_live(self) -> bool:
        """Whether the scheduler has accepted it, and it has not failed."""
        return self.phase in {
            PodApplicationPhase.RESERVING,
            PodApplicationPhase.RUNNING,
            PodApplicationPhase.RESUMING,
        }

    def may_ask(self, task: PodTask) -> bool:
        """Return whether a task may be requested now."""
        match self.phase:
            case PodApplicationPhase.RUNNING:
                return not task.is_placeholder
            case PodApplicationPhase.RESERVING:
                return task.is_placeholder
            case _:
                return False

    def has_assigned(self) -> bool:
        """Return whether one of its pods is on a node."""
        tasks = (task for task in self.tasks.values() if not task.is_virtual)
        return any(task.pod.spec.node_name or task.has_node for task in tasks)

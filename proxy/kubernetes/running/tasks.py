"""Applications and tasks, with the states of our pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import final

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
    REJECTED = "Rejected"
    """It waits for the next attempt: the scheduler has rejected it."""
    ORPHAN = "Orphan"
    """It waits for its node: the cluster, or the scheduler, does not have the node of the pod."""
    FAILED = "Failed"
    """It waits for its end: the failure of the pod is being written."""


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
    node_name: str = ""
    """The node of its placement, from the allocation on."""
    placement: int = 0
    """The number of its placements: an answer about an earlier placement is ignored."""
    ending: si.TerminationType | None = None
    """Why the scheduler has ended it, until the pod is gone and the end is confirmed."""
    is_gone: bool = False
    rejections: int = 0
    """The number of consecutive rejections by the scheduler."""
    bind_failures: int = 0
    """The number of consecutive failures to bind it."""
    predicate_class: str = ""
    """The class at the last request."""

    @property
    def is_in_core(self) -> bool:
        """Whether the scheduler has it."""
        return self.state in {TaskState.ASKED, TaskState.BINDING, TaskState.BOUND}

    @property
    def is_made_again(self) -> bool:
        """Whether a controller creates another pod after its failure."""
        return any(owner.controller for owner in self.pod.metadata.owner_references)

    @property
    def has_node(self) -> bool:
        """Whether it is on a node, or will be soon."""
        return self.state in {TaskState.BINDING, TaskState.BOUND, TaskState.ORPHAN}


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

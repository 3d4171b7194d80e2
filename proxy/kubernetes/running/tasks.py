"""Applications and tasks: what each pod of ours waits for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import final

from ...si import si_pb2 as si
from ..mapping.gangs import DeclaredTaskGroup
from ..objects import Pod


class TaskState(Enum):
    """What a task waits for, from its first sight to its end."""

    NEW = "New"
    """Its claims, its application or its gang: it is not asked for yet."""
    ASKED = "Asked"
    """A node."""
    BINDING = "Binding"
    """The API server, which is to assign its pod to the node."""
    BOUND = "Bound"
    """Its end."""
    REJECTED = "Rejected"
    """The next attempt: the scheduler has rejected it."""
    ORPHAN = "Orphan"
    """Its node: the pod is assigned to one that the cluster, or the scheduler, does not have."""
    FAILED = "Failed"
    """Its end: it is being written that the pod has failed."""


class PodApplicationPhase(Enum):
    """How far an application is."""

    WAITING = "Waiting"
    """It is not submitted yet: its namespace is not known, or it was rejected a short time ago."""
    SUBMITTED = "Submitted"
    RESERVING = "Reserving"
    """It is accepted, and its placeholders are asked for; its other pods wait."""
    RUNNING = "Running"
    RESUMING = "Resuming"
    """Its gang has timed out; when the last placeholder has ended, it runs without."""
    FAILING = "Failing"
    FAILED = "Failed"
    """The scheduler has ended it; with the next pod it begins anew."""
    REJECTED = "Rejected"


@final
@dataclass(slots=True, eq=False)
class PodTask:
    """One pod of ours, or a placeholder that has no pod in the cluster."""

    key: str
    """The uid of the pod."""
    application: PodApplication
    pod: Pod
    """As the watch has shown it last."""
    group: str = ""
    """The task group, if it is of a gang."""
    is_placeholder: bool = False
    is_virtual: bool = False
    """Whether it is a placeholder without a pod in the cluster."""
    state: TaskState = TaskState.NEW
    node_name: str = ""
    """Where it is placed, from the allocation on."""
    placement: int = 0
    """How often it was placed: an answer about an earlier placement is of no interest."""
    ending: si.TerminationType | None = None
    """Why the scheduler has ended it, until the pod is gone and the end is confirmed."""
    is_gone: bool = False
    rejections: int = 0
    """How often the scheduler has rejected it in a row."""
    bind_failures: int = 0
    """How often it could not be bound in a row."""
    predicate_class: str = ""
    """As it was asked for last."""

    @property
    def is_in_core(self) -> bool:
        """Whether the scheduler knows it."""
        return self.state in {TaskState.ASKED, TaskState.BINDING, TaskState.BOUND}

    @property
    def is_made_again(self) -> bool:
        """Whether a controller makes another pod when this one has failed."""
        return any(owner.controller for owner in self.pod.metadata.owner_references)

    @property
    def has_node(self) -> bool:
        """Whether it is on a node, or about to be."""
        return self.state in {TaskState.BINDING, TaskState.BOUND, TaskState.ORPHAN}


@final
@dataclass(slots=True, eq=False)
class PodApplication:
    """The pods that are one application."""

    application_id: str
    first: Pod
    """The pod that was seen first: queue, user and gang are as it says."""
    groups: tuple[DeclaredTaskGroup, ...] = ()
    phase: PodApplicationPhase = PodApplicationPhase.WAITING
    tasks: dict[str, PodTask] = field(default_factory=dict)
    reason: str = ""
    """Why it is rejected or fails."""
    has_asked: bool = False
    """Whether the scheduler has got any of its tasks."""
    has_given_up_gang: bool = False
    """Whether it runs without a gang, although it has task groups."""
    is_miscounted: bool = False
    """Whether the scheduler counts placeholders that will never be placed: members would wait for them."""
    creating: dict[str, str] = field(default_factory=dict)
    """The task groups of the placeholders that are being created, by the names of the pods."""
    tried_again_at: float = 0.0
    """When a gang that had timed out was tried again, in seconds since 1970."""
    emptied: int = 0
    """How often its last task has ended."""

    @property
    def placeholders(self) -> list[PodTask]:
        """Its placeholders that have not ended."""
        return [task for task in self.tasks.values() if task.is_placeholder]

    @property
    def members(self) -> list[PodTask]:
        """Its tasks that are no placeholders."""
        return [task for task in self.tasks.values() if not task.is_placeholder]

    @property
    def has_members(self) -> bool:
        """Whether it has tasks that are no placeholders; mostly the first one tells."""
        return any(not task.is_placeholder for task in self.tasks.values())

    def may_ask(self, task: PodTask) -> bool:
        """Return whether a task may be asked for now."""
        match self.phase:
            case PodApplicationPhase.RUNNING:
                return not task.is_placeholder
            case PodApplicationPhase.RESERVING:
                return task.is_placeholder
            case _:
                return False

    def has_assigned(self) -> bool:
        """Return whether a pod of it is on a node."""
        tasks = (task for task in self.tasks.values() if not task.is_virtual)
        return any(task.pod.spec.node_name or task.has_node for task in tasks)

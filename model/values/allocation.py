"""An ask and its allocation: one piece of work, first waiting, then placed on a node.

Both are values: nothing changes them once they are made. What changes about them (reserved, released,
preempted, swapped) is kept by the application that owns them, in `licorne.model.applications.application`.
They are plain classes with slots, not frozen dataclasses, because two of them are made for each decision
and a frozen dataclass takes three times as long to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from ..resources.resource import Resource

REQUIRED_NODE_TAG: Final = "yunikorn.apache.org/requiredNode"
PREDICATE_CLASS_TAG: Final = "licorne/predicate-class"
"""The RM answers for all asks of one class alike, and says when its answers change."""
WALLTIME_TAG: Final = "walltime"
"""How long the work of an ask, or of each ask of an application, runs at most: a duration, by its owner."""
START_TIME_TAG: Final = "licorne/start-time"
"""When an existing allocation started to run, in seconds since 1970."""
CREATION_TIME_TAG: Final = "creationTime"
CHECKPOINT_TIME_TAG: Final = "checkpointTime"
"""When the work of an allocation was saved last, in seconds since 1970."""
FOREIGN_TAG: Final = "foreign"
UNKNOWN_INSTANCE_TYPE: Final = "UNKNOWN"


@final
class Ask:
    """What an RM wants placed.

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
        """What it uses of its node, queue and user."""
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
        """Return the same allocation as it is once it has taken the place of a placeholder."""
        created_at_ns = placeholder.ask.created_at_ns
        return Allocation(self.ask, self.node_id, time_ns, self.instance_type, created_at_ns)

    def __repr__(self) -> str:
        return f"Allocation({self.ask.allocation_key} of {self.ask.application_id} on {self.node_id})"

"""The interface of policies: the methods that a policy may have, their arguments, and their answers.

A policy is any object with one or more of these methods; the protocols are for type checkers. Views are
frozen values, made for each question. Quantities are milli-cores, bytes, or counts:
`available.get("vcore")` is 0 for a type that is absent. Times are nanoseconds since 1970. Views may gain
fields at their end, and never lose any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeAlias

from ..resources.resource import Resource

Key: TypeAlias = "int | float | str | tuple[int | float | str, ...]"
"""The place of an object in an order, the smallest first: a number, a text, or a tuple of up to 16 of them.
All keys of one policy have the same kinds of parts; numbers are finite."""


class NodeView(NamedTuple):
    """A node: as it is now, or, for the plan of a gang, as it would be with other work on it."""

    node_id: str
    attributes: Mapping[str, str]
    """The attributes that the resource manager has given the node, `si/instance-type` among them."""
    capacity: Resource
    available: Resource


class AskView(NamedTuple):
    """A request for one allocation."""

    allocation_key: str
    application_id: str
    resource: Resource
    priority: int
    created_at_ns: int
    tags: Mapping[str, str]
    placeholder: bool
    task_group: str
    walltime_ns: int | None
    """The walltime in the tags of the ask itself, `None` without such a tag."""


class VictimView(NamedTuple):
    """An allocation that may have to end so that something else can run."""

    ask: AskView
    node_id: str
    queue: str
    """The path of the leaf that the allocation is counted in."""
    user: str
    bound_at_ns: int
    checkpoint_ns: int | None
    """When the resource manager last reported the work as saved, `None` if it never has."""


class ApplicationView(NamedTuple):
    """An application in its leaf queue."""

    application_id: str
    queue: str
    """The path of the leaf queue."""
    user: str
    groups: tuple[str, ...]
    tags: Mapping[str, str]
    priority: int
    """The highest priority of the waiting asks."""
    submitted_at_ns: int
    pending: Resource
    """The sum of the waiting asks; with `depends_on = {"submission"}` at the moment of the only question."""
    allocated: Resource
    gang: bool
    """Whether a gang waits that is placed as a whole, all members in one result; false once it is placed."""
    walltime_ns: int | None


class SiblingView(NamedTuple):
    """A queue with waiting asks, among its siblings."""

    path: str
    properties: Mapping[str, str]
    """The properties of the queue in the configuration, with the inherited ones."""
    allocated: Resource
    pending: Resource
    guaranteed: Resource
    maximum: Resource | None
    priority: int
    """The highest priority of the waiting asks, as it counts among the siblings."""


class Wait(NamedTuple):
    """The reason why something may not happen yet, and the time of the next question."""

    reason: str
    until_ns: int | None = None
    """Nanoseconds since 1970; `None`: ask again after any change in the partition."""


class NodePolicy(Protocol):
    """Orders the nodes of a partition: `nodesortpolicy: {type: policy/NAME}`."""

    def node_key(self, node: NodeView) -> float:
        """Return the place of a node, smallest first, then by id.

        It is asked when the available resources of the node change.
        """


class NodeFilter(Protocol):
    """Excludes nodes for an ask: `policies: {filters: [NAME]}` of a partition."""

    def refuses(self, ask: AskView, node: NodeView) -> str | None:
        """Return `None` if an ask may run on a node, otherwise why not.

        It is asked whenever the ask may get the node.
        """


class ApplicationPolicy(Protocol):
    """Orders the applications of a leaf: `application.sort.policy: policy/NAME`."""

    def application_key(self, application: ApplicationView) -> Key:
        """Return the place of an application in its leaf, smallest first, then by submission.

        It is asked whenever the application changes; with `depends_on = {"submission"}` only once.
        """


class QueuePolicy(Protocol):
    """Orders the queues below a parent: `queue.sort.policy: policy/NAME`."""

    def queue_key(self, queue: SiblingView) -> Key:
        """Return the place of a queue among its siblings, smallest first, then by name.

        It is asked whenever anything in the queue changes.
        """


class AdmissionPolicy(Protocol):
    """Decides when applications may start: `policies: {admission: [NAME]}` of a partition."""

    def may_start(self, application: ApplicationView, now_ns: int) -> Wait | None:
        """Return `None` if an application may start, otherwise why not, and when to ask again."""


class VictimPolicy(Protocol):
    """Orders possible victims of preemption: `preemption: {victims: policy/NAME}` of a partition."""

    def victim_cost(self, victim: VictimView, now_ns: int) -> int:
        """Return the cost of ending a victim, from 0 to 10^18.

        The cost orders victims that are equal by the other rules: the cheapest ends first.
        """


class ProtectionPolicy(Protocol):
    """Protects running work for a time: `policies: {protection: [NAME]}` of a partition."""

    def spares(self, victim: VictimView, now_ns: int) -> Wait | None:
        """Return `None` if a victim may end, otherwise why not, and when to ask again."""

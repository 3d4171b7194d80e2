"""What a policy may be: the methods that it may have, what they are shown, and what they return.

A policy is any object with one or more of these methods; the protocols are for type checkers. Views are
frozen values, made when a policy is asked. Quantities are milli-cores, bytes, or counts:
`available.get("vcore")` is 0 for a type that is absent. Times are nanoseconds since 1970. Views may gain
fields at their end, and never lose any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeAlias

from ..resources.resource import Resource

Key: TypeAlias = "int | float | str | tuple[int | float | str, ...]"
"""A place in an order, the smallest first: of the same kinds from one policy, and finite."""


class NodeView(NamedTuple):
    """A node, or what one would be with other work on it: plans of gangs ask about such nodes as well."""

    node_id: str
    attributes: Mapping[str, str]
    """Those that the resource manager has given it, `si/instance-type` among them."""
    capacity: Resource
    available: Resource


class AskView(NamedTuple):
    """An ask."""

    allocation_key: str
    application_id: str
    resource: Resource
    priority: int
    created_at_ns: int
    tags: Mapping[str, str]
    placeholder: bool
    task_group: str
    walltime_ns: int | None
    """As the tags of the ask itself name it."""


class VictimView(NamedTuple):
    """An allocation that may have to end so that something else can run."""

    ask: AskView
    node_id: str
    queue: str
    """The path of the leaf that it is counted in."""
    user: str
    bound_at_ns: int
    checkpoint_ns: int | None
    """When its work was saved last, as far as the resource manager has reported it."""


class ApplicationView(NamedTuple):
    """An application in its leaf."""

    application_id: str
    queue: str
    """The path of the leaf."""
    user: str
    groups: tuple[str, ...]
    tags: Mapping[str, str]
    priority: int
    """The highest of the asks that wait."""
    submitted_at_ns: int
    pending: Resource
    """What waits; with `depends_on = {"submission"}` what waited when the policy was asked."""
    allocated: Resource
    gang: bool
    """Nothing of it is placed before all of its gang is, in one result."""
    walltime_ns: int | None


class SiblingView(NamedTuple):
    """A queue with something that waits, among its siblings."""

    path: str
    properties: Mapping[str, str]
    """Those that the configuration gives it, inherited ones included."""
    allocated: Resource
    pending: Resource
    guaranteed: Resource
    maximum: Resource | None
    priority: int
    """The highest of the asks that wait, as it counts among the siblings."""


class Wait(NamedTuple):
    """Why an application may not start yet, and when that may change."""

    reason: str
    until_ns: int | None = None
    """`None`: after any change in the partition."""


class NodePolicy(Protocol):
    """Orders the nodes of a partition: `nodesortpolicy: {type: policy/NAME}`."""

    def node_key(self, node: NodeView) -> float:
        """Return the place of a node, the smallest first; asked when what the node has available changes."""


class NodeFilter(Protocol):
    """Keeps asks from nodes: `policies: {filters: [NAME]}` of a partition."""

    def refuses(self, ask: AskView, node: NodeView) -> str | None:
        """Return why an ask may not run on a node, `None` if it may; asked whenever that is to be known."""


class ApplicationPolicy(Protocol):
    """Orders the applications of a leaf: `application.sort.policy: policy/NAME`."""

    def application_key(self, application: ApplicationView) -> Key:
        """Return the place of an application; asked when it changes, or once with `{"submission"}`."""


class QueuePolicy(Protocol):
    """Orders the queues below a parent: `queue.sort.policy: policy/NAME`."""

    def queue_key(self, queue: SiblingView) -> Key:
        """Return the place of a queue among its siblings; asked when anything in it changes."""


class AdmissionPolicy(Protocol):
    """Says when applications may start: `policies: {admission: [NAME]}` of a partition."""

    def may_start(self, application: ApplicationView, now_ns: int) -> Wait | None:
        """Return `None` if an application may start, else why not, and when it is to be asked again."""


class VictimPolicy(Protocol):
    """Orders what may have to end: `preemption: {victims: policy/NAME}` of a partition."""

    def victim_cost(self, victim: VictimView, now_ns: int) -> int:
        """Return what its end costs, 0 or more; of equals by the other rules the smallest goes first."""


class ProtectionPolicy(Protocol):
    """Spares work for a time: `policies: {protection: [NAME]}` of a partition."""

    def spares(self, victim: VictimView, now_ns: int) -> Wait | None:
        """Return `None` if it may end, else why not, and when that is to be asked again."""

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


class JobView(NamedTuple):
    """A waiting job below a queue that backfills: one ask, or all members of a gang that is placed whole."""

    allocation_key: str
    """The key of its first ask."""
    application: ApplicationView
    sizes: tuple[Resource, ...]
    """The size of each ask."""
    run_time_ns: int | None
    """How long it runs in plans, `None` for ever."""
    priority: int


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


class NodePolicyByClass(NodePolicy, Protocol):
    """Orders the nodes of a partition differently for classes of asks; it has `node_key` as well."""

    def ask_class(self, ask: AskView) -> str:
        """Return the class of an ask, the empty text for the order by `node_key`.

        It is asked for each search of a node. Up to 16 classes have an order of their own.
        """

    def node_key_for(self, ask_class: str, node: NodeView) -> float:
        """Return the place of a node for the asks of a class, smallest first, then by id.

        It is asked in a search about the nodes that have changed since the last one for the class.
        """


class ChangingNodePolicy(NodePolicyByClass, Protocol):
    """A node order by class that depends on more than the node and the class."""

    def class_version(self, ask_class: str) -> str:
        """Return a text of up to 200 characters that changes when a key changes.

        It is asked for each search. After a change `node_key_for` is asked about all nodes.
        """

    def placed(self, ask: AskView, node_id: str) -> None:
        """Note that an ask was placed; the resource manager gets the placement later.

        It is called for every ask of the partition.
        """


class NodeFilter(Protocol):
    """Excludes nodes for an ask: `policies: {filters: [NAME]}` of a partition."""

    def refuses(self, ask: AskView, node: NodeView) -> str | None:
        """Return `None` if an ask may run on a node, otherwise why not.

        It is asked whenever the ask may get the node.
        """


class ClassNodeFilter(NodeFilter, Protocol):
    """A filter with equal answers for all asks of a class."""

    def filter_class(self, ask: AskView) -> str:
        """Return the class of an ask, the empty text if it is in none.

        An answer about a class holds until the node changes.
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


class RunTimePolicy(Protocol):
    """Expects how long work runs: `runtime.expected: policy/NAME` of a leaf."""

    def expected_run_time_ns(self, ask: AskView, application: ApplicationView) -> int | None:
        """Return how long an ask runs in the plans of queues that backfill, `None` for its walltime.

        It is asked once for each ask that is planned, and again after the ask changes. From 1 to 10^18.
        """


class BackfillPolicy(Protocol):
    """Orders the jobs behind those with promises: `backfill.order: policy/NAME` of a queue that backfills."""

    def backfill_key(self, job: JobView) -> Key:
        """Return the place of a job behind those with promises, smallest first, then by age.

        It is asked in each walk that comes to the job.
        """


class PromisePolicy(Protocol):
    """Chooses the jobs that are promised a start: `backfill.promises: policy/NAME`."""

    def promises(self, job: JobView) -> bool:
        """Return whether a job that has to wait may be promised a start.

        It is asked in each walk in which the job could get a promise.
        """


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

"""The documents of resource managers, locks, health, history and the state dump; and of errors."""

from __future__ import annotations

from typing import Annotated, Any, Required

from pydantic import Field
from typing_extensions import TypedDict

from ....model.values.states import ManagerState
from .applications import ApplicationDocument
from .clusters import ClusterDocument, PartitionDocument
from .configurations import ConfigurationDocument
from .fields import TimeNs, values_of
from .nodes import NodeDocument
from .queues import QueueDocument
from .rules import RuleDocument


class ErrorDocument(TypedDict):
    """An error."""

    status_code: int
    """That of the answer."""
    message: str
    description: str
    """The same as the message."""


class ValidationDocument(TypedDict, total=False):
    """Whether a configuration could be used."""

    allowed: Required[bool]
    reason: str
    """All that is wrong, each with line and column; where it is not allowed."""


class ManagedPartitionDocument(TypedDict):
    """A partition of the resource manager."""

    name: str
    nodes: Annotated[int, Field(ge=0)]
    applications: Annotated[int, Field(ge=0)]
    """Those that are active."""
    allocations: Annotated[int, Field(ge=0)]


class ManagerDocument(TypedDict):
    """A resource manager."""

    rmID: str
    state: Annotated[str, values_of(ManagerState)]
    since: int
    """When it entered the state."""
    reason: str
    """Why it was paused or stopped; empty while it runs."""
    lost: bool
    """Its connection was lost."""
    connection: str
    """How it is connected."""
    buildInformation: dict[str, str]
    callbacksWaiting: Annotated[int, Field(ge=0)]
    partitions: list[ManagedPartitionDocument]


class LockClassDocument(TypedDict):
    """A class of locks."""

    name: str
    leaf: bool
    """No other lock is taken while it is held."""
    exclusive: bool
    """A thread holds one of this class at most."""


class LocksDocument(TypedDict):
    """The classes of locks, and the orders in which they are taken."""

    classes: list[LockClassDocument]
    declared: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    """Pairs of classes, the second of which may be taken while the first is held."""
    observed: list[Annotated[list[str | int], Field(min_length=3, max_length=3)]] | None
    """Likewise what was observed, with how often; null in a process that does not check its locks."""


class CheckDocument(TypedDict):
    """One check of the health."""

    Name: str
    Succeeded: bool
    Description: str
    DiagnosisMessage: str


class HealthDocument(TypedDict):
    """What the checks of the health found."""

    Healthy: bool
    HealthChecks: list[CheckDocument]


class ApplicationCountDocument(TypedDict):
    """How many applications there were at a moment."""

    timestamp: TimeNs
    totalApplications: str
    """A number as a text."""


class ContainerCountDocument(TypedDict):
    """How many allocations there were at a moment."""

    timestamp: TimeNs
    totalContainers: str
    """A number as a text."""


class DumpedNodesDocument(TypedDict):
    """The nodes of a partition."""

    partitionName: str
    nodesInfo: list[NodeDocument]


class DumpedRulesDocument(TypedDict):
    """The placement rules of a partition."""

    partition: str
    rules: list[RuleDocument]


class OpenStreamDocument(TypedDict):
    """A stream of events that is open."""

    Name: str
    """The host that reads it."""
    CreatedAt: str
    """When it began, as a text."""


class StateDumpDocument(TypedDict, total=False):
    """All documents of a scheduler."""

    timestamp: Required[TimeNs]
    partitions: Required[list[PartitionDocument]]
    applications: Required[list[ApplicationDocument]]
    appHistory: Required[list[ApplicationCountDocument]]
    nodes: Required[list[DumpedNodesDocument]]
    clusterInfo: Required[list[ClusterDocument]]
    containerHistory: Required[list[ContainerCountDocument]]
    queues: Required[list[QueueDocument]]
    rmDiagnostics: Required[dict[str, Any]]
    """What the resource managers say of their own state."""
    logLevel: Required[str]
    config: ConfigurationDocument
    eventStreams: list[OpenStreamDocument]
    placementRules: Required[list[DumpedRulesDocument]]

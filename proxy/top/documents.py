"""The documents of the REST interface, as far as they are shown.

Keys that a server leaves out are empty here, and keys that are not shown are passed over: servers of other
versions may have more. Times are in nanoseconds since 1970, and quantities are raw numbers.
"""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar, final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from .errors import ServerReadError

__all__ = [
    "ExplanationDocument",
    "HealthDocument",
    "NodeDocument",
    "Quantities",
    "ReadApplication",
    "ReadAsk",
    "ReadBatch",
    "ReadEvent",
    "ReadManager",
    "ReadPartition",
    "ReadQueue",
    "UsageDocument",
    "UsageOwner",
    "UtilizationDocument",
    "understood",
]

_Read = TypeVar("_Read")
_PROBLEMS_MAX: Final = 3

Quantities: TypeAlias = dict[str, int]
"""Quantities by the type of resource."""


class _ReadDocument(BaseModel):
    """A document whose missing keys are empty, also those that are null."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, document: object) -> object:
        if isinstance(document, dict) and None in document.values():
            return {key: value for key, value in document.items() if value is not None}
        return document


@final
class CapacityDocument(_ReadDocument):
    """What a partition has, and how much of it is used; the utilization is in percent."""

    capacity: Quantities = {}
    used_capacity: Quantities = {}
    utilization: Quantities = {}


@final
class ReadPartition(_ReadDocument):
    """A partition."""

    name: str
    cluster_id: str = ""
    state: str = ""
    capacity: CapacityDocument = CapacityDocument()
    total_nodes: int = 0
    total_containers: int = 0
    applications: dict[str, int] = {}


@final
class ReadManager(_ReadDocument):
    """A resource manager of a server of Licorne."""

    rm_id: str = Field("", alias="rmID")
    state: str = ""
    since: int = 0
    reason: str = ""


@final
class ReadQueue(_ReadDocument):
    """A queue with those below it."""

    queuename: str
    status: str = ""
    is_leaf: bool = False
    is_managed: bool = True
    pending_resource: Quantities = {}
    max_resource: Quantities = {}
    guaranteed_resource: Quantities = {}
    allocated_resource: Quantities = {}
    preempting_resource: Quantities = {}
    headroom: Quantities = {}
    max_running_apps: int = 0
    running_apps: int = 0
    sorting_policy: str = ""
    properties: dict[str, str] = {}
    children: list[ReadQueue] = []


@final
class AllocationDocument(_ReadDocument):
    """An allocation on a node."""

    allocation_key: str
    application_id: str = ""
    node_id: str = ""
    resource: Quantities = {}
    placeholder: bool = False


@final
class NodeDocument(_ReadDocument):
    """A node with what is placed on it; the use is in percent."""

    node_id: str = Field(alias="nodeID")
    host_name: str = ""
    attributes: dict[str, str] = {}
    capacity: Quantities = {}
    allocated: Quantities = {}
    occupied: Quantities = {}
    available: Quantities = {}
    schedulable: bool = True
    is_reserved: bool = False
    allocations: list[AllocationDocument] = []
    reservations: list[str] = []


@final
class AskMessage(_ReadDocument):
    """Why an ask was not placed, and how often."""

    message: str = ""
    count: int = 0


@final
class ReadAsk(_ReadDocument):
    """An ask that has no allocation yet."""

    allocation_key: str
    resource: Quantities = {}
    priority: str = ""
    required_node_id: str = ""
    placeholder: bool = False
    allocation_log: list[AskMessage] = []


@final
class StateEntry(_ReadDocument):
    """When an application came into a state."""

    time: int = 0
    application_state: str = ""


@final
class ReadApplication(_ReadDocument):
    """An application with its asks and allocations."""

    application_id: str = Field(alias="applicationID")
    queue_name: str = ""
    application_state: str = ""
    user: str = ""
    groups: list[str] = []
    used_resource: Quantities = {}
    pending_resource: Quantities = {}
    submission_time: int = 0
    rejected_message: str = ""
    requests: list[ReadAsk] = []
    allocations: list[AllocationDocument] = []
    state_log: list[StateEntry] = []
    reservations: list[str] = []


@final
class UsageDocument(_ReadDocument):
    """What a user or a group uses in a queue, and those below it, against its limits there."""

    queue_path: str
    resource_usage: Quantities = {}
    max_resources: Quantities = {}
    max_applications: int = 0
    running_applications: list[str] = []
    children: list[UsageDocument] = []


@final
class UsageOwner(_ReadDocument):
    """A user or a group; the name that does not apply is empty."""

    user_name: str = ""
    group_name: str = ""
    queues: UsageDocument | None = None


@final
class CheckDocument(_ReadDocument):
    """One check of the health."""

    name: str = Field("", alias="Name")
    succeeded: bool = Field(alias="Succeeded")
    diagnosis: str = Field("", alias="DiagnosisMessage")


@final
class HealthDocument(_ReadDocument):
    """What the checks of the health found."""

    healthy: bool = Field(alias="Healthy")
    checks: list[CheckDocument] = Field([], alias="HealthChecks")


@final
class BucketDocument(_ReadDocument):
    """How many nodes use a tenth of their capacity, such as 10-20 %."""

    bucket_name: str
    num_of_nodes: int = 0


@final
class TypeUtilization(_ReadDocument):
    """The nodes by their use of one type of resource."""

    type: str
    utilization: list[BucketDocument] = []


@final
class UtilizationDocument(_ReadDocument):
    """The nodes of a partition by their use."""

    cluster_id: str = ""
    partition: str = ""
    utilizations: list[TypeUtilization] = []


@final
class ReadEvent(_ReadDocument):
    """An event; its numbers are those of the interface."""

    type: int = 0
    object_id: str = Field("", alias="objectID")
    reference_id: str = Field("", alias="referenceID")
    message: str = ""
    timestamp_nano: int = 0
    event_change_type: int = 0
    event_change_detail: int = 0


@final
class ReadBatch(_ReadDocument):
    """Events whose ids follow each other, and the ids that the server still has."""

    instance: str = Field("", alias="InstanceUUID")
    lowest_id: int = Field(0, alias="LowestID")
    highest_id: int = Field(0, alias="HighestID")
    records: list[ReadEvent] = Field([], alias="EventRecords")


@final
class SettingDocument(_ReadDocument):
    """A line of the configuration."""

    line: int
    text: str = ""


@final
class LackDocument(_ReadDocument):
    """What is missing of one type of resource."""

    text: str


@final
class BlockerDocument(_ReadDocument):
    """One reason why an application or ask waits, and what would have to change."""

    text: str
    setting: SettingDocument | None = None
    lacks: list[LackDocument] = []
    changes: list[str] = []


@final
class WaitingDocument(_ReadDocument):
    """Asks that wait for the same reasons."""

    text: str
    blockers: list[BlockerDocument] = []
    nodes: list[str] = []


@final
class ExplanationDocument(_ReadDocument):
    """Why an application waits, in sentences."""

    headline: str = ""
    rejection: str = ""
    draining: bool = False
    blockers: list[BlockerDocument] = []
    waiting: list[WaitingDocument] = []
    more: int = 0


def understood(adapter: TypeAdapter[_Read], body: bytes, where: str) -> _Read:
    """Read a document.

    Args:
        adapter: What it is.
        body: The JSON text.
        where: What was asked, for the error.

    Raises:
        ServerReadError: It is no JSON, or not such a document.
    """
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        places = [f"{'.'.join(map(str, problem['loc'])) or 'all'}: {problem['msg']}" for problem in problems]
        more = f"; and {len(places) - _PROBLEMS_MAX} more" if len(places) > _PROBLEMS_MAX else ""
        raise ServerReadError(
            f"the answer of {where} cannot be read: {'; '.join(places[:_PROBLEMS_MAX])}{more}"
        ) from error

"""The documents of explanations, dry runs and the asks that are tried next, as data."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from ....model.applications.ask_walk import TryingPass
from ....model.explanation.blockers import NodeObstacle, SubjectKind
from ....model.explanation.values import AskStatus
from .applications import PreemptionDocument, VictimDocument
from .declarations import (
    ApplicationStateName,
    Int64Message,
    Names,
    Quantities,
    SettingPlace,
    Texts,
    TimeNs,
    names_of,
    values_of,
)


class BlockerDocument(TypedDict):
    """A blocker of an ask or an application, and the change that would remove it."""

    reason: str
    """Its name, such as `QUEUE_QUOTA`."""
    kind: Annotated[str, values_of(SubjectKind)]
    subject: str
    """Its subject: the path of a queue, the name of a user, the id of a node."""
    queueName: str
    """The queue of a limit; empty for other blockers."""
    text: str
    """The same as a person reads it."""
    lacks: list[LackDocument]
    withheld: NotRequired[list[str]]
    """The amounts that other queues keep back of their guarantees, as text; absent if there are none."""
    position: SettingPlace | None
    until: TimeNs | None
    changes: list[str]
    """The change that would remove it."""


class LackDocument(TypedDict):
    """The missing amount of one type of resource."""

    type: str
    """The type of resource."""
    asked: int
    available: int
    limit: int
    missing: int
    position: SettingPlace | None
    path: str | None
    """The place of the limit in the YAML of the configuration."""


class PlaceDocument(TypedDict):
    """A place in an order, from 1."""

    subject: str
    among: str
    number: int
    of: int
    ahead: list[str]
    """The first of those that go before."""
    order: str
    """The rule of the order in words."""
    position: SettingPlace | None


class RuleAnswerDocument(TypedDict):
    """The answer of a placement rule."""

    number: int
    rule: str
    why: str
    position: SettingPlace | None


class RefusingNodesDocument(TypedDict):
    """The nodes that refuse for one reason."""

    reason: Annotated[str, names_of(NodeObstacle)]
    nodes: int
    types: dict[str, int]
    """How many nodes lack which type."""
    examples: Names
    reservedFor: Names
    foreign: NotRequired[Names]
    """Those of the examples that would have room without the work of other schedulers; absent if none."""


class NearestNodeDocument(TypedDict):
    """The node that lacks least."""

    nodeID: str
    missing: Quantities
    foreign: NotRequired[Quantities]
    """The use by other schedulers of the types that are missing; absent if zero."""


class NodeAnswersDocument(TypedDict):
    """The answers of nodes about an ask."""

    total: int
    withRoom: int
    first: str | None
    """The node that would be taken."""
    refusing: list[RefusingNodesDocument]
    nearest: NearestNodeDocument | None
    available: int
    """How many nodes the ask could use now."""
    reasons: dict[str, int]
    """How many of the other nodes have which first reason; each node counts once."""


class ExplainedTaskGroupDocument(TypedDict):
    """A task group of the gang."""

    taskGroupName: str
    placeholders: int
    waiting: int
    placed: int
    replaced: int
    ended: int


class GangDocument(TypedDict):
    """The state of a gang: its members, and those it waits for."""

    announced: Quantities
    placed: Quantities
    style: Literal["Hard", "Soft"]
    taskGroups: list[ExplainedTaskGroupDocument]


class ProspectDocument(TypedDict):
    """The preemption for an ask, or why there would be none."""

    allocationKey: str
    whyNot: str | None
    """Why nothing would be preempted."""
    due: TimeNs | None
    preemption: PreemptionDocument | None


class ExplainedDocument(TypedDict):
    """An explanation."""

    time: TimeNs
    partition: str
    """Its full name."""
    applicationID: str
    state: ApplicationStateName
    stateText: str
    """The reason for the state."""
    stateSince: TimeNs | None
    submissionTime: TimeNs
    finishedTime: TimeNs | None
    user: str
    groups: Names
    limitGroup: str
    """The group whose limits count; empty without one."""
    queueName: str
    queueIsDraining: bool
    rejection: str
    rules: list[RuleAnswerDocument]
    blockers: list[BlockerDocument]
    """The blockers of all asks."""
    places: list[PlaceDocument]
    gang: GangDocument | None
    asks: list[ExplainedAskDocument]
    preemptions: list[PreemptionDocument]
    preemptionLoops: int


class ExplanationDocument(ExplainedDocument):
    """Why an application is where it is, and what it waits for."""

    wouldPreempt: list[ProspectDocument]
    """The preemption for waiting asks, for the first one of each shape."""


class NotedDocument(TypedDict):
    """The notes of cycles on an ask."""

    text: str
    count: int
    last: TimeNs


class ExplainedAskDocument(TypedDict):
    """An ask, and why it waits."""

    allocationKey: str
    status: Annotated[str, names_of(AskStatus)]
    resource: Quantities
    priority: int
    createTime: TimeNs
    placeholder: bool
    taskGroupName: str
    requiredNode: str
    nodeID: str | None
    reservedNode: str | None
    place: PlaceDocument | None
    blockers: list[BlockerDocument]
    nodes: NodeAnswersDocument | None
    noted: list[NotedDocument]
    """The notes of cycles on it."""
    sentence: NotRequired[str]
    """Why it waits, in one line; absent if it does not wait."""
    plannedStart: NotRequired[PlannedStartDocument]
    """When it is expected to start; absent where nothing is planned for it."""
    ending: NotRequired[list[VictimDocument]]
    """Its victims whose end the RM has not confirmed; absent without any."""
    endingSince: NotRequired[TimeNs | None]
    """When it preempted that."""


class PlannedStartDocument(TypedDict):
    """When an ask is expected to start, if all that runs ends when it is expected to."""

    time: TimeNs | None
    """Null if it is unknown."""
    nodeID: str | None
    """The node; null without a time."""
    isPromised: bool
    """No ask behind it may start if that would delay it."""
    passed: int
    """How many later comers have delayed its promise for the sake of shares."""
    passesLeft: int | None
    """How many more may; 0 for a promise that stands, null without a promise."""
    whyNot: str | None
    """Why the time is unknown."""


class DryRunUserDocument(TypedDict, total=False):
    """The user of an application."""

    user: str
    groups: Names


class DryRunApplicationDocument(TypedDict, total=False):
    """An `AddApplicationRequest`."""

    applicationID: str
    queueName: str
    partitionName: str
    """`default` unless it is given."""
    ugi: DryRunUserDocument
    tags: Texts
    executionTimeoutMilliSeconds: Int64Message
    placeholderAsk: ResourceMessageDocument
    gangSchedulingStyle: str


class DryRunPolicyDocument(TypedDict, total=False):
    """Whether an ask may preempt and be preempted."""

    allowPreemptSelf: bool
    allowPreemptOther: bool


class DryRunAskDocument(TypedDict, total=False):
    """An `Allocation` without a node."""

    allocationKey: str
    applicationID: str
    partitionName: str
    """`default` unless it is given."""
    resourcePerAlloc: ResourceMessageDocument
    priority: Annotated[int, Field(ge=-2147483648, le=2147483647)]
    allocationTags: Texts
    taskGroupName: str
    placeholder: bool
    originator: bool
    nodeID: str
    """Empty."""
    UUID: str
    preemptionPolicy: DryRunPolicyDocument


@with_config(
    ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["application"]}, {"required": ["ask"]}]},
        use_attribute_docstrings=True,
    )
)
class DryRunRequestDocument(TypedDict, total=False):
    """A new application, a new ask, or both; messages of `si.v1` in JSON."""

    rm: str
    """The resource manager that would send it; needed where several have registered."""
    application: DryRunApplicationDocument
    """An `AddApplicationRequest`."""
    ask: DryRunAskDocument
    """An `Allocation` without a node; with `application` it is its first ask."""


class QuantityMessageDocument(TypedDict, total=False):
    """One quantity."""

    value: Int64Message


class ResourceMessageDocument(TypedDict, total=False):
    """A `Resource` of `si.v1`."""

    resources: dict[str, QuantityMessageDocument]


class DryRunAnswerDocument(TypedDict):
    """The outcome for the ask."""

    allocationKey: str
    resource: Quantities
    priority: int
    place: PlaceDocument | None
    blockers: list[BlockerDocument]
    nodes: NodeAnswersDocument | None
    plannedStart: NotRequired[PlannedStartDocument]
    """When it would be expected to start; absent where nothing is planned for it."""


class DryRunDocument(TypedDict):
    """The outcome for an application and its ask."""

    time: TimeNs
    partition: str
    """Its full name."""
    applicationID: str
    isNew: bool
    user: str
    groups: Names
    limitGroup: str
    """The group whose limits would count; empty without one."""
    queueName: str
    """Where it would go; empty if it would be rejected."""
    queuesMade: list[str]
    """Queues that would be made for it."""
    rejection: str
    """Why it would be rejected; empty if it would not."""
    rules: list[RuleAnswerDocument]
    place: PlaceDocument | None
    blockers: list[BlockerDocument]
    ask: DryRunAnswerDocument | None
    nodeID: str | None
    """The node that it would be placed on; null if it would wait."""


_PassOfAsk = TypedDict("_PassOfAsk", {"pass": Annotated[str, names_of(TryingPass)]})


class NextAskDocument(_PassOfAsk):
    """An ask in the order in which asks are tried."""

    queueName: str
    applicationID: str
    allocationKey: str
    resource: Quantities
    priority: int
    createTime: TimeNs
    placeholder: bool
    taskGroupName: str
    requiredNode: str | None
    reservedNode: str | None


class NextAsksDocument(TypedDict):
    """The asks that are tried next, in order."""

    time: TimeNs
    partition: str
    """Its full name."""
    blockers: list[BlockerDocument]
    """Why no ask is tried now."""
    asks: Annotated[list[NextAskDocument], Field(max_length=250)]


class SettingDocument(TypedDict):
    """The line of the configuration behind something."""

    line: int
    column: int
    path: str
    text: str


class LineDocument(TypedDict):
    """A sentence, with the line of the configuration behind it."""

    text: str
    setting: SettingDocument | None


class BlockerLineDocument(TypedDict):
    """A blocker, in sentences."""

    text: str
    setting: SettingDocument | None
    lacks: list[LineDocument]
    changes: list[str]


class WaitingDocument(TypedDict):
    """Asks that wait for the same reasons."""

    key: str
    text: str
    sentence: str
    """Why they wait, in one line."""
    free: bool
    """Nothing blocks them."""
    reserved: str
    """The node that is reserved for it; empty without one."""
    ending: NotRequired[str]
    """The victims that it waits for, and since when; absent without any."""
    blockers: list[BlockerLineDocument]
    nodes: list[str]
    start: NotRequired[str]
    """When they are expected to start, or why that is unknown; absent where nothing is planned."""
    noted: list[str]


class VictimLineDocument(TypedDict):
    """A victim, in sentences."""

    title: str
    why: str


class ProspectLinesDocument(TypedDict):
    """The preemption for an ask, in sentences."""

    text: str
    why: str
    victims: list[VictimLineDocument]


class PreemptionLinesDocument(TypedDict):
    """A preemption, in sentences."""

    text: str
    lines: list[str]


class SentencesDocument(TypedDict):
    """An explanation in sentences."""

    applicationID: str
    headline: str
    state: ApplicationStateName
    rejection: str
    draining: bool
    rules: list[LineDocument]
    blockers: list[BlockerLineDocument]
    places: list[LineDocument]
    waiting: list[WaitingDocument]
    """Asks that wait, those with one answer together."""
    more: int
    """How many groups of asks are not shown."""
    victims: list[ProspectLinesDocument]
    others: list[str]
    preemptions: list[PreemptionLinesDocument]
    loops: int

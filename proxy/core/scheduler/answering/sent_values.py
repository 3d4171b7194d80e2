"""The answers to questions as JSON text, and back: a client makes the objects that a scheduler has.

An object is written with the name of its kind in `_KINDS`, never with the module that it is in, and with its
fields by their names. A reader ignores fields that it does not know, and takes the defaults of those that are
missing. A kind or a field that is renamed, or a new field without a default, makes a new version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Final

from .....actors.engines.engine import EngineLoad
from .....model.applications.ask_walk import TryingPass
from .....model.applications.effects import ApplicationState
from .....model.applications.report import Noted, TaskGroupCounts
from .....model.configuration.extra import ExtraConfig, LogLevel
from .....model.configuration.policies import (
    BackfillOrder,
    FairCount,
    GangPlacing,
    MinRuntimeScope,
    PreemptionPolicy,
    PreemptionWithin,
    PriorityPolicy,
)
from .....model.configuration.problems import Position
from .....model.configuration.queue_properties import (
    BackfillSettings,
    DisruptionBudget,
    QueueProperties,
    RuntimeSettings,
)
from .....model.errors import LicorneError
from .....model.explanation.blockers import (
    Blocker,
    Lack,
    NearMiss,
    NodeObstacle,
    NodeSummary,
    NodeTally,
    SubjectKind,
)
from .....model.explanation.dry_run import DryRun, NextAsk, NextAsks, Prospect
from .....model.explanation.planned_starts import PlannedStart
from .....model.explanation.values import AskExplanation, AskStatus, Explanation, Gang, Place
from .....model.placement.rules import RuleOutcome
from .....model.policies.watching import PolicyFailure, PolicyFigures
from .....model.queues.queue import QueueTemplate
from .....model.queues.quota import Withheld
from .....model.resources.resource import Resource
from .....model.state.counters import HistogramFigures, TimedPart
from .....model.state.partition_state import BrokenKind, Quarantined
from .....model.state.preemption_log import (
    FramePriorities,
    Justification,
    NodeBalance,
    PreemptionCause,
    PreemptionRecord,
    Preemptor,
    QueueBalance,
    VictimNeed,
    VictimRecord,
)
from .....model.values.allocation import Ask, RefusalReason
from .....model.values.documents import Json
from .....model.values.messages import User
from .....model.values.states import ManagerState, ObjectState
from .....model.views.rows import NodeRow, PartitionFigures
from .....model.views.shown import QueueView
from ...health import HealthCheck, HealthReport
from ...metrics.figures import EventCounters, ManagerFigures, SchedulerFigures, SentCounts
from ..managers.manager_life import ManagerStatus
from .questions import QueueAndUser

VALUE_VERSION: Final = 2
"""The version of what is written here; `Question.value_version` of `licorne.v1` asks for it."""

_ENUMS: Final[tuple[type[Enum], ...]] = (
    ApplicationState,
    AskStatus,
    BackfillOrder,
    BrokenKind,
    GangPlacing,
    FairCount,
    LogLevel,
    ManagerState,
    MinRuntimeScope,
    NodeObstacle,
    ObjectState,
    PreemptionCause,
    PreemptionPolicy,
    PreemptionWithin,
    PriorityPolicy,
    RefusalReason,
    SubjectKind,
    TimedPart,
    TryingPass,
    VictimNeed,
)
_VALUES: Final[tuple[type, ...]] = (
    Ask,
    AskExplanation,
    BackfillSettings,
    Blocker,
    DisruptionBudget,
    DryRun,
    EngineLoad,
    EventCounters,
    Explanation,
    ExtraConfig,
    FramePriorities,
    Gang,
    HealthCheck,
    HealthReport,
    HistogramFigures,
    Justification,
    Lack,
    ManagerFigures,
    ManagerStatus,
    NearMiss,
    NextAsk,
    NextAsks,
    NodeBalance,
    NodeSummary,
    NodeTally,
    NodeRow,
    Noted,
    PlannedStart,
    PartitionFigures,
    Place,
    PolicyFailure,
    PolicyFigures,
    Position,
    PreemptionRecord,
    Prospect,
    Quarantined,
    QueueAndUser,
    QueueBalance,
    QueueProperties,
    QueueTemplate,
    QueueView,
    RuleOutcome,
    RuntimeSettings,
    SchedulerFigures,
    Preemptor,
    SentCounts,
    TaskGroupCounts,
    User,
    VictimRecord,
    Withheld,
)
_ASK_REQUIRED: Final = ("allocation_key", "application_id", "resource", "created_at_ns")
_ASK_OPTIONAL: Final = (
    "priority",
    "tags",
    "task_group_name",
    "placeholder",
    "originator",
    "allow_preempt_self",
    "allow_preempt_other",
    "required_node",
)
"""`Ask` is neither a data class nor a named tuple, since one is made for each ask."""
_KINDS: Final[Mapping[str, type]] = {kind.__name__: kind for kind in (*_ENUMS, *_VALUES)}


def value_to_json(value: object) -> str:
    """Return a value as JSON text.

    Raises:
        TypeError: Something in it is not a value that can be sent.
    """
    return json.dumps(_tree(value), ensure_ascii=False, separators=(",", ":"))


def value_from_json(text: str) -> Any:
    """Return the value of a text that `value_to_json` has written.

    Raises:
        LicorneError: The text is not one.
    """
    try:
        return _value(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LicorneError(f"the answer of the scheduler cannot be read: {error!r}, {text!r:.200}") from error


def fields_of_kinds() -> dict[str, list[str]]:
    """Return the fields of each kind that is sent, or the members of an enumeration; `?` marks a default."""
    shown = {kind.__name__: [member.name for member in kind] for kind in _ENUMS}
    for kind in _VALUES:
        defaults = _defaults(kind)
        shown[kind.__name__] = [f"{name}?" if name in defaults else name for name in _fields(kind)]
    return dict(sorted(shown.items()))


def _tree(value: object) -> Json:
    kind = type(value)
    if isinstance(value, Enum):
        return {"kind": _name(kind), "of": value.name}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Resource):
        return {"kind": "Resource", "of": dict(value.items())}
    if kind is tuple:
        return [_tree(each) for each in value]  # type: ignore[attr-defined]
    if isinstance(value, Mapping):
        return {"kind": "mapping", "of": [[_tree(key), _tree(each)] for key, each in value.items()]}
    return {"kind": _name(kind), "of": {name: _tree(getattr(value, name)) for name in _fields(kind)}}


def _name(kind: type) -> str:
    if _KINDS.get(kind.__name__) is not kind:
        raise TypeError(f"a {kind.__name__} is not a value that can be sent")
    return kind.__name__


def _fields(kind: type) -> tuple[str, ...]:
    if kind is Ask:
        return _ASK_REQUIRED + _ASK_OPTIONAL
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else kind._fields  # type: ignore[attr-defined]


def _defaults(kind: type) -> frozenset[str]:
    """Return the fields of a kind that have defaults."""
    if kind is Ask:
        return frozenset(_ASK_OPTIONAL)
    if not is_dataclass(kind):
        return frozenset(kind._field_defaults)  # type: ignore[attr-defined]
    return frozenset(
        each.name
        for each in fields(kind)
        if each.default is not MISSING or each.default_factory is not MISSING
    )


def _value(tree: Any) -> object:
    if isinstance(tree, list):
        return tuple(_value(each) for each in tree)
    if not isinstance(tree, dict):
        return tree
    name, of = tree["kind"], tree["of"]
    if name == "Resource":
        return Resource(of)
    if name == "mapping":
        return {_value(key): _value(each) for key, each in of}
    kind = _KINDS[name]
    if issubclass(kind, Enum):
        return kind[of]
    return kind(**{name: _value(of[name]) for name in _fields(kind) if name in of})

"""A hand-written scenario in its YAML file: one strict model for each mapping.

name: a day                      # optional, default the name of the file
nodes:
  - count: 20
    prefix: small                # node ids are small-1, small-2, ...
    resources: {vcore: 16, memory: 64Gi}
    attributes: {rack: r1}       # optional
queues: [...]                    # optional, as in queues.yaml below a partition; so are
nodesortpolicy: {...}            # placementrules, limits, windows and preemption
applications:
  - name: etl                    # application ids are etl-1, etl-2, ...
    count: 12                    # default 1
    queue: root.batch
    user: anna
    groups: [data]               # optional
    submit: 30m                  # submission of the first one, default 0
    every: 10m                   # interval to the next ones, default all at once
    gang: soft                   # or hard; by default tasks start one by one
    tags: {array: etl, arrayLimit: 4}   # optional
    fails: true                  # how it ends, for those that wait for it; default false
    tasks:
      - count: 8                 # default 1
        resources: {vcore: 500m, memory: 4Gi}
        duration: 5m..20m        # random between the two, or one duration; absent: to the end
        after: 1m                # time of their asks after the application; default 0
        priority: 10             # default 0
events:                          # optional: changes of nodes, each event with one of add, remove,
  - at: 2h                       # drain and restore
    add: {prefix: new, resources: {vcore: 16}}
  - at: 3h
    remove: [small-1]            # or one name
    again: true                  # its work is asked for again, default false
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic_core import ErrorDetails, PydanticCustomError

from .....model.configuration.durations import DurationError, parse_duration_ns
from .....model.configuration.names import QUEUE_NAME_RULE, did_you_mean, is_queue_name
from .....model.resources.quantities import QuantityError
from .....model.resources.resource import resource_from_texts

_RANGE: Final = ".."
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")
_WANTED: Final = {
    "int_type": "expected a whole number",
    "bool_type": "expected true or false",
    "string_type": "expected a text",
    "list_type": "expected a list",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "too_short": "expected at least one entry",
    "string_too_short": "expected a text",
    "literal_error": "expected {expected}",
    "greater_than_equal": "expected a number from {ge:,} on",
    "less_than_equal": "expected a number up to {le:,}",
}
_SHOWN_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class DurationRange:
    """A random duration between two bounds, both included; equal bounds for a fixed one."""

    shortest_ns: int
    longest_ns: int


def _refused(text: str) -> PydanticCustomError:
    """Return an error with a literal text: in a template, braces in it would be taken for names."""
    return PydanticCustomError("refused", "{text}", {"text": text})


def _text(value: object) -> str:
    """Return a scalar as text; `0` is a duration and a number."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    raise _refused(f"expected a text, not {shown(value)}")


def _duration_ns(value: object) -> int:
    """Return a duration that is not negative."""
    try:
        duration_ns = parse_duration_ns(_text(value))
    except DurationError as error:
        raise _refused(f"{error}; write for example 500ms, 30s or 1h30m") from error
    if duration_ns < 0:
        raise _refused(f"the duration {value!r} is negative")
    return duration_ns


def _duration_range(value: object) -> DurationRange | None:
    """Return one duration, or two with dots between."""
    if value is None:
        return None
    shortest, dots, longest = _text(value).partition(_RANGE)
    result = DurationRange(_duration_ns(shortest), _duration_ns(longest if dots else shortest))
    if result.shortest_ns > result.longest_ns:
        raise _refused(f"in the range {value!r} the shortest is longer than the longest")
    return result


def _resources(value: object) -> dict[str, int]:
    """Return quantities by resource type, all above zero."""
    if not isinstance(value, dict) or not value:
        raise _refused("expected quantities by resource type, such as {vcore: 2, memory: 4Gi}")
    try:
        resource = resource_from_texts({str(name): _text(quantity) for name, quantity in value.items()})
    except QuantityError as error:
        raise _refused(str(error)) from error
    quantities = {name: quantity for name, quantity in resource.items() if quantity}
    if not quantities:
        raise _refused("at least one quantity must be more than zero")
    return quantities


def _name(text: str) -> str:
    """Return a name that can be the prefix of the ids of nodes or applications."""
    if _NAME.fullmatch(text) is None:
        raise _refused(
            f"{text!r} is not a name: 1 to 64 letters, digits, '-' and '_', a letter or digit first and last"
        )
    return text


def _queue_path(text: str) -> str:
    """Return the full path of a queue below the root."""
    root, *names = text.split(".")
    wrong = next((name for name in names if not is_queue_name(name)), None)
    if root != "root" or not names:
        raise _refused(f"{text!r} is not a path of a queue: write it in full, such as root.batch")
    if wrong is not None:
        raise _refused(f"{QUEUE_NAME_RULE}: {wrong!r}")
    return text


_Duration: TypeAlias = Annotated[int, BeforeValidator(_duration_ns)]
Resources: TypeAlias = Annotated[dict[str, int], BeforeValidator(_resources)]
_Name: TypeAlias = Annotated[str, AfterValidator(_name)]
_Count: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
QueuePath: TypeAlias = Annotated[str, AfterValidator(_queue_path)]
_Priority: TypeAlias = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]


class _ScenarioMapping(BaseModel):
    """The base of all mappings of a scenario."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NodesDocument(_ScenarioMapping):
    """Equal nodes."""

    prefix: _Name
    count: _Count = 1
    resources: Resources
    attributes: dict[str, str] = {}


class TasksDocument(_ScenarioMapping):
    """Equal tasks of an application."""

    resources: Resources
    count: _Count = 1
    duration: Annotated[DurationRange | None, BeforeValidator(_duration_range)] = None
    after: _Duration = 0
    priority: _Priority = 0


class ApplicationsDocument(_ScenarioMapping):
    """Equal applications, one after the other."""

    name: _Name
    queue: QueuePath
    user: Annotated[str, Field(min_length=1)]
    groups: list[str] = []
    count: _Count = 1
    submit: _Duration = 0
    every: _Duration = 0
    gang: Literal["soft", "hard"] | None = None
    tags: dict[str, Annotated[str, BeforeValidator(_text)]] = {}
    fails: bool = False
    tasks: Annotated[list[TasksDocument], Field(min_length=1)]


def _names(value: object) -> object:
    """Return a list of names; one name may stand alone."""
    return [value] if isinstance(value, str) else value


_Names: TypeAlias = Annotated[list[str] | None, BeforeValidator(_names), Field(min_length=1)]


class NodeEventDocument(_ScenarioMapping):
    """Nodes that change at one time."""

    at: _Duration
    add: NodesDocument | None = None
    remove: _Names = None
    drain: _Names = None
    restore: _Names = None
    again: bool | None = None


class ScenarioDocument(_ScenarioMapping):
    """The whole file; the reader of queue configurations checks the parts about queues."""

    name: str = ""
    nodes: Annotated[list[NodesDocument], Field(min_length=1)]
    queues: list[JsonValue] | None = None
    placementrules: JsonValue = None
    limits: JsonValue = None
    nodesortpolicy: JsonValue = None
    preemption: JsonValue = None
    windows: JsonValue = None
    applications: Annotated[list[ApplicationsDocument], Field(min_length=1)]
    events: list[NodeEventDocument] = []


UNKNOWN_KEY: Final = "extra_forbidden"
"""The type of the error of an unknown key."""


def error_text(detail: ErrorDetails, known_keys: Callable[[], Sequence[str]]) -> str:
    """Return the text of an error, without its place.

    Args:
        detail: The error.
        known_keys: Returns the keys of the mapping that has an unknown one.
    """
    match detail["type"]:
        case "extra_forbidden":
            key = str(detail["loc"][-1])
            return f"unknown key {key!r}{did_you_mean(key, known_keys())}"
        case "missing":
            return f"the key {detail['loc'][-1]!r} is missing"
        case "refused":
            return detail["msg"]
        case _:
            return text_of(detail)


def text_of(detail: ErrorDetails) -> str:
    """Return the expected kind of a value, and the actual value."""
    value = detail["input"]
    wanted = _WANTED.get(detail["type"], "expected something else").format(**detail.get("ctx", {}))
    needs_quotes = detail["type"] == "string_type" and isinstance(value, bool | int | float)
    return f"{wanted}, not {shown(value)}" + (": write it in quotes" if needs_quotes else "")


def shown(value: object) -> str:
    """Return a value as written in the file, or its kind."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return "a mapping"
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."

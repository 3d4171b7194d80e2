"""Declarations of the REST interface: types of fields that documents share, and operations.

Each document is declared once, as a `TypedDict` whose fields have their descriptions. The code that makes it
is checked against it, the description of the REST interface is made of it, and clients read it.

The routes and their description are made of operations. A module with endpoints has a table `OPERATIONS`;
`proxy/views/rest` adds the parts that all operations have in common.

How many rows are asked for at once follows from the sizes of the rows before: an application may have one
allocation, or thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import cache, wraps
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    ParamSpec,
    Required,
    TypeAlias,
    TypeVar,
    cast,
    get_origin,
    get_type_hints,
)

from pydantic import Field

from ....model.applications.effects import ApplicationState
from ....model.applications.report import ShownApplication
from ....model.limits.usage_tree import UsageView
from ....model.values.states import ObjectState
from ....model.views.shown import ShownNode

P = ParamSpec("P")
D = TypeVar("D", bound=Mapping[str, object])
Int32: TypeAlias = Annotated[int, Field(json_schema_extra={"format": "int32"})]
Int64: TypeAlias = Annotated[int, Field(json_schema_extra={"format": "int64"})]
Quantities: TypeAlias = dict[str, Int64]
"""Quantities by the type of resource."""
Percents: TypeAlias = dict[str, int]
"""Percent by the type of resource."""
ByInstanceType: TypeAlias = dict[str, Quantities]
"""Quantities times seconds, by the instance type of the node."""
Texts: TypeAlias = dict[str, str]
Names: TypeAlias = list[str]
TimeNs: TypeAlias = Annotated[int, Field(description="Nanoseconds since 1970")]
SettingPlace: TypeAlias = Annotated[
    str, Field(description="Where it is set in the configuration: `configuration:LINE:COLUMN`")
]
Int64Message: TypeAlias = (
    Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | Annotated[str, Field(pattern="^-?[0-9]{1,18}$")]
)
"""A whole number of 64 bits in a message of `si.v1`: a number or a text."""
_SECOND_NS = 1_000_000_000
T = TypeVar("T")
K = TypeVar("K")
ITEMS_WANTED: Final = 1_000
"""About how many asks and allocations a piece has: copying them takes some milliseconds."""
ROWS_MAX: Final = 250
"""How many nodes or applications a piece has at most."""
_ROWS_FIRST: Final = 16


def names_of(kind: type[Enum]) -> Any:
    """Return the annotation of a text that is the name of a member."""
    return Field(json_schema_extra={"enum": [member.name for member in kind]})


def values_of(kind: type[Enum]) -> Any:
    """Return the annotation of a text that is the value of a member."""
    return Field(json_schema_extra={"enum": [member.value for member in kind]})


ApplicationStateName: TypeAlias = Annotated[str, values_of(ApplicationState)]
ObjectStateName: TypeAlias = Annotated[str, values_of(ObjectState)]


def without_empty(make: Callable[P, D]) -> Callable[P, D]:
    """Let a function that makes a document leave out fields that are empty: nothing, zero or false.

    Those that the declaration of the document requires stay.
    """

    @cache
    def required() -> frozenset[str]:
        hints = get_type_hints(get_type_hints(make)["return"], include_extras=True)
        return frozenset(name for name, hint in hints.items() if get_origin(hint) is Required)

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> D:
        needed = required()
        document = make(*args, **kwargs)
        return cast("D", {key: value for key, value in document.items() if value or key in needed})

    return made


def time_text(time_ns: int) -> str:
    """Return a time, nanoseconds since 1970, in the form of RFC 3339, in UTC and with all its digits."""
    seconds, rest_ns = divmod(time_ns, _SECOND_NS)
    fraction = f".{rest_ns:09d}".rstrip("0") if rest_ns else ""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"


def whole(number: float) -> float:
    """Return a number that has no fraction as an integer, others unchanged."""
    return int(number) if number == int(number) else number


def paged(
    keys: Sequence[K], ask: Callable[[Sequence[K]], Sequence[T]], size: Callable[[T], int]
) -> Iterator[Sequence[T]]:
    """Yield the rows of all keys in pieces; each is asked for when it is needed.

    Args:
        keys: The keys to ask for.
        ask: Returns the rows of some keys; fewer, if some are gone.
        size: Returns how many items a row has, 1 at least.
    """
    start, step = 0, _ROWS_FIRST
    while start < len(keys):
        rows = ask(keys[start : start + step])
        start += step
        fitting = ITEMS_WANTED * len(rows) // max(sum(map(size, rows)), 1)
        step = max(1, min(fitting, 4 * step, ROWS_MAX)) if rows else step
        yield rows


def size_of_node(node: ShownNode) -> int:
    """Return how many items the row of a node has; an allocation counts four times.

    Each may be of another application, which is asked whether the allocation is a victim.
    """
    return 1 + 4 * len(node.facts.allocations) + len(node.facts.foreign)


def size_of_application(application: ShownApplication) -> int:
    """Return how many items the row of an application has."""
    return 1 + len(application.asks) + len(application.allocations)


def size_of_usage(usage: UsageView) -> int:
    """Return how many items the row of a user or group has: each queue counts four times."""
    return 4 * len(usage.queues)


JSON: Final = "application/json"
YAML: Final = "application/x-yaml"
UINT64_MAX: Final = 2**64 - 1


class Parameter(NamedTuple):
    """A parameter of a request.

    Attributes:
        name: Its name.
        description: Its purpose.
        schema: The JSON schema of its value.
        place: `query`, `path` or `header`.
        required: Whether each request has it.
        further: Further keys of its description.
    """

    name: str
    description: str
    schema: Mapping[str, object]
    place: str = "query"
    required: bool = False
    further: Mapping[str, object] = {}


def text(name: str, description: str, *, required: bool = False) -> Parameter:
    """Return a parameter of the query that is a text; one that each request has is not empty."""
    schema: dict[str, object] = {"type": "string", "minLength": 1} if required else {"type": "string"}
    return Parameter(name, description, schema, required=required)


def numbered(name: str, description: str, *, least: int, most: int, default: int | None = None) -> Parameter:
    """Return a parameter of the query that is a whole number from `least` to `most`."""
    schema: dict[str, object] = {"type": "integer", "minimum": least, "maximum": most}
    return Parameter(name, description, schema if default is None else schema | {"default": default})


class Operation(NamedTuple):
    """A method of a path: its endpoint and its description.

    Parameters in the path, and the statuses that follow from them and from a body, are the same for all.

    Attributes:
        path: The path; parameters stand in braces.
        endpoint: The function that answers. Its name in words is the id of the operation, unless `name` is
            given.
        tag: The part of the interface that it belongs to.
        summary: Its contents, in one line.
        answer: The description of the body of status 200; the empty text where there is no such status.
        returns: The types of that body by their media types.
        description: Details beyond the summary.
        parameters: The parameters that are not in the path, and those in the path that are special here.
        refusals: The statuses of errors beyond those that all operations have.
        body: The media types of the body of the request with their types; with it, the method is POST.
        body_note: Notes about that body.
        name: The id of the operation in words joined by `_`.
        is_open: Whether it needs no token.
    """

    path: str
    endpoint: Callable[..., Any]
    tag: str
    summary: str
    answer: str = ""
    returns: Mapping[str, Any] = {}
    description: str = ""
    parameters: Sequence[Parameter] = ()
    refusals: Sequence[int] = ()
    body: Mapping[str, Any] | None = None
    body_note: str = ""
    name: str = ""
    is_open: bool = False

    @property
    def method(self) -> str:
        """The method, in capitals."""
        return "GET" if self.body is None else "POST"

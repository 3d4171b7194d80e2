"""The types of fields that several documents have.

Each document is declared once, as a `TypedDict` whose fields have their descriptions. The code that makes it
is checked against it, the description of the REST interface is made of it, and clients read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache, wraps
from typing import Annotated, Any, ParamSpec, Required, TypeAlias, TypeVar, cast, get_origin, get_type_hints

from pydantic import Field

from ....model.applications.state import ApplicationState
from ....model.values.states import ObjectState

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

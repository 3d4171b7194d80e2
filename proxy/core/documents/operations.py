"""The operations of the REST interface: the routes and their description are made of these.

A module with endpoints has a table `OPERATIONS`. What all operations have in common, `proxy/views/rest` adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

JSON: Final = "application/json"
YAML: Final = "application/x-yaml"
UINT64_MAX: Final = 2**64 - 1


class Parameter(NamedTuple):
    """A parameter of a request.

    Attributes:
        name: Its name.
        description: What it is for.
        schema: The JSON schema of its value.
        place: `query`, `path` or `header`.
        required: Whether each request has it.
        further: What else the description says of it.
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
    """A method of a path: what answers it, and what its description says.

    Parameters in the path, and the statuses that follow from them and from a body, are the same for all.

    Attributes:
        path: The path; parameters stand in braces.
        endpoint: What answers. Its name in words is the id of the operation, unless `name` is given.
        tag: The part of the interface that it belongs to.
        summary: What it shows, in one line.
        answer: What the body of status 200 is; the empty text where there is no such status.
        returns: The types of that body by their media types.
        description: More than the summary says.
        parameters: The parameters that are not in the path, and those in the path that are special here.
        refusals: The statuses of errors beyond those that all operations have.
        body: The media types of the body of the request with their types; with it, the method is POST.
        body_note: What is to be known of that body.
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

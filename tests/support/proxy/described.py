"""The description of the REST interface, and what of an answer it does not say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator
from starlette.applications import Starlette

from licorne.proxy.views.rest.application import description

_METHODS: Final = ("get", "post", "put", "delete", "patch", "head", "options")


@cache
def described() -> Any:
    """Return the description."""
    return yaml.safe_load(description())


def operations() -> Iterator[tuple[str, str, Any]]:
    """Yield the path, the method in capitals and the description of each operation."""
    for path, entry in described()["paths"].items():
        for method in _METHODS:
            if method in entry:
                yield path, method.upper(), entry[method]


def resolved(part: Any) -> Any:
    """Return a part of the description, or what it refers to."""
    while "$ref" in part:
        found = described()
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


def route_of(application: Starlette, path: str) -> str | None:
    """Return the path with parameters that a path of a request is one of, `None` for an unknown path."""
    for route in application.routes:
        if route.path_regex.match(path):  # type: ignore[attr-defined] # all routes here have a path
            found: str = route.path  # type: ignore[attr-defined] # likewise
            return found
    return None


def undescribed(path: str, method: str, status: int, content_type: str, text: str) -> list[str]:
    """Return what of an answer the description does not say, or says otherwise.

    Args:
        path: The path of an operation.
        method: Its method.
        status: That of the answer.
        content_type: Likewise; the empty text for none.
        text: The body.
    """
    responses = described()["paths"][path][method.lower()]["responses"]
    if str(status) not in responses:
        return [f"{method} {path} answers {status}, which is not described"]
    content = resolved(responses[str(status)]).get("content", {})
    kind = content_type.partition(";")[0].strip()
    if kind not in content:
        return [f"{method} {path} answers {status} with {kind!r}, described are {', '.join(content)}"]
    if kind != "application/json":
        return []
    schema = {**content[kind]["schema"], "components": described()["components"]}
    errors = Draft202012Validator(schema).iter_errors(json.loads(text))
    return [f"{method} {path}: {error.json_path}: {error.message:.300}" for error in errors]

"""The description of the interface: the paths of `openapi.yaml`, and the documents as they are declared."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module, resources
from pkgutil import iter_modules
from typing import Any, Final

import yaml
from pydantic import ConfigDict, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .. import documents

__all__ = ["ROUTES", "description"]

_TYPE: Final = "application/yaml"
_SUFFIX: Final = "Document"
_REFERENCE: Final = "#/components/schemas/"
_CONFIG: Final = ConfigDict(use_attribute_docstrings=True)


@cache
def description() -> bytes:
    """Return the text of the description, OpenAPI 3.1 as YAML in UTF-8."""
    assert __package__ is not None, "a module of a package knows it: please report"
    paths = (resources.files(__package__) / "openapi.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(paths)
    document["components"]["schemas"] = _schemas({*re.findall(rf'{_REFERENCE}(\w+)"', paths)})
    return yaml.dump(document, sort_keys=False, allow_unicode=True, width=120).encode()


def _schemas(named: set[str]) -> dict[str, Any]:
    """Return the schemas of documents, and of those that are in them, by name."""
    rooms = [import_module(f"{documents.__name__}.{each.name}") for each in iter_modules(documents.__path__)]
    declared = {
        name: getattr(room, name) for room in rooms for name in room.__all__ if name.endswith(_SUFFIX)
    }
    types: Any = [list[declared[name + _SUFFIX]] for name in sorted(named)]  # type: ignore[misc] # found by name
    adapters: list[Any] = [(each, "validation", TypeAdapter(each, config=_CONFIG)) for each in types]
    _, schemas = TypeAdapter.json_schemas(adapters, ref_template=_REFERENCE + "{model}")
    return {name.removesuffix(_SUFFIX): _plain(schema) for name, schema in sorted(schemas["$defs"].items())}


def _plain(schema: Any) -> Any:
    """Return a schema with short names and no titles; an object has no keys but those that it declares."""
    if isinstance(schema, list):
        return [*map(_plain, schema)]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain(value) for key, value in schema.items() if key not in {"title", "properties"}}
    if "properties" in schema:
        plain["properties"] = {name: _plain(value) for name, value in schema["properties"].items()}
        plain.setdefault("additionalProperties", False)
    if "$ref" in plain:
        plain["$ref"] = plain["$ref"].removesuffix(_SUFFIX)
    return plain


async def _description(_: Request) -> Response:
    return Response(description(), headers={"Content-Type": _TYPE})


ROUTES = [Route("/openapi.yaml", _description)]

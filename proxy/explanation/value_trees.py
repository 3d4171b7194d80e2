"""Frozen values of the model as trees of JSON, and back: a client makes the objects that a scheduler has.

An object is written with its class. Only values are read: classes of Licorne that are data classes, named
tuples or enumerations, and resources.
"""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from ...model.errors import LicorneError
from ...model.resources.resource import Resource
from ...model.values.documents import Json

__all__ = ["value_from_json", "value_to_json"]

_KIND: Final = "class"
_PACKAGE: Final = __name__.partition(".")[0]
_ROOMS: Final = (f"{_PACKAGE}.model.", f"{_PACKAGE}.proxy.")


def value_to_json(value: object) -> str:
    """Return a value as JSON text.

    Raises:
        TypeError: Something in it is no value.
    """
    return json.dumps(_tree(value), ensure_ascii=False, separators=(",", ":"))


def value_from_json(text: str) -> Any:
    """Return the value of a text that `value_to_json` has written.

    Raises:
        LicorneError: The text is none.
    """
    try:
        return _value(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, ImportError) as error:
        raise LicorneError(f"the answer of the scheduler cannot be read: {error}: {text[:200]!r}") from error


def _tree(value: object) -> Json:
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return {_KIND: _name(type(value)), "name": value.name}
    if isinstance(value, Resource):
        return {_KIND: "Resource", "of": dict(value.items())}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return [_tree(each) for each in value]
    if isinstance(value, list):
        return {_KIND: "list", "of": [_tree(each) for each in value]}
    if isinstance(value, dict | MappingProxyType):
        return {_KIND: type(value).__name__, "of": [[_tree(key), _tree(each)] for key, each in value.items()]}
    if isinstance(value, frozenset):
        return {_KIND: "frozenset", "of": [_tree(each) for each in sorted(value)]}
    names = [each.name for each in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    names = names or list(getattr(value, "_fields", ()))
    if not names:
        raise TypeError(f"{value!r:.200} is no value that can be sent")
    return {_KIND: _name(type(value)), "of": {name: _tree(getattr(value, name)) for name in names}}


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _value(tree: Any) -> object:
    if isinstance(tree, list):
        return tuple(_value(each) for each in tree)
    if not isinstance(tree, dict):
        return tree
    kind = tree[_KIND]
    match kind:
        case "Resource":
            return Resource(tree["of"])
        case "list":
            return [_value(each) for each in tree["of"]]
        case "dict":
            return {_value(key): _value(each) for key, each in tree["of"]}
        case "mappingproxy":
            return MappingProxyType({_value(key): _value(each) for key, each in tree["of"]})
        case "frozenset":
            return frozenset(_value(each) for each in tree["of"])
    found = _class(kind)
    if issubclass(found, Enum):
        return found[tree["name"]]
    return found(**{name: _value(each) for name, each in tree["of"].items()})


def _class(name: str) -> type:
    """Return the class of a value.

    Raises:
        ValueError: The name is that of something else.
    """
    module, _, kind = name.partition(":")
    if not module.startswith(_ROOMS):
        raise ValueError(f"{name!r} is no class of a value")
    found = getattr(import_module(module), kind)
    if not isinstance(found, type) or not (
        dataclasses.is_dataclass(found) or issubclass(found, Enum) or hasattr(found, "_fields")
    ):
        raise ValueError(f"{name!r} is no class of a value")
    return found

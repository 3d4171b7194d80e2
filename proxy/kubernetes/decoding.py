"""Objects of Kubernetes from JSON, in which null means that a field is missing."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import msgspec

_Object = TypeVar("_Object")


def resolve_structs(module_name: str) -> None:
    """Resolve the fields of all structs of a module; call it as the last statement of that module.

    msgspec resolves them when a type is first decoded, without a lock. A second thread that decodes the type
    at that time reads fields that do not exist yet, which ends the process with a segmentation fault.
    """
    for kind in tuple(vars(sys.modules[module_name]).values()):
        if isinstance(kind, msgspec.StructMeta) and kind.__module__ == module_name:
            msgspec.json.Decoder(kind)


def decoded(decoder: msgspec.json.Decoder[_Object], raw: bytes | msgspec.Raw) -> _Object:
    """Return an object. Null for an empty field is accepted as well.

    Raises:
        msgspec.DecodeError: It cannot be read.
        RecursionError: It is nested too deeply.
    """
    try:
        return decoder.decode(raw)
    except msgspec.DecodeError:
        if b"null" not in bytes(raw):
            raise
    return decoder.decode(msgspec.json.encode(_without_nulls(msgspec.json.decode(raw))))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value

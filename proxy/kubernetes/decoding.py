"""Objects of Kubernetes from JSON, in which null means that a field is missing."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

_Object = TypeVar("_Object")


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

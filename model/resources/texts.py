"""Resources as text: in messages, as users write quotas, and as people read them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from ..identifiers import names_refusal
from .quantities import INT64_MAX, INT64_MIN, QuantityError, parse_quantity, parse_vcore
from .resource import EMPTY, Resource

_VCORE: Final = "vcore"
_BINARY: Final = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))


def describe(resource: Resource | None) -> str:
    """Write a resource as the messages of the scheduler show it: ``map[memory:10 vcore:1]``."""
    if resource is None:
        return "nil resource"
    return f"map[{' '.join(f'{name}:{quantity}' for name, quantity in sorted(resource.items()))}]"


def resource_from_texts(texts: Mapping[str, str] | None) -> Resource:
    """Read the resources of a configuration: ``vcore`` in cores or milli-cores, all others plain.

    No map, or an empty one, gives the resource without types.

    Raises:
        QuantityError: A text is no quantity; the first one, with its type, is named.
    """
    if not texts:
        return EMPTY
    return Resource({name: _parse_entry(name, text) for name, text in texts.items()})


def resource_from_json(text: str) -> Resource:
    """Read a quota from the JSON in a namespace tag: ``{"resources":{"memory":{"value":100}}}``.

    The values are raw quantities. ``null``, or an object without ``resources``, gives the resource without
    types. Field names are found whatever their case and unknown fields are ignored, as in the recorded core.

    Raises:
        QuantityError: The text is no JSON, has another shape, a name
            is not one, or a value is no signed 64-bit integer.
    """
    # Deep nesting ends in a `RecursionError`; a number with thousands of digits in a `ValueError`.
    try:
        message: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise QuantityError(f"invalid resource JSON: {text!r}: {error}") from error
    entries = _field(message, "resources", text)
    if entries is None:
        return EMPTY
    quantities = {name: _value(entry, text) for name, entry in _object(entries, text).items()}
    refusal = names_refusal("a resource type", quantities)
    if refusal is not None:
        raise QuantityError(f"invalid resource JSON: {text!r}: {refusal}")
    return Resource(quantities)


def negative_text(what: str, resource: Resource | None) -> str | None:
    """Return a sentence about what is negative in a resource, `None` if nothing is; `what` names it."""
    below = [(kind, amount) for kind, amount in (resource or EMPTY).items() if amount < 0]
    lacks = ", ".join(f"{kind} is {amount}" for kind, amount in below)
    return f"{what} is negative: {lacks}" if lacks else None


def _parse_entry(name: str, text: str) -> int:
    """Read one entry of the configuration with the parser of its type."""
    try:
        return parse_vcore(text) if name == _VCORE else parse_quantity(text)
    except QuantityError as error:
        raise QuantityError(f"{error} for resource type {name!r}") from error


def _value(entry: object, text: str) -> int:
    """Return the quantity of one entry; an entry that leaves it out means zero."""
    if entry is None:
        raise QuantityError(f"invalid resource JSON: {text!r}: a quantity is null")
    value = _field(entry, "value", text)
    if value is None:
        return 0
    if type(value) is str and re.fullmatch(r"-?[0-9]{1,19}", value):
        value = int(value)  # As protobuf writes what has 64 bits.
    if type(value) is not int:
        raise QuantityError(f"invalid resource JSON: {text!r}: {value!r} is not an integer")
    if not INT64_MIN <= value <= INT64_MAX:
        raise QuantityError(f"invalid resource JSON: {text!r}: {value} exceeds 64 bits")
    return value


def _field(message: object, name: str, text: str) -> object:
    """Return the last field of that name, whatever its case; ``None`` when it is absent or null."""
    if message is None:
        return None
    fields = _object(message, text)
    return next((fields[key] for key in reversed(fields) if key.lower() == name), None)


def _object(value: object, text: str) -> dict[str, object]:
    """Require a JSON object."""
    if not isinstance(value, dict):
        raise QuantityError(f"invalid resource JSON: {text!r}: {value!r} is not an object")
    return value


def quantity_text(name: str, quantity: int) -> str:
    """Write a quantity: cores or thousandths of one, or whole binary units, or the plain number."""
    if name == _VCORE:
        return f"{quantity}m" if quantity % 1000 else f"{quantity // 1000}"
    for bits, unit in _BINARY:
        if quantity and quantity % (1 << bits) == 0:
            return f"{quantity >> bits}{unit}"
    return f"{quantity}"


def resource_text(resource: Resource | None) -> str:
    """Write a resource, its types in order: `memory 4Gi, vcore 500m`; `nothing` for an empty or unset one."""
    kinds = sorted(resource.items()) if resource is not None else ()
    parts = [f"{name} {quantity_text(name, quantity)}" for name, quantity in kinds]
    return ", ".join(parts) or "nothing"

"""Documents: what the REST interface and snapshots show, with the keys and units of the interface.

A document is plain data. Fields that are empty are left out where the interface leaves them out; times
are in nanoseconds since 1970 unless a key names another unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ..resources.quantities import INT64_MAX, INT64_MIN, saturate
from ..resources.resource import Resource

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Document: TypeAlias = "dict[str, Json]"


def compact(document: Mapping[str, Json]) -> Document:
    """Return the document without its empty fields: nothing, zero, false."""
    return {key: value for key, value in document.items() if value}


def quantities_shown(quantities: Mapping[str, int] | Resource | None) -> dict[str, int]:
    """Return quantities as a document has them: a sum that 64 bits cannot hold is shown as their border."""
    if quantities is None:
        return {}
    return {
        # Few sums leave the range: the call is spared for the others, since a snapshot has 100,000 of them.
        name: quantity if INT64_MIN <= quantity <= INT64_MAX else saturate(quantity)
        for name, quantity in quantities.items()
    }

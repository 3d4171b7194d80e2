"""Documents: what the REST interface and snapshots show, with the keys and units of the interface.

A document is plain data. Fields that are empty are left out where the interface leaves them out; times
are in nanoseconds since 1970 unless a key says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Document", "Json", "compact"]

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Document: TypeAlias = "dict[str, Json]"


def compact(document: Mapping[str, Json], *, keep: frozenset[str] = frozenset()) -> Document:
    """Return the document without its empty fields (nothing, zero, false), except those to keep."""
    return {key: value for key, value in document.items() if key in keep or value}

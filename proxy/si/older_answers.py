"""Answers for a resource manager of the older generation of `si.v1`.

They are those of the current generation, and say also what only the older one looks for: the `UUID` of an
allocation, by which it is released, and `rejected`. The two never gave one number to two fields, so nothing
is said twice to anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from . import si_pb2 as si

__all__ = ["Generation", "add_older_names"]


@final
class Generation:
    """Which generation a resource manager speaks: the older one from its first ask of that generation on."""

    __slots__ = ("is_older",)

    def __init__(self) -> None:
        self.is_older = False


def add_older_names(response: si.AllocationResponse) -> None:
    """Say in an answer also what only the older generation looks for."""
    for placed in response.new:
        placed.UUID = placed.allocationKey
    for released in response.released:
        released.UUID = released.allocationKey
    for rejected in response.rejectedAllocations:
        response.rejected.add(
            allocationKey=rejected.allocationKey,
            applicationID=rejected.applicationID,
            reason=rejected.reason,
        )

"""Answers for a resource manager of the older generation of `si.v1`.

They are those of the current generation, and also have the fields that only the older one reads: the `UUID`
of an allocation, by which it is released, and `rejected`. An ask that the scheduler gave up is in
`releasedAsks` in place of `released`: it has no allocation that could be ended. The two generations never
gave one number to two fields, so no resource manager reads anything twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from . import si_pb2 as si

__all__ = ["Generation", "add_older_names"]


@final
class Generation:
    """The generation that a resource manager uses: the older one from the first field that only it has."""

    __slots__ = ("is_older",)

    def __init__(self) -> None:
        self.is_older = False


def add_older_names(response: si.AllocationResponse) -> None:
    """Fill in an answer the fields that only the older generation reads."""
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

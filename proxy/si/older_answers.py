"""Answers for a resource manager of the older generation of `si.v1`.

They are those of the current generation, and say also what only the older one looks for: the `UUID` of an
allocation, by which it is released, and `rejected`. The two never gave one number to two fields, so nothing
is said twice to anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...model.messages import AllocationPlaced, AllocationsRejected, AllocationsReleased
from .writing import (
    dispatch,
    write_allocation_placed,
    write_allocations_rejected,
    write_allocations_released,
)

if TYPE_CHECKING:
    from ...model.messages import Announcement
    from . import si_pb2 as si
    from .api import ResourceManagerCallback

__all__ = ["Generation", "dispatch_older"]


@final
class Generation:
    """Which generation a resource manager speaks: the older one from its first ask of that generation on."""

    __slots__ = ("is_older",)

    def __init__(self) -> None:
        self.is_older = False


def dispatch_older(announcement: Announcement, callback: ResourceManagerCallback) -> None:
    """Tell a resource manager of the older generation; like `dispatch` otherwise."""
    match announcement:
        case AllocationPlaced():
            callback.update_allocation(_with_older_names(write_allocation_placed(announcement)))
        case AllocationsReleased(releases) if releases:
            callback.update_allocation(_with_older_names(write_allocations_released(announcement)))
        case AllocationsRejected(rejections) if rejections:
            callback.update_allocation(_with_older_names(write_allocations_rejected(announcement)))
        case _:
            dispatch(announcement, callback)


def _with_older_names(response: si.AllocationResponse) -> si.AllocationResponse:
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
    return response

"""Answers for a resource manager of the older generation of `si.v1`.

They are those of the current generation, and also have the fields that only the older one reads: the `UUID`
of an allocation, by which it is released, and `rejected`. An ask that the scheduler gave up is in
`releasedAsks` in place of `released`: it has no allocation that could be ended. The two generations never
gave one number to two fields, so no resource manager reads anything twice.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, final

from ...model.values.allocation import ask_key_of, uuid_of
from ...model.values.messages import Announcement
from . import si_pb2 as si
from .event_messages import EventsHappened


@final
class Generation:
    """The generation that a resource manager uses: the older one from the first field that only it has."""

    __slots__ = ("is_older",)

    def __init__(self) -> None:
        self.is_older = False


class InGeneration(NamedTuple):
    """An announcement whose generation was decided when it was made, not when it is delivered."""

    announcement: Announcement
    is_older: bool


Delivery: TypeAlias = "Announcement | EventsHappened | InGeneration"
"""What waits to be delivered to a resource manager."""


def add_older_names(response: si.AllocationResponse) -> None:
    """Fill in an answer the fields that only the older generation reads, and name asks by their own keys."""
    for placed in response.new:
        key = placed.allocationKey
        placed.UUID, placed.allocationKey = uuid_of(key), ask_key_of(key)
    for released in response.released:
        key = released.allocationKey
        released.UUID, released.allocationKey = uuid_of(key), ask_key_of(key)
    if response.releasedAsks:
        _name_given_up(response)
    for rejected in response.rejectedAllocations:
        rejected.allocationKey = ask_key_of(rejected.allocationKey)
        response.rejected.add(
            allocationKey=rejected.allocationKey,
            applicationID=rejected.applicationID,
            reason=rejected.reason,
            code=rejected.code,
        )


def _name_given_up(response: si.AllocationResponse) -> None:
    """Name each ask that was given up once, however many of its allocations were asked for."""
    named = set()
    every = list(response.releasedAsks)
    del response.releasedAsks[:]
    for given_up in every:
        given_up.allocationKey = ask_key_of(given_up.allocationKey)
        name = (given_up.applicationID, given_up.allocationKey)
        if name not in named:
            named.add(name)
            response.releasedAsks.append(given_up)

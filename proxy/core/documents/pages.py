"""The documents that the page of the server reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from .fields import Names, Texts


class PageAllocationDocument(TypedDict):
    """An allocation, as the page shows it."""

    allocationKey: str
    applicationID: str
    resource: str
    """As a person reads it."""
    priority: int
    placeholder: bool


class PageNodeDocument(TypedDict):
    """A node, as the page shows it."""

    nodeID: str
    attributes: Texts
    schedulable: bool
    capacity: str
    """As a person reads it."""
    allocated: str
    occupied: str
    available: str
    allocations: Annotated[list[PageAllocationDocument], Field(max_length=500)]
    allocationsTotal: int
    foreign: Annotated[list[PageAllocationDocument], Field(max_length=500)]
    foreignTotal: int
    reservations: Names


class TimelineDocument(TypedDict):
    """What queues used and waited for, over time."""

    interval: float
    """Milliseconds between two points."""
    span: float
    """How long points are kept in milliseconds."""
    types: list[str]
    """The resource types of the quantities below."""
    times: list[int]
    """Milliseconds since 1970."""
    queues: dict[str, list[Annotated[list[list[int | None]], Field(min_length=2, max_length=2)] | None]]
    """For each queue and time what is allocated and what waits, by the types; null where it was not there."""

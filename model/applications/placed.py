"""An allocation as its application keeps it, with the marks that change while it is placed."""

from __future__ import annotations

from typing import final

from ..values.allocation import Allocation

__all__ = ["Placed"]


@final
class Placed:
    """One allocation and its marks. Owned by the application.

    `released` and `preempted` exclude each other: what the RM was asked to end is no victim, and the RM is
    not asked twice to end a victim.
    """

    __slots__ = ("allocation", "checkpoint_ns", "gang_since_ns", "preempted", "released", "swap")

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        self.released = False
        self.preempted = False
        self.checkpoint_ns: int | None = None
        """When the RM reported last that the work is saved."""
        self.swap: Allocation | None = None
        """Of a placeholder: the real allocation that replaces it once the RM confirms its end."""
        self.gang_since_ns: int | None = None
        """Of a placeholder or a member of a gang: since when the gang was as large as when this one came."""

    @property
    def is_leaving(self) -> bool:
        """Whether it is ending: the RM was asked to end it, or it is a victim."""
        return self.released or self.preempted

    def copy(self) -> Placed:
        """Return a copy that may leave the application."""
        copy = Placed(self.allocation)
        copy.released = self.released
        copy.preempted = self.preempted
        copy.swap = self.swap
        copy.checkpoint_ns = self.checkpoint_ns
        copy.gang_since_ns = self.gang_since_ns
        return copy

"""How the members of a gang take the places of its placeholders, one swap after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..marks import reads, writes
from . import gang
from .core import ApplicationCore
from .state import ApplicationState

if TYPE_CHECKING:
    from ..values.allocation import Allocation
    from ..values.messages import TerminationType
    from .effects import Answer, Effect
    from .gang import SwapOffer, SwapWalk


__all__ = ["SwapSide"]


class SwapSide(ApplicationCore):
    """The swaps of one application."""

    @writes
    def next_swap(self, walk: SwapWalk) -> SwapOffer | None:
        """Return the next pair of a waiting member and a placeholder that it may replace."""
        return gang.next_swap(walk, self._asks, self._placed)

    @writes
    def mark_released(self, allocation_key: str) -> bool:
        """Note that the RM is asked to end an allocation; `False` if that is under way or it is a victim."""
        placed = self._placed.get(allocation_key)
        if placed is None or placed.is_leaving:
            return False
        placed.released = True
        return True

    @writes
    def begin_swap(self, allocation: Allocation, placeholder_key: str) -> Answer | None:
        """Let an allocation take the place of a placeholder once the RM has confirmed its end."""
        record = self._asks.get(allocation.ask.allocation_key)
        placed = self._placed.get(placeholder_key)
        if record is None or record.placed or placed is None or placed.is_leaving:
            return None
        self._asks.place(record)
        self._take_pending(record.ask.resource)
        reservation = self._reservations.remove(record.ask.allocation_key)
        placed.released = True
        placed.swap = allocation
        self._swapping[allocation.ask.allocation_key] = placeholder_key
        return self._answer((), reservations=() if reservation is None else (reservation,))

    @reads
    def swap_of(self, placeholder_key: str) -> Allocation | None:
        """Return the allocation that is to take the place of a placeholder, if a swap is under way."""
        placed = self._placed.get(placeholder_key)
        return None if placed is None else placed.swap

    @writes
    def end_swap(self, placeholder_key: str, termination: TerminationType, now_ns: int) -> Answer | None:
        """Complete a swap: the placeholder ends, its real allocation counts.

        The answer's allocations are the placeholder and the real one; `None` if no swap is under way.
        """
        placed = self._placed.get(placeholder_key)
        if placed is None or placed.swap is None:
            return None
        effects: list[Effect] = []
        real = placed.swap.in_place_of(placed.allocation, now_ns)
        del self._swapping[real.ask.allocation_key]
        ending = self._life.state in (ApplicationState.COMPLETING, ApplicationState.FAILING)
        placeholder, _ = self._end_allocation(
            placeholder_key,
            termination,
            now_ns,
            # One that is ending would have ended before the real allocation counts.
            effects,
            fires=not ending,
        )
        self._add_allocation(real, now_ns, effects, replaces=True)
        return self._answer(effects, allocations=(placeholder, real))

    @writes
    def cancel_swap(self, placeholder_key: str) -> Allocation | None:
        """Give up a swap; return the allocation that was to take the place."""
        placed = self._placed.get(placeholder_key)
        if placed is None or placed.swap is None:
            return None
        real, placed.swap = placed.swap, None
        del self._swapping[real.ask.allocation_key]
        return real

    @reads
    def swap_onto(self, allocation_key: str) -> str:
        """Return the placeholder that the real allocation with this key is to replace, or the empty text."""
        return self._swapping.get(allocation_key, "")

"""The swaps of a gang, in which its members replace its placeholders."""

from __future__ import annotations

from typing import Final, final

from ..marks import Marks
from ..values.allocation import Allocation
from ..values.messages import TerminationType
from . import gang
from .core import ApplicationCore
from .effects import Answer, Effect
from .gang import SwapOffer, SwapWalk
from .state import ApplicationState


@final
class ApplicationSwaps:
    """The swaps of one application."""

    __slots__ = ("_core",)

    MARKS: Final = Marks(reads=("of", "onto"), writes=("next", "begin", "end", "cancel"))

    def __init__(self, core: ApplicationCore) -> None:
        self._core = core

    def next(self, walk: SwapWalk) -> SwapOffer | None:
        """Return the next pair of a waiting member and a placeholder that it may replace."""
        return gang.next_swap(walk, self._core.asks, self._core.holdings.placeholders)

    def begin(self, allocation: Allocation, placeholder_key: str) -> Answer | None:
        """Begin a swap: the allocation replaces the placeholder once the RM has confirmed its end."""
        core = self._core
        record = core.asks.get(allocation.ask.allocation_key)
        placed = core.holdings.placed.get(placeholder_key)
        if record is None or record.placed or placed is None or placed.is_leaving:
            return None
        reservations = core.place_ask(record)
        core.holdings.begin_swap(allocation, placed)
        return core.answer(reservations=reservations)

    def of(self, placeholder_key: str) -> Allocation | None:
        """Return the allocation that is to replace a placeholder, if a swap is under way."""
        placed = self._core.holdings.placed.get(placeholder_key)
        return None if placed is None else placed.swap

    def onto(self, allocation_key: str) -> str:
        """Return the placeholder that the real allocation with this key is to replace, or the empty text."""
        return self._core.holdings.swapping.get(allocation_key, "")

    def end(self, placeholder_key: str, termination: TerminationType, now_ns: int) -> Answer | None:
        """Complete a swap: the placeholder ends, its real allocation counts.

        The answer's allocations are the placeholder and the real one; `None` if no swap is under way.
        """
        core = self._core
        swap = core.holdings.take_swap(placeholder_key)
        if swap is None:
            return None
        effects: list[Effect] = []
        ending = core.life.state in (ApplicationState.COMPLETING, ApplicationState.FAILING)
        # One that is ending would have ended before the real allocation counts.
        placeholder, _ = core.end_allocation(placeholder_key, termination, now_ns, effects, fires=not ending)
        real = swap.in_place_of(placeholder, now_ns)
        core.add_allocation(real, now_ns, effects, replaces=True)
        return core.answer(effects, allocations=(placeholder, real))

    def cancel(self, placeholder_key: str) -> Allocation | None:
        """Cancel a swap; return the allocation that was to replace the placeholder."""
        return self._core.holdings.take_swap(placeholder_key)

"""Since when a gang is as large as it is: its run time counts from then.

A gang makes progress when the last of its members is there. A member that comes in the place of one that has
ended does not begin the time of all anew: one that restarts again and again would keep the whole gang from
being preempted for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from .holdings import Placed


@final
class GangGrowth:
    """The growth of the gang of one application, its placeholders included. Owned by the application."""

    __slots__ = ("_actual", "_actual_most", "_groups", "_members", "_members_most", "_since_ns")

    def __init__(self) -> None:
        self._groups: set[str] = set()
        """The names of its task groups; of one that is placed whole without placeholders the empty text."""
        self._members = self._members_most = 0
        self._actual = self._actual_most = 0
        """Those that are no placeholders."""
        self._since_ns = 0

    def add(self, placed: Placed) -> None:
        """Count a placeholder or a member; the time begins anew if the gang is larger than it ever was.

        A member that replaces a placeholder makes it larger as well, by what works.
        """
        ask = placed.allocation.ask
        self._groups.add(ask.task_group_name)
        self._members += 1
        self._actual += not ask.placeholder
        if self._members > self._members_most or self._actual > self._actual_most:
            self._since_ns = max(self._since_ns, placed.allocation.bound_at_ns)
        self._members_most = max(self._members_most, self._members)
        self._actual_most = max(self._actual_most, self._actual)
        placed.gang_since_ns = self._since_ns

    def add_again(self, placed: Placed) -> None:
        """Count what has replaced no placeholder if it takes the place of a member that has ended."""
        if self._members < self._members_most and placed.allocation.ask.task_group_name in self._groups:
            self.add(placed)

    def remove(self, placed: Placed) -> bool:
        """Count an allocation no longer; return whether nothing of the gang is left."""
        if placed.gang_since_ns is not None:
            self._members -= 1
            self._actual -= not placed.allocation.ask.placeholder
        return self._members == 0

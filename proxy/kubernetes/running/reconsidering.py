"""When the scheduler is to ask again about what the filters have refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from .event_loop import EventLoop
from .tasks import PodTask

_PAUSE_SECONDS: Final = 0.2
"""What changes within this time is one reason to ask again, not many."""


@final
class Reconsidering:
    """Collects what has changed; used by one thread.

    Args:
        loop: The thread.
        reconsider: Has the scheduler ask again about nodes, and asks; about everything if both are empty.
    """

    def __init__(self, loop: EventLoop, reconsider: Callable[[list[str], list[str]], None]) -> None:
        self._loop = loop
        self._reconsider = reconsider
        self._nodes: set[str] = set()
        self._everything = False
        self._neighbours = False
        self._judge: Callable[[], None] | None = None
        self._is_due = False
        self.waiting: dict[str, PodTask] = {}
        """The tasks that are asked for and whose answers depend on other pods, by key."""

    def node_changed(self, name: str) -> None:
        """Take that labels, taints or the cordon of a node have changed."""
        self._nodes.add(name)
        self._plan()

    def neighbours_changed(self) -> None:
        """Take that pods came, went or have other labels."""
        if self.waiting and not self._neighbours:
            self._neighbours = True
            self._plan()

    def everything_changed(self) -> None:
        """Take that claims or volumes have changed."""
        self._everything = True
        self._plan()

    def kept_away(self, judge: Callable[[], None]) -> None:
        """Take that a pod keeps others away: `judge` is called, once for many such pods."""
        self._judge = judge
        self._plan()

    def _plan(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.later(_PAUSE_SECONDS, self._ask_again)

    def _ask_again(self) -> None:
        nodes = sorted(self._nodes)
        if self._judge is not None:
            judge, self._judge = self._judge, None
            judge()
            self._everything = True  # others of their class share the refusals that were for them
        keys = list(self.waiting) if self._neighbours else []
        everything = self._everything
        self._nodes, self._neighbours, self._everything, self._is_due = set(), False, False, False
        if everything:
            self._reconsider([], [])
        elif nodes or keys:
            self._reconsider(nodes, keys)

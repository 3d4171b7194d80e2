"""What a thread does when it has let go of its last lock: log, set timers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["Afterwards"]


@final
class Afterwards(threading.local):
    """Entered before each lock of an engine; each thread sees itself alone.

    A lock is let go of before this is left. So what was kept runs, in order, where the outermost lock has
    been let go of, also if what ran under it raised.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._kept: list[Callable[[], None]] = []

    def keep(self, action: Callable[[], None]) -> None:
        """Keep an action for later; it runs at once where no lock is held."""
        if self._depth:
            self._kept.append(action)
        else:
            action()

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if not self._depth and self._kept:
            kept, self._kept = self._kept, []
            for action in kept:
                action()

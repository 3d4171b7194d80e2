"""Where a stepped scheduler keeps what it has to say until it is told to deliver."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

from loguru import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model.messages import Announcement

__all__ = ["Outbox"]


@final
class Outbox:
    """One queue for all RMs of a scheduler, so that their callbacks come in the order of the causes."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[Announcement], None], Announcement]] = deque()

    def door(self, deliver: Callable[[Announcement], None]) -> Callable[[Announcement], None]:
        """Return what an RM's partitions announce to."""

        def announce(announcement: Announcement) -> None:
            self._waiting.append((deliver, announcement))

        return announce

    def deliver(self) -> int:
        """Deliver everything, also what the callbacks cause meanwhile; return how much it was."""
        count = 0
        while self._waiting:
            deliver, announcement = self._waiting.popleft()
            count += 1
            try:
                deliver(announcement)
            except Exception:  # noqa: BLE001 - an RM's error is logged, and the next one is told
                logger.exception("a callback failed on {}", announcement)
        return count

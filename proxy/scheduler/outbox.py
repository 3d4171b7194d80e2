"""The queue in which a stepped scheduler keeps its announcements until its caller delivers them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

from ...actors.interrupts import Uninterrupted
from ...actors.log import Log
from ...actors.log_fields import announcement_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...model.values.messages import Announcement

__all__ = ["Outbox"]


@final
class Outbox:
    """One queue for all RMs of a scheduler, so that their callbacks come in the order of the causes."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[Announcement], None], Log, Announcement]] = deque()

    def announcer(
        self, deliver: Callable[[Announcement], None], log: Log | None = None
    ) -> Callable[[Announcement], None]:
        """Return the function with which an RM's partitions announce; the log gets callbacks that fail."""
        log = log or Log()

        def announce(announcement: Announcement) -> None:
            self._waiting.append((deliver, log, announcement))

        return announce

    def deliver(self) -> int:
        """Deliver all announcements, also those that the callbacks cause; return how many there were."""
        count = 0
        while self._waiting:
            with Uninterrupted() as section:
                while self._waiting and not section.is_interrupted:
                    self._deliver_next()
                    count += 1
        return count

    def _deliver_next(self) -> None:
        deliver, log, announcement = self._waiting.popleft()
        try:
            deliver(announcement)
        except KeyboardInterrupt:
            raise  # The keys were pressed twice: callbacks run on the program's own thread here.
        except BaseException:
            log = log.bind(**announcement_fields(announcement))
            log.exception("a callback failed on {}", announcement)  # noqa: PLE1205 - loguru's braces

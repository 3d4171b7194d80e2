"""The queue in which a stepped scheduler keeps its announcements until its caller delivers them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import final

from .....actors.services.interrupts import Uninterrupted
from ....si.older_answers import Delivery


@final
class Outbox:
    """One queue for all RMs of a scheduler, so that their callbacks come in the order of the causes."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[Delivery], None], Delivery]] = deque()

    def announcer(self, deliver: Callable[[Delivery], None]) -> Callable[[Delivery], None]:
        """Return the function with which an RM's partitions announce; `deliver` reports its errors itself."""

        def announce(announcement: Delivery) -> None:
            self._waiting.append((deliver, announcement))

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
        deliver, announcement = self._waiting.popleft()
        try:
            deliver(announcement)
        except KeyboardInterrupt:
            raise  # The keys were pressed twice: callbacks run on the program's own thread here.
        except BaseException:  # noqa: BLE001, S110 - it has been reported
            pass

"""The partitions of a scheduler, each by a name that is used once: no timer outlives its partition."""

from __future__ import annotations

from contextlib import suppress
from typing import final

from .....actors.engines.engine import Engine
from .....model.errors import RequestError
from .....model.partition import Partition
from .....model.state.host import TimerAction


@final
class Incarnations:
    """Sends timers that are due to their partitions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._partitions: dict[str, Partition] = {}
        self._named = 0

    def new_name(self, partition_name: str) -> str:
        """Return the name of a partition that is about to be made."""
        self._named += 1
        return f"{partition_name}#{self._named}"

    def enter(self, incarnation: str, partition: Partition) -> None:
        """Send timers to a partition from now on."""
        self._partitions[incarnation] = partition

    def find(self, incarnation: str) -> Partition | None:
        """Return a partition by the name that is used once, `None` if it has ended."""
        return self._partitions.get(incarnation)

    def leave(self, partition: Partition) -> list[str]:
        """Send a partition no more timers, and return its names."""
        names = [name for name, known in list(self._partitions.items()) if known is partition]
        for name in names:
            del self._partitions[name]
        return names

    def fire(self, incarnation: str, action: TimerAction) -> None:
        """Send a timer that is due to its partition, if the partition is still there."""
        partition = self._partitions.get(incarnation)
        if partition is not None:
            with suppress(RequestError):  # It has ended meanwhile.
                self._engine.tell(partition, "on_timer", action)

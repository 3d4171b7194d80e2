"""Threads on which a stepped scheduler runs the cycles of several partitions at once.

Partitions share nothing but the clock, the queue of announcements and the log. Actions on these are deferred
until all partitions have made their step, and then run on the stepping thread, partition by partition: so the
outcome is that of one thread, and the virtual clock does not move meanwhile.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, final

from ..model.errors import LicorneError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..model.partition import Partition
    from .deferred import Action, DeferredActions

__all__ = ["SteppingThreads"]


@final
class SteppingThreads:
    """The threads; they start with the first step.

    Args:
        count: how many.
        deferred: the actions that must run without a lock.
    """

    def __init__(self, count: int, deferred: DeferredActions) -> None:
        self._deferred = deferred
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="licorne-stepping")

    def run(self, partitions: Sequence[Partition], step: Callable[[Partition], int]) -> list[int]:
        """Run a step of each partition and wait for all; then run their deferred actions in order.

        Raises:
            LicorneError: the calling thread runs a step itself, and would wait for itself.
            Exception: the error of the first partition whose step failed.
        """
        if self._deferred.is_open:
            raise LicorneError(
                "a step from inside a predicate is refused: the step that asked it waits for it"
            )
        collected: list[list[Action]] = [[] for _ in partitions]
        steps = [
            self._pool.submit(self._run_one, step, partition, actions)
            for partition, actions in zip(partitions, collected, strict=True)
        ]
        wait(steps)
        for actions in collected:
            for action in actions:
                action()
        return [each.result() for each in steps]

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _run_one(
        self, step: Callable[[Partition], int], partition: Partition, collected: list[Action]
    ) -> int:
        with self._deferred.collected_in(collected):
            return step(partition)

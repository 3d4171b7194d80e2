"""The actor of a partition that schedules by itself.

After every change it tells itself to work, once however many changes there were. It works in slices, so
that messages get their turn in between, and rests when nothing more can be placed: no polling. Where time
alone may change an answer, it asks to be called then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .breakage import what_broke
from .handles import EntityActor
from .invocation import Invocation

if TYPE_CHECKING:
    from types import TracebackType

    from ..model.partition import Partition

__all__ = ["CYCLES_PER_SLICE", "TURNS_PER_FLUSH", "PartitionActor"]

CYCLES_PER_SLICE: Final = 64
TURNS_PER_FLUSH: Final = 8
"""How many turns an announcement may wait while messages keep coming: a flush may switch threads."""


class PartitionActor(EntityActor):
    """The owner of a partition."""

    rank = 1
    entity: Partition

    def __init__(self, entity: Any) -> None:
        super().__init__(entity)
        self._work_told = False
        self._turns = 0
        """Since the RM was last made to hear."""

    def _handle_receive(self, message: object) -> object:
        try:
            return super()._handle_receive(message)
        finally:
            if type(message) is Invocation and message.method is not PartitionActor.work:
                self._wake()
            self._turns += 1
            self._flush_in_time()

    def on_withdrawn(self) -> None:
        """Flush behind the last message, also if it is one that nobody wants any more."""
        self._flush_in_time()

    def _flush_in_time(self) -> None:
        if self._turns >= TURNS_PER_FLUSH or self.actor_inbox.empty():
            self._turns = 0
            self.entity.flush()

    # What broke below.

    def _note_returned(self, error: Exception) -> None:
        super()._note_returned(error)
        self._isolate(error)

    def on_failure(
        self,
        exception_type: type[BaseException] | None,  # noqa: ARG002 - Pykka's signature
        exception_value: BaseException | None,
        traceback: TracebackType | None,  # noqa: ARG002 - Pykka's signature
    ) -> None:
        """Put what broke into quarantine, and go on with the rest."""
        if exception_value is not None:
            self._isolate(exception_value)

    def _isolate(self, error: BaseException) -> None:
        broken = what_broke(error)
        if broken is None:
            return
        kind, name, reason = broken
        if self.entity.quarantine(kind, name, reason):
            log = self.dispatcher.log.bind(partition=self.entity.name)
            log.error("{} {} is quarantined, please report: {}", kind.value, name, reason)  # noqa: PLE1205 - loguru's braces
            self._wake()

    def _wake(self) -> None:
        if not self._work_told:
            self._work_told = True
            self.actor_ref.send(PartitionActor.work)

    def work(self) -> None:
        """Run one slice of cycles; go on with the next one after the messages that came meanwhile."""
        self._work_told = False
        if self.entity.work(CYCLES_PER_SLICE):
            self._wake()

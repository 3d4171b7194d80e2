"""Answers for a scheduler in another process that asks resource managers (RMs) for their state dumps."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from ...actors.interrupts import start_thread
from ...model.errors import LicorneError
from ..scheduler.callback_failures import text_of
from ..si import licorne_v1_pb2 as v1
from ..si.api import StateDumpPlugin
from .errors import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..scheduler.callback_threads import CallbackThreads
    from ..si.api import ResourceManagerCallback

__all__ = ["TEXT_BYTES_MAX", "StateDumpAnswers"]

TEXT_BYTES_MAX: Final = 8 << 20
"""How long an RM's part is at most. The server ends a session that sends a message of more than 16 MiB."""


@final
class StateDumpAnswers:
    """Asks each RM on a thread of its own, one question at a time: one that is slow holds up no callback.

    Args:
        threads: Knows which threads are inside a callback.
    """

    def __init__(self, threads: CallbackThreads) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._asked: set[str] = set()
        """The RMs that work on an answer."""

    def answer(
        self,
        message: v1.SchedulerMessage,
        callback: ResourceManagerCallback,
        send: Callable[[v1.ManagerMessage], None],
    ) -> None:
        """Begin to answer a question, without waiting.

        Args:
            message: The question.
            callback: The RM that it is for.
            send: Sends the answer over the connection on which the question came.
        """
        rm_id, batch = message.rm_id, message.state_dump.batch

        def run() -> None:
            try:
                answer = self._ask(rm_id, callback)
            finally:
                with self._lock:
                    self._asked.discard(rm_id)
            reply(answer)

        def reply(answer: v1.StateDumpAnswer) -> None:
            answer.batch = batch
            with suppress(ConnectionLostError):
                send(v1.ManagerMessage(state_dump=answer))

        with self._lock:
            is_busy = rm_id in self._asked
            self._asked.add(rm_id)
        if is_busy:
            reply(v1.StateDumpAnswer(error=f"RM {rm_id!r} still works on an earlier state dump"))
        else:
            start_thread(run, "licorne-state-dump")

    def _ask(self, rm_id: str, callback: ResourceManagerCallback) -> v1.StateDumpAnswer:
        """Return what an RM says, or why it says nothing that can be sent."""
        try:
            if not isinstance(callback, StateDumpPlugin):
                raise LicorneError(f"RM {rm_id!r} has no get_state_dump any more")  # noqa: TRY301 - shown as others
            with self._threads.callback(rm_id):
                text = callback.get_state_dump()
            size_bytes = len(text.encode())
            if size_bytes > TEXT_BYTES_MAX:
                too_long = (
                    f"the state dump of RM {rm_id!r} has {size_bytes} bytes, more than {TEXT_BYTES_MAX}"
                )
                raise LicorneError(too_long)  # noqa: TRY301 - shown as others
            return v1.StateDumpAnswer(json=text)
        except BaseException as error:  # noqa: BLE001 - whatever it raises is shown
            return v1.StateDumpAnswer(error=text_of(error).encode(errors="replace").decode())
